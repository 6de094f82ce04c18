"""Corpora on disk: large data are read and tokenized once, in bounded memory, and found again by later trainings.

    NAME-KEY/                 the pairs: texts, starts, middles (data/stored.py), left_out and held (rows), pairs.json
    NAME-KEY/tokenizers-KEY/  source.*, target.*, learned from these pairs
    NAME-KEY/tokens-KEY/      source.ids, source.starts, target.ids, target.starts (data/encoding.py), numbers (of the
                              pairs in the data), tokens.json

A key is the SHA-256 of all that decides the content: files and settings of reading; settings of tokenizers; tokenizers
and length limits. Each folder has a manifest, is written under a hidden name, and renamed when it is whole. Tokens are
written in parts, and a command that was interrupted goes on after the last whole part.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regarde import config
from regarde.data.batch import EncodedPairs
from regarde.data.cleaning import hashes_of, repeated
from regarde.data.encoding import LengthLimits, Sequences, id_type, mapped
from regarde.data.filestates import FileState
from regarde.data.formats import Pair
from regarde.data.stored import Numbers, StoredPairs, full, held
from regarde.data.workers import Workers
from regarde.errors import DataError, FolderError, RegardeWarning, counted
from regarde.folder.manifest import check_files, finish, remove_folder, replace_file
from regarde.text.sides import Text, TextConfig, load_text

IN_MEMORY = 2**25  # characters of all texts; a smaller corpus is not written to disk
FORMAT = 1  # of these folders; others are written anew
PART = 2**19  # pairs that are tokenized between two records of progress
SHARE = 2**13  # pairs that a process tokenizes at a time
ARRAYS = {  # of tokens, with the sizes of their items where they do not depend on the tokenizers
    "source.ids": 0,
    "source.starts": 8,
    "target.ids": 0,
    "target.starts": 8,
    "numbers": 8,
}
PAIRS, TOKENS, PROGRESS, LEARNED = "pairs.json", "tokens.json", "progress.json", "learned.json"


@dataclass(frozen=True)
class DiskCorpus:
    """The pairs of some data in a folder, and those held out."""

    folder: Path
    pairs: StoredPairs
    held: Numbers  # rows of the pairs
    digest: str  # of the pairs that are left for training

    @property
    def train(self) -> StoredPairs:
        return self.pairs.without(self.held)

    @property
    def valid(self) -> list[Pair]:
        return [self.pairs[row] for row in self.held.tolist()]


def default_root() -> Path:
    """Where corpora are unless data.corpus says otherwise: not beside the data, whose folder may be read only."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "regarde" / "corpora"


class CorpusPlace:
    """Where the corpus of some data is, or will be if they are large."""

    def __init__(self, root: Path, files: list[Path], settings: Mapping[str, Any], *, most: int) -> None:
        self.files = files
        self.most = most
        known = {"format": FORMAT, "files": [str(file.resolve()) for file in files], **settings}
        stem = files[0].name.split(".")[0] if files else "stdin"
        self.path = root / f"{stem or 'corpus'}-{_key(known)}"

    def found(self, notes: list[str]) -> DiskCorpus | None:
        """The corpus that an earlier training wrote, if its files are the same."""
        if not self.files or not (self.path / PAIRS).is_file():
            return None
        try:
            about = json.loads((self.path / PAIRS).read_text())
            files = [FileState(**file) for file in about["files"]]
            wrong = next((file.path for file in files if not file.still(about["read"])), "")
            if not wrong:
                return self._opened(about, notes, "found in")
            notes.append(f"corpus: {wrong} has changed, so the corpus is written anew")
        except (ValueError, KeyError, TypeError, OSError):
            notes.append(f"corpus: {self.path / PAIRS} is damaged, so the corpus is written anew")
        with _locked(self.path):
            remove_folder(self.path)
        return None

    def read(
        self,
        pairs: Callable[[], Iterator[Pair]],
        split: Callable[[StoredPairs], Numbers] | None,
        notes: list[str],
        *,
        distinct: bool,
    ) -> DiskCorpus | list[Pair]:
        """All pairs in memory; or, of large data, in the folder. `split` chooses those to hold out of these."""
        states = [FileState.of(file) for file in self.files if file.is_file()]
        before = len(notes)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.new")
        try:
            found = held(pairs(), beside, self.most)
            for state in states:
                if FileState.of(Path(state.path)) != state:
                    given = f"{state.path}: changed while it was read"
                    raise DataError(f"{given}. Repeat the command when the file is complete.")
            if isinstance(found, list):
                return found
            assert isinstance(found, StoredPairs)
            if distinct:
                found = without_repeated(found, notes)
            rows = split(found) if split else np.zeros(0, np.int64)
            digest = found.without(rows).digest()
            about = {"files": [asdict(state.hashed()) for state in states], "read": time.time(), "digest": digest}
            (beside / "left_out").write_bytes(found.left_out.tobytes())
            (beside / "held").write_bytes(rows.tobytes())
            replace_file(beside / PAIRS, json.dumps(about | {"notes": notes[before:]}).encode())
            if not self.files:
                self.path = self.path.with_name(f"stdin-{digest[:16]}")
            with _locked(self.path):
                if self.path.exists():  # another process was faster
                    remove_folder(self.path) if self.files else shutil.rmtree(beside)
                if beside.exists():
                    finish(beside, self.path)
        except OSError as error:
            raise full(self.path.parent, error) from None
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        return self._opened(about | {"notes": []}, notes, "written to")

    def _opened(self, about: Mapping[str, Any], notes: list[str], how: str) -> DiskCorpus:
        pairs = StoredPairs(self.path, np.fromfile(self.path / "left_out", np.int64))
        rows = np.fromfile(self.path / "held", np.int64)
        notes += about["notes"]
        notes.append(f"corpus: {counted(len(pairs), 'pair')}, {how} {self.path} ({_size(self.path)})")
        return DiskCorpus(self.path, pairs, rows, about["digest"])


