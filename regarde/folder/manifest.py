"""The manifest of a folder: size and SHA-256 of each file in it, and atomic writes that keep it correct at any moment.

    new_folder      creates a whole folder, or none; whole_folder one without a manifest
    replace_files   replaces files; if it is interrupted, each file is whole, and listed in the manifest

After a power failure a file has its old or its new content. Three rules ensure that: content is on the disk (fsync)
before it gets its name, a name is on the disk before anything older is removed, and the manifest lists both contents of
a file before the file is replaced.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import mmap
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from regarde.errors import FolderError, UsageError, unreadable

FORMAT = 1
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 1 << 20
CONFIG = "config.toml"
WEIGHTS = "weights.safetensors"
OPTIMIZER, STATE = "optimizer.safetensors", "training.json"  # of a checkpoint
CARRIED = "carried.safetensors"  # of a checkpoint whose next batch goes on with a text
ORIGIN = "origin.safetensors"  # of a checkpoint whose weights are pulled to those that it started from
OPTIMISER = "optimiser.safetensors"  # the same, as version 0.1 named it
CARD = "README.md"
TOKENIZERS = ("source.vocab", "source.model", "target.vocab", "target.model")
HISTORY = "history.jsonl"  # of a forecaster
LOCK = ".lock"  # held by the process that changes a folder
CHECKPOINTS = "checkpoints"  # a folder of a run, with a folder for each checkpoint
CHECKPOINT = re.compile(r"step-(\d{1,12})")
METRICS_FILE, LOG_FILE = "metrics.jsonl", "train.log"  # of a run
BESIDE = (CHECKPOINTS, METRICS_FILE, LOG_FILE, "plots", "tensorboard")  # what a run keeps next to its model
ADDED = ("shortlist.txt",)  # files that are added to a model later; used only if the manifest lists them
FILES = frozenset(
    {CONFIG, WEIGHTS, CARD, *TOKENIZERS, HISTORY, OPTIMIZER, OPTIMISER, STATE, CARRIED, ORIGIN, *ADDED}
)  # all that a manifest may list
# as large as the model; their content is checked when they are loaded
BULKY = (WEIGHTS, OPTIMIZER, OPTIMISER, CARRIED, ORIGIN)
LARGEST_TEXT = 256 << 20  # bytes of any other file
LARGEST_HEADER = 8 << 20  # of the bulky ones
PIECE = 1 << 24  # bytes of a mapped file that are in memory while it is checked
PATIENCE = 2.0  # seconds after which a folder between two manifests counts as abandoned …
LONGEST = 10.0  # … and after which a folder that is replaced all the time is read as it is
Texts = TypeVar("Texts")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_NEW = ".new"  # ends the hidden name of what is not finished yet


@dataclass(frozen=True)
class Content:
    """Size and hash of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Entry(Content):
    """The content of a file according to the manifest; while it is being replaced, also its content `before`."""

    before: Content | None = None

    @property
    def sizes(self) -> list[int]:
        return sorted({self.bytes, self.before.bytes if self.before else self.bytes})

    def holds(self, content: Content) -> bool:
        return (content.bytes, content.sha256) in {(c.bytes, c.sha256) for c in (self, self.before) if c}


def read(folder: Path) -> dict[str, Entry]:
    """The manifest of a folder; a FolderError says what is wrong with it."""
    path = folder / MANIFEST
    try:
        if not folder.is_dir():
            given = "a file, not a folder" if folder.exists() else "no such folder"
            raise FolderError(f"{folder}: {given}. Give a model folder, for example one that `regarde train` created.")
        if path.is_symlink() or not path.is_file():
            given = f"no {MANIFEST}: not a model folder, or a training that has not saved a model yet"
            raise FolderError(f"{folder}: {given}.")
        if path.stat().st_size > LARGEST_MANIFEST:
            raise ValueError
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["format"]
        files = {name: _entry(**entry) for name, entry in manifest["files"].items()}
    except OSError as error:
        raise FolderError(unreadable(path, error, "Restore it, or train again.")) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FolderError(f"{path}: not readable as a manifest. Restore it, or train again.") from None
    if type(version) is not int or not 1 <= version <= FORMAT:
        given = json.dumps(version)[:20]
        raise FolderError(
            f"{path}: format {given}, this version reads up to {FORMAT}. Upgrade: pip install -U regarde."
        )
    for name, entry in files.items():
        if not _NAME.fullmatch(name):
            raise FolderError(f"{path}: lists {json.dumps(name)[:80]}, which is no plain file name. Restore it.")
        for content in (entry, entry.before):
            if content and (type(content.bytes) is not int or type(content.sha256) is not str):
                raise FolderError(f"{path}: no size or SHA-256 for {name}. Restore it, or train again.")
    return files


