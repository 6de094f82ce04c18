"""Translation of files in parts, wherever the parts are computed: what to compute, what is whole, what is missing.

    DIR/plan.json        the shards of the input, and all that decides their answers
    DIR/part-000000.txt  the answers to a shard; .jsonl with --json
    DIR/parts.jsonl      a line for each part that is whole: its size, its SHA-256, counts of its lines
    DIR/manifest.json    size and SHA-256 of each part, when all are there

A shard is a number of whole windows of a file (filter.py), so that all parts together are the bytes that one process
writes. One process, the driver, reads shards, hands them to workers, and writes parts: workers need neither disk, and
one whose driver is gone changes nothing. A part is on the disk before it is recorded.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from regarde.data.filestates import FileState
from regarde.data.lines import Line, read_lines
from regarde.errors import DataError, DiskError, FolderError, UsageError, warn
from regarde.folder import manifest
from regarde.streaming.filter import Counts, Filter, FilterConfig, longest_line, windows

FORMAT = 1
PLAN, RECORDS = "plan.json", "parts.jsonl"
PARTS, SMALLEST, LARGEST = 2**11, 2**15, 2**25  # parts of a large input; bytes of a shard
DEATHS = 10  # of workers on one shard, before it is set aside
_CHUNK = 2**20


@dataclass(frozen=True)
class Shard:
    """Consecutive lines of a file."""

    file: int  # its number among the files
    first: int  # line, from 1
    lines: int
    offset: int  # of its first byte
    size: int  # bytes
    sha256: str


@dataclass(frozen=True)
class ShardOutcome:
    """What became of a shard that a worker had: an answer, or the reason why it was lost."""

    number: int
    place: str  # where the worker is
    answer: bytes = b""
    counts: Counts = field(default_factory=Counts)
    lost: str = ""
    blameless: bool = False  # whether it was lost for a reason that lies in its place


class Pool(Protocol):
    """Workers, each of which answers one shard at a time."""

    @property
    def size(self) -> int:
        """How many shards it can have at a time."""

    def submit(self, number: int, shard: Shard, raw: bytes) -> None: ...

    def take(self) -> ShardOutcome:
        """The next outcome; waits for it. An error that no other worker would avoid is raised."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Plan:
    """The shards of some files, and all that decides their answers."""

    settings: dict[str, Any]
    files: tuple[FileState, ...]
    planned: float  # when the files were read
    shards: tuple[Shard, ...]

    @classmethod
    def of(cls, config: FilterConfig, files: Sequence[Path]) -> Self:
        states = tuple(FileState.of(file).hashed() for file in files)
        size = min(max(sum(state.size for state in states) // PARTS, SMALLEST), LARGEST)
        shards = (
            shard
            for number, file in enumerate(files)
            for shard in _shards(number, file, size, longest_line(config.long))
        )
        plan = cls(settings_of(config), states, time.time(), tuple(shards))
        plan.check_files()
        return plan

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            if table["format"] != FORMAT:
                raise UsageError(f"{path}: format {table['format']!r}, expected {FORMAT}. Give another --output.")
            files = tuple(FileState(**file) for file in table["files"])
            shards = tuple(Shard(*shard) for shard in table["shards"])
            return cls(table["settings"], files, table["planned"], shards)
        except (OSError, ValueError, KeyError, TypeError):
            raise FolderError(f"{path}: not readable as a plan. Give another --output, or remove the folder.") from None

    def write(self, path: Path) -> None:
        table = {
            "format": FORMAT,
            "settings": self.settings,
            "files": [asdict(file) for file in self.files],
            "planned": self.planned,
            "shards": [list(asdict(shard).values()) for shard in self.shards],
        }
        manifest.replace_file(path, json.dumps(table).encode())

    def check_files(self) -> None:
        """Raise a DataError if a file is not what was planned for."""
        for file in self.files:
            if not file.still(self.planned):
                raise _changed(file.path)

    def raw(self, shard: Shard) -> bytes:
        """The bytes of a shard; an OSError if they cannot be read, a DataError if they are others."""
        path = self.files[shard.file].path
        with Path(path).open("rb") as file:
            file.seek(shard.offset)
            raw = file.read(shard.size)
        if hashlib.sha256(raw).hexdigest() != shard.sha256:
            raise _changed(path)
        return raw

    def named(self, shard: Shard) -> str:
        """The lines of a shard, for messages."""
        return f"lines {shard.first:,} to {shard.first + shard.lines - 1:,} of {self.files[shard.file].path}"


def settings_of(config: FilterConfig) -> dict[str, Any]:
    """What decides the answers, in JSON: of the models their content, not their place."""
    models = [hashlib.sha256((Path(run) / manifest.MANIFEST).read_bytes()).hexdigest() for run in config.runs]
    settings: dict[str, Any] = json.loads(json.dumps(asdict(config) | {"runs": models}))
    return settings


def _shards(number: int, file: Path, size: int, longest: int) -> Iterator[Shard]:
    """Windows of a file, joined until they have `size` bytes."""
    with file.open("rb") as stream, file.open("rb") as again:
        first, count, offset = 1, 0, 0
        parts = windows(read_lines(stream, longest, name=str(file)))
        window = next(parts, None)
        while window is not None:
            count += len(window)
            window = next(parts, None)
            end = window[0].offset if window else os.fstat(stream.fileno()).st_size
            if window is None or end - offset >= size:
                digest, left = hashlib.sha256(), end - offset
                while left and (chunk := again.read(min(left, _CHUNK))):
                    digest.update(chunk)
                    left -= len(chunk)
                yield Shard(number, first, count, offset, end - offset, digest.hexdigest())
                first, count, offset = first + count, 0, end


class PartsFolder:
    """The folder that the parts are written to."""

    def __init__(self, path: Path, config: FilterConfig, plan: Plan) -> None:
        self.path = path
        self.plan = plan
        self.counts = Counts()
        self.whole = threading.Lock()  # held while a part is written
        self._suffix = "jsonl" if config.as_json else "txt"
        self._records: dict[int, manifest.Content] = {}

    @classmethod
    @contextmanager
    def opened(cls, path: Path, config: FilterConfig, files: Sequence[Path]) -> Iterator[Self]:
        """A new folder, or one that an earlier command has begun, for this process alone."""
        with ExitStack() as stack:
            with _writing(path):
                if path.exists() and not path.is_dir():
                    raise UsageError(f"{path}: a file, but --on writes a folder. Give another --output.")
                if path.is_dir() and not (path / PLAN).exists() and any(_shown(path)):
                    raise UsageError(f"{path}: not a folder that --on has begun. Give another --output.")
                path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(manifest.alone(path, "is writing parts here"))
                if not (path / PLAN).exists():
                    Plan.of(config, files).write(path / PLAN)
            folder = cls(path, config, Plan.read(path / PLAN))
            folder._check(config, files)
            folder._read_records()
            yield folder

    def missing(self) -> list[int]:
        """The numbers of the shards whose part is not whole."""
        return [number for number in range(len(self.plan.shards)) if number not in self._records]

    def part(self, number: int) -> Path:
        return self.path / f"part-{number:06}.{self._suffix}"

    def keep(self, outcome: ShardOutcome) -> None:
        """Write a part, and record it."""
        content = manifest.Content(len(outcome.answer), hashlib.sha256(outcome.answer).hexdigest())
        record = {"part": outcome.number, **asdict(content), "counts": asdict(outcome.counts)}
        with self.whole, _writing(self.path):
            manifest.replace_file(self.part(outcome.number), outcome.answer)
            with (self.path / RECORDS).open("ab") as file:
                file.write(json.dumps(record).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        self._add(outcome.number, content, outcome.counts)

    def finish(self) -> None:
        """List all parts in the manifest."""
        with self.whole, _writing(self.path):
            manifest.write(self.path, {self.part(n).name: content for n, content in sorted(self._records.items())})

    def _add(self, number: int, content: manifest.Content, counts: Counts) -> None:
        self._records[number] = content
        self.counts += counts

    def _check(self, config: FilterConfig, files: Sequence[Path]) -> None:
        """Raise an error if the folder was begun with other settings, models or files."""
        settings = settings_of(config)
        names = [str(file.resolve()) for file in files]
        if names != [file.path for file in self.plan.files]:
            raise UsageError(f"{self.path}: begun for other files. Give the same --input, or another --output.")
        for key, value in settings.items():
            if (before := self.plan.settings.get(key)) != value:
                given = "another model" if key == "runs" else f"{key} = {json.dumps(before)}, now {json.dumps(value)}"
                raise UsageError(f"{self.path}: begun with {given}. Give the same, or another --output.")
        self.plan.check_files()

    def _read_records(self) -> None:
        """The parts of earlier commands that are whole; a record that was not finished is cut off."""
        path, whole = self.path / RECORDS, 0
        manifest.remove_unfinished(self.path)
        if not path.exists():
            return
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                try:
                    record = json.loads(line)
                    number, counts = record["part"], Counts(**record["counts"])
                    content = manifest.Content(record["bytes"], record["sha256"])
                except (ValueError, KeyError, TypeError):
                    raise FolderError(f"{path}: damaged. Remove it: all parts are computed again.") from None
                if number in self._records:
                    continue
                if manifest.content_of(self.part(number)) == content:
                    self._add(number, content, counts)
                else:
                    warn(f"warning: {self.part(number)}: damaged or removed, computed again")
        with _writing(path):
            os.truncate(path, whole)


def translate_shards(
    folder: PartsFolder, pool: Pool, progress: Callable[[ShardOutcome], None] = lambda outcome: None
) -> dict[int, str]:
    """Let a pool answer the shards that are missing; returns those that were set aside, and why."""
    plan, aside, deaths = folder.plan, dict[int, str](), Counter[int]()
    waiting, flying = deque(folder.missing()), 0
    while waiting or flying:
        while waiting and (flying < pool.size or not flying):
            number = waiting.popleft()
            shard = plan.shards[number]
            try:
                raw = plan.raw(shard)
            except OSError as error:
                aside[number] = f"not readable ({error.strerror})"
                continue
            pool.submit(number, shard, raw)
            flying += 1
        if not flying:
            break
        outcome = pool.take()
        flying -= 1
        number = outcome.number
        if not outcome.lost:
            folder.keep(outcome)
            progress(outcome)
            continue
        deaths[number] += not outcome.blameless
        if deaths[number] >= DEATHS:
            aside[number] = f"{DEATHS} workers have ended on it, the last one: {outcome.lost}"
        else:
            warn(f"warning: {plan.named(plan.shards[number])}: {outcome.lost}, so they are given to another worker")
            waiting.appendleft(number)
    if not aside:
        folder.finish()
    return aside


class ShardWorker:
    """What a worker does: loads the models at its first shard, and answers shards."""

    def __init__(self, config: FilterConfig) -> None:
        self._config = config
        self._filter: Filter | None = None

    def load(self) -> Filter:
        """Load the models, unless they are."""
        self._filter = self._filter or self._config.build()
        return self._filter

    def answer(self, raw: bytes, first: int) -> tuple[bytes, Counts]:
        """The answers to a shard whose first line has this number."""
        out = GatheredOutput()
        counts = self.load().answer(read_lines(io.BytesIO(raw), longest_line(self._config.long), number=first), out)
        return out.content, counts

    def answers(self, texts: Sequence[str | None]) -> list[str | None]:
        """The answer to each text; None to None, and to a text that is refused."""
        out, longest, answering = GatheredOutput(), longest_line(self._config.long), self.load()
        contents = [(text or "").encode("utf-8", errors="surrogatepass") for text in texts]
        lines = [
            Line(number, 0, b"" if len(raw) > longest else raw, False, too_long=len(raw) > longest)
            for number, raw in enumerate(contents, start=1)
        ]
        answering.answer(lines, out)
        return [
            None if text is None or (not answer and answering.refuses(line)) else answer
            for text, line, answer in zip(texts, lines, out.whole, strict=True)
        ]


class GatheredOutput:
    """Answers in memory."""

    def __init__(self) -> None:
        self.whole: list[str] = []  # of each line
        self._answer: list[str] = []

    @property
    def content(self) -> bytes:
        return "".join(self.whole).encode("utf-8", errors="replace")

    def write(self, text: str) -> None:
        self._answer.append(text)

    def end(self, text: str) -> None:
        self.whole.append("".join((*self._answer, text)))
        self._answer.clear()

    def flush(self) -> None:
        pass


def _changed(path: str) -> DataError:
    return DataError(f"{path}: changed since its translation began. Restore it, or give another --output.")


def _shown(path: Path) -> Iterator[Path]:
    return (item for item in path.iterdir() if not item.name.startswith("."))


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        given = f"{path}: not written ({error.strerror})"
        raise DiskError(f"{given}. Free some space, then repeat the command: it goes on where it stopped.") from None