def without_repeated(pairs: StoredPairs, notes: list[str]) -> StoredPairs:
    """The pairs less those that occurred before."""
    file = pairs.folder / "hashes"
    with file.open("wb") as hashes:
        hashes.writelines(hashes_of(pairs))
    rows = repeated(np.memmap(file, np.uint64, mode="r").reshape(-1, 2))
    file.unlink()
    if len(rows):
        notes.append(f"data: {len(rows):,} of {len(pairs):,} left out (duplicates)")
    return pairs.without(rows)


def learned(corpus: DiskCorpus, text: TextConfig, notes: list[str]) -> Text:
    """The tokenizers of a corpus: those that an earlier training learned, or new ones, both sides at the same time."""
    settings = config.as_table(text)
    path = corpus.folder / f"tokenizers-{_key({'format': FORMAT, 'digest': corpus.digest, 'text': settings})}"
    with _locked(path):
        if not _is_whole(path, LEARNED, notes):
            _check_pairs(corpus.folder)
            beside = _fresh(path)
            sides = ["both"] if text.shared else ["source", "target"]
            stems = {"both": ["source", "target"]}
            with Workers(corpus.folder, corpus.train.left_out, most=len(sides)) as workers:
                jobs = [
                    {
                        "job": "train",
                        "side": side,
                        "text": settings,
                        "stems": [str(beside / stem) for stem in stems.get(side, [side])],
                    }
                    for side in sides
                ]
                sampled = [result.values["sampled"] for result in workers.results(jobs)]
            with _writing(path):
                replace_file(beside / LEARNED, json.dumps({"sampled": dict(zip(sides, sampled, strict=True))}).encode())
                finish(beside, path)
    for side, count in json.loads((path / LEARNED).read_text())["sampled"].items():
        if count:
            notes.append(sample_note(side, count))
    return load_text(text, path)


def sample_note(side: str, count: int) -> str:
    """What a tokenizer was learned from that did not read all."""
    return f"{side}: subwords learned from a sample of {counted(count, 'text')}"


def tokens(
    corpus: DiskCorpus, text: Text, settings: TextConfig, limits: LengthLimits, notes: list[str]
) -> EncodedPairs:
    """The tokens of a corpus in mapped files: those that an earlier training wrote, or new ones."""
    with ExitStack() as opened:
        beside = opened.enter_context(_kept_beside(corpus.folder, text))
        tokenizers = {path.name: _sha256(path) for path in sorted(beside.iterdir())}
        known = {"format": FORMAT, "digest": corpus.digest, "tokenizers": tokenizers, "text": config.as_table(settings)}
        known |= {"limits": asdict(limits), "copies": text.copies}
        path = corpus.folder / f"tokens-{_key(known)}"
        opened.enter_context(_locked(path))
        if not _is_whole(path, TOKENS, notes, known):
            _check_pairs(corpus.folder)
            _encode(corpus, text, settings, limits, known, path, beside)
        about = json.loads((path / TOKENS).read_text())
    notes.append(f"tokens: {path} ({_size(path)})")
    source, target = (
        Sequences(
            mapped(path / f"{side}.ids", id_type(tokenizer, text)), mapped(path / f"{side}.starts", np.int64), ends
        )
        for side, tokenizer, ends in (("source", text.source, True), ("target", text.target, text.target.ends))
    )
    return EncodedPairs(source, target, about["dropped"], mapped(path / "numbers", np.int64), absent=about["absent"])


