"""Corpora on disk: the same trainings as in memory, found again, resumed, and never of other data."""

from __future__ import annotations

import io
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from regarde.data import encoding, sampling, stored, workers
from regarde.data.filestates import FileState
from regarde.data.formats import Pair
from regarde.errors import DataError, DiskError, RegardeError
from regarde.training import corpora, prepare
from regarde.training.prepare import PreparedTexts
from regarde.training.start import compose

PAIRS = [Pair(f"the {i} cats {i % 7}", f"die {i} Katzen {i % 7}") for i in range(60)]
SMALL = ["training.steps=3", "model.hidden=6", "model.embedding=5", "training.batch_pairs=4", "task.kind=translation"]


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "BLOCK", 5)
    monkeypatch.setattr(encoding, "BLOCK", 7)
    monkeypatch.setattr(corpora, "SHARE", 8)
    monkeypatch.setattr(corpora, "PART", 16)
    processes(monkeypatch, 1)


def processes(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(count)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "my.tsv", PAIRS)


def write(path: Path, pairs: list[Pair]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    return path


def prepared(data: Path | str, *settings: str, disk: bool = True) -> PreparedTexts:
    folder = [f"data.corpus={Path(data).parent / 'corpora'}"] if disk else []
    found = prepare.prepare(compose({"name": str(data)}, settings=[*SMALL, *folder, *settings]))
    assert isinstance(found, PreparedTexts)
    return found


def folders(data: Path, pattern: str = "*") -> list[Path]:
    return sorted(path for path in (data.parent / "corpora").glob(pattern) if not path.name.startswith("."))


def said(found: PreparedTexts, word: str) -> list[str]:
    return [note for note in found.notes if word in note]


SUBWORDS = ["text.source.kind=sentencepiece", "text.target.kind=sentencepiece"]
SIZES = ["text.source.size=60", "text.target.size=60"]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("settings", [[], [*SUBWORDS, *SIZES], [*SUBWORDS, *SIZES, "text.shared=true"]])
def test_a_corpus_on_disk_is_the_one_in_memory(
    data: Path, monkeypatch: pytest.MonkeyPatch, count: int, settings: list[str]
) -> None:
    expected = prepared(data, *settings, disk=False)
    processes(monkeypatch, count)
    found = prepared(data, *settings)
    assert found.digest() == expected.digest()
    assert found.recipe.data.sha256 == expected.recipe.data.sha256
    assert found.valid_pairs == expected.valid_pairs
    assert found.numbers.tolist() == expected.numbers.tolist()
    assert (found.text.source, found.text.target) == (expected.text.source, expected.text.target)
    assert found.train.longest == expected.train.longest
    assert [note for note in found.notes if not note.startswith(("corpus: ", "tokens: "))] == expected.notes
    assert said(found, "written to")[0].startswith(f"corpus: 60 pairs, written to {folders(data)[0]} (")
    assert (folders(data)[0] / "texts").stat().st_size == data.stat().st_size


def test_length_limits_and_options_leave_out_the_same_on_disk_and_in_memory(tmp_path: Path) -> None:
    odd = [PAIRS[3], Pair("short text", "x" * 90), Pair("привет, мир", "hallo"), Pair("a" * 99, "b" * 99)]
    data = write(tmp_path / "my.tsv", PAIRS + odd)
    settings = ["data.distinct=true", "data.max_ratio=3", "data.source_script=Latin", "data.max_target=40"]
    for disk in (True, False):
        found = prepared(data, *settings, disk=disk)
        assert said(found, "left out") == [
            "data: 2 of 64 left out (1 length ratio, 1 other script)",
            "data: 1 of 62 left out (duplicates)",
        ]
        assert len(found.train) + len(found.valid) == 60
        assert said(found, "1 over the length limits")
        assert found.numbers.max() <= 60
    assert prepared(data, *settings).digest() == prepared(data, *settings, disk=False).digest()


def test_a_second_training_reads_and_tokenizes_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepared(data)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(prepare, "_read_files", never)
    monkeypatch.setattr(corpora, "Workers", never)
    second = prepared(data)
    assert second.digest() == first.digest()
    assert second.valid_pairs == first.valid_pairs
    assert said(second, "found in")
    os.utime(data)  # the same content at another time
    assert prepared(data).digest() == first.digest()


def test_a_file_that_has_changed_is_read_again(data: Path) -> None:
    first = prepared(data)
    content = data.read_text()
    before = data.stat()
    data.write_text(content.replace("cats 3", "dogs 3"))  # of the same size …
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))  # … and the same time
    second = prepared(data)
    assert said(second, "has changed, so the corpus is written anew")
    assert second.digest() != first.digest()
    assert second.digest() == prepared(data, disk=False).digest()