def check_size(path: Path, entry: Entry) -> int:
    """The size of a file, checked against the manifest."""
    if path.is_symlink() or not path.is_file():
        raise FolderError(f"{path}: listed in {MANIFEST} but no regular file is there. Restore it, or train again.")
    size = path.stat().st_size
    if size not in entry.sizes:
        given = f"{size:,} bytes, expected {entry.bytes:,}"
        raise FolderError(f"{path}: {given}: cut short or changed. Restore it, or train again.")
    return size


def check_content(path: Path, entry: Entry, content: bytes | mmap.mmap) -> None:
    """Check the content of a file against the manifest."""
    digest = hashlib.sha256()
    for first in range(0, len(content), PIECE):
        after = min(first + PIECE, len(content))
        digest.update(memoryview(content)[first:after])
        if isinstance(content, mmap.mmap):
            let_go(content, first, after)
    if not entry.holds(Content(len(content), digest.hexdigest())):
        raise FolderError(f"{path}: SHA-256 differs from {MANIFEST}: damaged or changed. Restore it, or train again.")


def let_go(content: mmap.mmap, first: int, after: int) -> None:
    """Let what was read of a file leave the memory; it is read again if it is needed again."""
    if hasattr(mmap, "MADV_DONTNEED") and first < after:
        start = first // mmap.PAGESIZE * mmap.PAGESIZE
        content.madvise(mmap.MADV_DONTNEED, start, after - start)


def check_file(path: Path, entry: Entry) -> None:
    """The same for a file of any size that is not read otherwise."""
    check_size(path, entry)
    if not entry.holds(_content(path)):
        raise FolderError(f"{path}: SHA-256 differs from {MANIFEST}: damaged or changed. Restore it, or train again.")


@contextlib.contextmanager
def at_one_moment(folder: Path, read_texts: Callable[[Mapping[str, Entry]], Texts]) -> Iterator[tuple[Texts, BinaryIO]]:
    """The result of `read_texts` on the small files of a verified folder, and its weights, opened: of one version.

    If the manifest differs before and after, the files were replaced meanwhile, and all are read again. A folder that a
    killed process left between two manifests is read as it is, after PATIENCE.
    """
    began = since = time.monotonic()
    seen = read(folder)
    while True:
        files, now = read(folder), time.monotonic()
        if files != seen:
            seen, since = files, now
        final = now > min(since + PATIENCE, began + LONGEST)
        if final or not any(entry.before for entry in files.values()):
            with contextlib.ExitStack() as opened:
                try:
                    _verify(folder, files)
                    weights = opened.enter_context(_opened(folder / WEIGHTS))
                    texts = read_texts(files)
                except Exception:
                    if final or read(folder) == files:
                        raise
                else:
                    if final or read(folder) == files:
                        yield texts, weights
                        return
        time.sleep(0.01)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise FolderError(unreadable(path, error, "Restore it, or train again.")) from None


def verify(folder: Path) -> Mapping[str, Entry]:
    """Check a model folder against its manifest: a FolderError names the file that differs.

    Of weights only the size is checked; the content, once the configuration has said how large they may be.
    """
    files = read(folder)
    _verify(folder, files)
    return files


def _verify(folder: Path, files: Mapping[str, Entry]) -> None:
    try:
        for name in (CONFIG, WEIGHTS):
            if name not in files:
                raise FolderError(f"{folder / MANIFEST}: lists no {name}, which every model has. Restore it.")
        for name in sorted(files.keys() - FILES):
            given = f"lists {name}, which is not a file of a model"
            raise FolderError(f"{folder / MANIFEST}: {given}. Do not use this folder, or upgrade regarde.")
        for path in sorted(folder.iterdir()):
            known = path.name in files or path.name in (MANIFEST, *BESIDE, *ADDED) or path.name.startswith(".")
            if not known:
                raise FolderError(f"{path}: not listed in {MANIFEST}, so no part of the model. Move it elsewhere.")
        for name, entry in files.items():
            size = check_size(folder / name, entry)
            if name in BULKY:
                continue
            if size > LARGEST_TEXT:
                given = f"{size:,} bytes, expected at most {LARGEST_TEXT:,}"
                raise FolderError(f"{folder / name}: {given}. Regarde did not write this model.")
            check_content(folder / name, entry, (folder / name).read_bytes())
    except OSError as error:
        raise FolderError(unreadable(error.filename, error, "Restore it, or train again.")) from None