def _encode(
    corpus: DiskCorpus,
    text: Text,
    settings: TextConfig,
    limits: LengthLimits,
    known: Mapping[str, Any],
    path: Path,
    tokenizers: Path,
) -> None:
    """Write tokens in parts, each of which is on the disk before it is recorded."""
    beside = path.with_name(f".{path.name}.new")
    train = corpus.train
    about = _progress(beside)
    with _writing(path), ExitStack() as opened:
        files = {name: opened.enter_context((beside / name).open("ab")) for name in ARRAYS}
        if not about["done"]:
            for name in ("source.starts", "target.starts"):
                files[name].write(np.zeros(1, np.int64).tobytes())
        ends = {side: about["ends"][side] for side in ("source", "target")}
        firsts = range(about["done"], len(train), SHARE)
        jobs = (
            {
                "job": "encode",
                "first": first,
                "end": min(first + SHARE, len(train)),
                "folder": str(tokenizers),
                "text": config.as_table(settings),
                "copies": text.copies,
                "max_source": limits.source,
                "max_target": limits.target,
            }
            for first in firsts
        )
        workers = opened.enter_context(Workers(corpus.folder, train.left_out))
        for first, result in zip(firsts, workers.results(jobs), strict=True):
            for side in ("source", "target"):
                starts = ends[side] + np.cumsum(result.arrays[f"{side}_lengths"])
                files[f"{side}.ids"].write(result.arrays[f"{side}_ids"].tobytes())
                files[f"{side}.starts"].write(starts.tobytes())
                ends[side] = int(starts[-1]) if len(starts) else ends[side]
            files["numbers"].write((train.rows(first + result.arrays["kept"]) + 1).tobytes())
            about["dropped"] += result.values["dropped"]
            about["absent"] += result.values["absent"]
            about |= {"done": min(first + SHARE, len(train)), "ends": ends}
            if about["done"] % PART < SHARE:
                _record(beside, files, about)
    with _writing(path):
        replace_file(beside / TOKENS, json.dumps(about | {"known": known}).encode())
        (beside / PROGRESS).unlink(missing_ok=True)
        finish(beside, path)


def _progress(beside: Path) -> dict[str, Any]:
    """What an interrupted command has written; what came after its last record is cut off."""
    fresh: dict[str, Any] = {"done": 0, "ends": {"source": 0, "target": 0}, "dropped": 0, "absent": 0}
    with _writing(beside):
        try:
            about: dict[str, Any] = json.loads((beside / PROGRESS).read_text())
            for name in ARRAYS:
                if (beside / name).stat().st_size < about["sizes"][name]:
                    raise ValueError(name)
                os.truncate(beside / name, about["sizes"][name])
        except (OSError, ValueError, KeyError):
            shutil.rmtree(beside, ignore_errors=True)
            beside.mkdir(parents=True)
            return fresh
    return about


def _record(beside: Path, files: Mapping[str, Any], about: dict[str, Any]) -> None:
    for file in files.values():
        file.flush()
        os.fsync(file.fileno())
    sizes = {name: (beside / name).stat().st_size for name in files}
    replace_file(beside / PROGRESS, json.dumps(about | {"sizes": sizes}).encode())


def _is_whole(path: Path, about: str, notes: list[str], known: Mapping[str, Any] | None = None) -> bool:
    """Whether a folder is there and as its manifest says; one that is damaged is removed."""
    if not path.exists():
        return False
    try:
        check_files(path)
        if known is None or json.loads((path / about).read_text())["known"] == known:
            return True
        wrong = f"{path}: tokens of other pairs or tokenizers"
    except (FolderError, OSError, ValueError, KeyError) as error:
        wrong = str(error).partition(". ")[0]
    notes.append(f"warning: corpus: {wrong}: written anew")
    remove_folder(path)
    return False


def _check_pairs(folder: Path) -> None:
    """Check the texts that are to be tokenized."""
    try:
        check_files(folder)
    except FolderError as error:
        remove_folder(folder)
        given = str(error).partition(". ")[0]
        raise DataError(f"{given}; removed. Repeat the command, which reads the data again.") from None


@contextmanager
def _kept_beside(folder: Path, text: Text) -> Iterator[Path]:
    """The files of the tokenizers, while processes read them."""
    beside = folder / f".tokenizers.{os.getpid()}.new"
    try:
        with _writing(beside):
            shutil.rmtree(beside, ignore_errors=True)
            beside.mkdir()
        text.save(beside)
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Inside, no other process writes this folder."""
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            warnings.warn(f"Waiting for another process, which writes {path}.", RegardeWarning, stacklevel=2)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise full(path, error) from None


def _fresh(path: Path) -> Path:
    beside = path.with_name(f".{path.name}.new")
    with _writing(path):
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
    return beside


def _key(known: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _size(folder: Path) -> str:
    size = 0
    for file in folder.rglob("*"):
        with suppress(OSError):
            size += file.stat().st_size if file.is_file() else 0
    return f"{size / 1e9:.2f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