def test_a_file_that_changes_while_it_is_read_is_an_error_and_leaves_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = prepare._read_files

    def slow(*arguments: object, **named: object) -> Iterator[Pair]:
        for pair in whole(*arguments, **named):  # type: ignore[arg-type]
            yield pair
            os.utime(data)

    monkeypatch.setattr(prepare, "_read_files", slow)
    with pytest.raises(DataError, match=r"my\.tsv: changed while it was read\. Repeat"):
        prepared(data)
    assert list((data.parent / "corpora").iterdir()) == []


def test_tokens_of_another_tokenizer_are_never_used(data: Path) -> None:
    characters, words = prepared(data), prepared(data, "text.source.kind=words")
    first, second = folders(data, "*/tokens-*")
    assert characters.digest() != words.digest()
    spare = first.rename(first.with_name("spare"))
    second.rename(first)
    spare.rename(second)
    for expected, settings in ((characters, []), (words, ["text.source.kind=words"])):
        found = prepared(data, *settings)
        assert said(found, "tokens of other pairs or tokenizers: written anew")
        assert found.digest() == expected.digest()


@pytest.mark.parametrize("name", ["tokens-*/source.ids", "tokens-*/numbers", "tokenizers-*/source.vocab", "pairs.json"])
@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_a_damaged_corpus_is_said_and_written_anew(data: Path, name: str, damage: str) -> None:
    expected = prepared(data).digest()
    (path,) = (data.parent / "corpora").glob(f"*/{name}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x80
    path.write_bytes(content if damage == "flipped" else content[:-1])
    found = prepared(data)
    assert said(found, "written anew")
    assert found.digest() == expected
    assert not said(prepared(data), "written anew")


def test_damaged_texts_are_found_before_they_are_tokenized(data: Path) -> None:
    prepared(data)
    (path,) = (data.parent / "corpora").glob("*/texts")
    path.write_bytes(path.read_bytes().replace(b"cats", b"cars"))
    with pytest.raises(DataError, match=r"/texts: SHA-256 differs.*Repeat the command"):
        prepared(data, "text.source.kind=words")
    assert not folders(data)
    assert said(prepared(data, "text.source.kind=words"), "written to")


def interrupted(monkeypatch: pytest.MonkeyPatch, after: int, error: BaseException) -> list[int]:
    """Stop with an error after some shares are tokenized; the list has the first row of each share."""
    firsts: list[int] = []
    whole = workers._Share.encode

    def encode(share: workers._Share, job: workers.Job) -> workers.JobResult:
        firsts.append(job["first"])
        if len(firsts) > after:
            raise error
        return whole(share, job)

    monkeypatch.setitem(workers._JOBS, "encode", encode)
    return firsts


def test_an_interrupted_command_goes_on_after_the_last_whole_part(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        firsts = interrupted(patch, 5, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            prepared(data)
        assert firsts == [0, 8, 16, 24, 32, 40]
    firsts = interrupted(monkeypatch, 99, KeyboardInterrupt())
    found = prepared(data)
    assert firsts == [32, 40, 48, 56]
    assert found.digest() == prepared(data, disk=False).digest()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Writes beyond so many bytes of a file fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("stage", ["pairs", "tokens"])
def test_a_full_disk_is_exit_code_5_and_the_command_goes_on(
    data: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["text.source.kind=words", "text.target.kind=words"]
    write(data, [Pair(f"the {i} cats {i % 7}", f"die {i % 9} Katzen") for i in range(200)])
    if stage == "tokens":
        prepared(data)  # the pairs are there, and to be tokenized in another way
    with largest_file(1000), pytest.raises(DiskError, match=r"not written \(File too large\).*data\.corpus") as raised:
        prepared(data, *words)
    assert raised.value.exit_code == 5
    firsts = interrupted(monkeypatch, 99, KeyboardInterrupt())
    assert prepared(data, *words).digest() == prepared(data, *words, disk=False).digest()
    assert firsts
    assert (0 in firsts) == (stage == "pairs")


def test_a_folder_that_cannot_be_written_is_exit_code_5(data: Path) -> None:
    (data.parent / "corpora").write_text("a file")
    with pytest.raises(DiskError, match=r"data\.corpus"):
        prepared(data)


def test_a_process_that_is_killed_is_an_error_and_the_command_goes_on(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes(monkeypatch, 2)
    whole = workers.Workers._give

    def give(crew: workers.Workers, number: int, job: workers.Job) -> None:
        if job.get("first") == 40:
            crew._processes[number].send_signal(signal.SIGKILL)
            crew._processes[number].wait()
        whole(crew, number, job)

    with monkeypatch.context() as patch:
        patch.setattr(workers.Workers, "_give", give)
        with pytest.raises(RegardeError, match=r"a process that tokenizes has ended \(signal 9\)"):
            prepared(data)
    assert prepared(data).digest() == prepared(data, disk=False).digest()


def test_standard_input_is_written_to_disk_and_found_by_its_content(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = prepared(data, disk=False).digest()
    settings = [f"data.corpus={data.parent / 'corpora'}"]
    for _ in range(2):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data.read_bytes())))
        found = prepare.prepare(compose({"name": "-"}, settings=[*SMALL, *settings]))
        assert found.digest() == expected
    assert [path.name[:6] for path in folders(data)] == ["stdin-"]
    assert len(folders(data, "*/tokens-*")) == 1


def test_several_files_and_patterns_are_one_corpus(data: Path, tmp_path: Path) -> None:
    write(tmp_path / "part-b.tsv", PAIRS[30:])
    write(tmp_path / "part-a.tsv", PAIRS[:30])
    expected = prepared(data, disk=False).digest()
    assert prepared(tmp_path / "part-*.tsv").digest() == expected
    more = f'data.more=["{tmp_path / "part-b.tsv"}"]'
    assert prepared(tmp_path / "part-a.tsv", more, disk=False).digest() == expected
    with pytest.raises(DataError, match="none-"):
        prepared(tmp_path / "none-*.tsv")


def test_a_corpus_is_large_when_its_texts_are(data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    prepared(data, disk=False)
    assert not (tmp_path / "cache").exists()
    monkeypatch.setattr(prepare, "IN_MEMORY", 1000)
    prepared(data, disk=False)
    assert len(list((tmp_path / "cache" / "regarde" / "corpora").glob("my-*/tokens-*"))) == 1


def test_the_order_of_a_large_corpus_is_made_a_pool_at_a_time(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = prepared(data)
    batches = found.train.epoch(seed=1, epoch=0, pairs=4, tokens=0)
    monkeypatch.setattr(sampling, "LARGEST_SHUFFLE", 10)
    found = prepared(data)
    pooled = found.train.epoch(seed=1, epoch=0, pairs=4, tokens=0)
    assert isinstance(pooled, sampling.PooledBatches)
    assert found.train.epoch(seed=1, epoch=0, pairs=4, tokens=0) is pooled
    assert sorted(row for batch in pooled for row in batch) == sorted(row for batch in batches for row in batch)
    expected = found.train.batch(pooled[0])
    for row, ids in zip(pooled[0].tolist(), expected.source.ids.tolist(), strict=True):
        assert ids[: len(found.train.sources[row])] == found.train.sources[row]


def test_times_are_trusted_only_after_a_while(data: Path) -> None:
    state = FileState.of(data).hashed()
    data.write_text(data.read_text().replace("Katzen 3", "Hunden 3"))
    same = FileState.of(data)
    forged = FileState(**vars(same) | {"sha256": state.sha256})
    assert not forged.still(read=time.time())  # it may have changed after it was read, within a tick of the clock
    assert forged.still(read=time.time() + 60)