def refuse_existing(path: Path) -> None:
    """A UsageError if there is anything where a new folder is to be."""
    if path.is_symlink() or path.exists():
        raise UsageError(f"{path}: exists already and is never overwritten. Give another --out, or move it away.")


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill; at the end it gets a manifest and is renamed to `path`. After an error nothing is left."""
    with whole_folder(path) as beside:
        yield beside
        replace_file(beside / MANIFEST, _text({item.name: _content(item) for item in sorted(beside.iterdir())}))


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """The same without a manifest, for a folder that is no model of ours."""
    beside = path.with_name(f".{path.name}{_NEW}")
    _remove(beside)  # of a process that was killed
    try:
        beside.mkdir(parents=True)
        yield beside
        _settle(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            _remove(beside)
        raise


def finish(beside: Path, path: Path) -> None:
    """Give a folder whose files are written a manifest, and its name."""
    replace_file(beside / MANIFEST, _text({item.name: _content(item) for item in sorted(beside.iterdir())}))
    _settle(beside, path)


def _settle(beside: Path, path: Path) -> None:
    """Flush a folder to the disk, and rename it."""
    for item in sorted(beside.rglob("*")):
        _sync(item)
    _sync(beside)
    beside.rename(path)
    _sync(path.parent)


def check_files(folder: Path) -> None:
    """Check all files of a folder that is no model against its manifest."""
    for name, entry in read(folder).items():
        check_file(folder / name, entry)


def content_of(path: Path) -> Content | None:
    """Size and hash of a file, if there is one."""
    return _content(path) if path.is_file() else None


def write(folder: Path, files: Mapping[str, Content]) -> None:
    """Write the manifest of a folder that is no model, whose files are written."""
    replace_file(folder / MANIFEST, _text(files))


def replace_files(folder: Path, source: Path) -> None:
    """Move the files of `source`, a folder on the same disk, into `folder`, and list them in its manifest."""
    new = {item.name: _content(item) for item in sorted(source.iterdir())}
    for name in new:
        _sync(source / name)
    old = _held(folder)
    kept = {name: old[name] for name in ADDED if name in old}
    if old:  # a first manifest must not list files before they are there, a later one must
        replace_file(folder / MANIFEST, _text(kept | new, old))
    for name, content in new.items():
        if old.get(name) == content:
            (source / name).unlink()
        else:
            (source / name).replace(folder / name)
    _sync(folder)
    replace_file(folder / MANIFEST, _text(kept | new))
    source.rmdir()


def add_file(folder: Path, name: str, content: bytes) -> None:
    """Write one of the files that are added to a model later, and list it in the manifest."""
    files = read(folder)
    new = Content(len(content), hashlib.sha256(content).hexdigest())
    old = _held(folder)
    if name in files:  # a reader accepts either content meanwhile
        replace_file(folder / MANIFEST, _text({**files, name: new}, old))
    replace_file(folder / name, content)
    replace_file(folder / MANIFEST, _text({**files, name: new}))


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically."""
    beside = path.with_name(f".{path.name}{_NEW}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _sync(path.parent)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove the incomplete files of a process that was killed."""
    for path in folder.glob(f".*{_NEW}"):
        _remove(path)


def remove_folder(path: Path) -> None:
    """Remove a folder; a reader finds the whole folder or none."""
    beside = path.with_name(f".{path.name}{_NEW}")
    _remove(beside)
    path.rename(beside)
    _remove(beside)


def locked(path: Path, doing: str = "is training here") -> int:
    """A handle that locks the folder until it is closed or this process ends. `doing`: what the owner is doing."""
    handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(handle, 20).decode(errors="replace").strip()
        os.close(handle)
        raise UsageError(f"{path}: process {owner or 'unknown'} {doing}. Wait for it, or stop it.") from None
    os.ftruncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())
    return handle


@contextlib.contextmanager
def alone(folder: Path, doing: str = "is training here") -> Iterator[None]:
    """Inside, no other process has this folder."""
    handle = locked(folder, doing)
    try:
        yield
    finally:
        os.close(handle)


def _entry(bytes: Any, sha256: Any, before: Any = None) -> Entry:  # noqa: A002  # the keys of the manifest
    return Entry(bytes, sha256, None if before is None else Content(**before))


def _held(folder: Path) -> dict[str, Content]:
    """The contents of the files of a folder that are as its manifest lists them."""
    try:
        files = read(folder)
    except FolderError:
        return {}
    present = {name: _content(folder / name) for name in files if (folder / name).is_file()}
    return {name: content for name, content in present.items() if files[name].holds(content)}


def _content(path: Path) -> Content:
    with path.open("rb") as file:
        return Content(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _text(files: Mapping[str, Content], before: Mapping[str, Content] | None = None) -> bytes:
    """The manifest as JSON."""
    entries = {}
    for name, content in files.items():
        entries[name] = _table(content)
        if before and name in before and before[name] != content:
            entries[name]["before"] = _table(before[name])
    return (json.dumps({"format": FORMAT, "files": entries}, indent=2) + "\n").encode()


def _table(content: Content) -> dict[str, Any]:
    return {"bytes": content.bytes, "sha256": content.sha256}


def _sync(path: Path) -> None:
    """Flush to the disk: a file, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
