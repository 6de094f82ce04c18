"""Translation in parts on this machine: the bytes of one process, whatever is killed, damaged or full meanwhile."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from regarde.errors import DataError
from regarde.folder import manifest
from regarde.streaming.filter import FilterConfig
from regarde.streaming.local import ProcessPool
from regarde.streaming.shards import PartsFolder, Plan, translate_shards

LONG = "ab " * 15_000  # refused: too many tokens for a model, and 45 kB that make a shard of a few lines


def lines(count: int, seed: int = 1) -> str:
    """Lines of few letters, the odd ones included that a file may have, in about a shard for each 500."""
    dice = random.Random(seed)
    rows = ["".join(dice.choices("abcdefgh ", k=dice.randint(1, 7))) for _ in range(count)]
    rows[1::37] = [""] * len(rows[1::37])
    rows[5::500] = [LONG] * len(rows[5::500])
    return "\r\n".join(rows[: count // 4]) + "\r\n" + "\n".join(rows[count // 4 :])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "in.txt"
    path.write_bytes(b"\xef\xbb\xbf" + lines(4000).encode())
    return path


@pytest.fixture(scope="module")
def expected(source: Path, tiny: Path, regarde) -> bytes:
    """What one process writes."""
    done = regarde("translate", tiny, "--input", source)
    assert done.code == 3, "8 lines are refused"
    return done.out


def together(folder: Path) -> bytes:
    """All parts, as the manifest lists them."""
    listed = manifest.read(folder)
    for name, entry in listed.items():
        manifest.check_file(folder / name, entry)
    assert sorted(listed) == sorted(path.name for path in folder.glob("part-*"))
    return b"".join((folder / name).read_bytes() for name in sorted(listed))


def recorded(folder: Path) -> int:
    path = folder / "parts.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end, "it did not happen within a minute"
        time.sleep(0.005)


def children(process: subprocess.Popen[bytes]) -> list[int]:
    return [int(each) for each in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


@pytest.fixture
def plan(source: Path, tiny: Path) -> Plan:
    return Plan.of(FilterConfig(runs=(str(tiny),)), [source])


def test_shards_are_whole_windows_and_all_bytes_of_the_file(plan: Plan, source: Path) -> None:
    assert len(plan.shards) > 5
    assert all(shard.lines % 256 == 0 for shard in plan.shards[:-1])
    assert b"".join(map(plan.raw, plan.shards)) == source.read_bytes()
    assert [shard.first for shard in plan.shards[1:]] == [shard.first + shard.lines for shard in plan.shards[:-1]]


@pytest.mark.parametrize("options", [(), ("--n-best", 2), ("--json",), ("--sample", "--long", "truncate")])
def test_all_parts_together_are_the_bytes_of_one_process(
    cli, source: Path, tiny: Path, tmp_path: Path, options: tuple[object, ...]
) -> None:
    one = cli("translate", tiny, "--input", source, *options)
    several = cli("translate", tiny, "--input", source, *options, "--output", tmp_path / "out", "--on", "local:2")
    assert several.code == one.code
    assert several.error.splitlines()[-1:] == one.error.splitlines()[-1:]  # of refused or truncated lines
    assert together(tmp_path / "out") == one.out


def test_several_files_are_answered_one_after_the_other(cli, tiny: Path, tmp_path: Path) -> None:
    for name in "ba":
        (tmp_path / f"{name}.txt").write_text(f"{name}b\n{name}c\n" * 20)
    answers = [cli("translate", tiny, "--input", tmp_path / f"{name}.txt").out for name in "ab"]
    done = cli("translate", tiny, "--input", tmp_path / "?.txt", "--output", tmp_path / "out", "--on", "local:1")
    assert done.code == 0
    assert together(tmp_path / "out") == b"".join(answers)
    assert "2 of 2 parts, of 80 lines" in done.error


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_driver_that_was_ended_goes_on(
    start, cli, source: Path, tiny: Path, tmp_path: Path, expected: bytes, number: signal.Signals
) -> None:
    out = tmp_path / "out"
    command = ("translate", tiny, "--input", source, "--output", out, "--on", "local:2")
    with start(*command) as process:
        until(lambda: recorded(out) >= 2)
        process.send_signal(number)
        process.wait(timeout=20)
        error = process.stderr.read().decode()
    assert process.returncode == (-9 if number is signal.SIGKILL else 128 + number)
    if number is not signal.SIGKILL:
        assert f"stopped by {number.name} after" in error
        assert "Repeat the command to continue" in error
    done = cli(*command)
    assert done.code == 3, done.error
    assert together(out) == expected
    assert re.search(r"[2-8] were there already", done.error)
    assert "9 of 9 parts, of 4,000 lines, were there already" in cli(*command).error


def test_a_worker_that_was_killed_is_replaced(start, source: Path, tiny: Path, tmp_path: Path, expected: bytes) -> None:
    out = tmp_path / "out"
    with start("translate", tiny, "--input", source, "--output", out, "--on", "local:2") as process:
        until(lambda: recorded(out) >= 1)
        os.kill(children(process)[0], signal.SIGKILL)
        error = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 3
    assert error.count("a worker has ended (signal 9), so they are given to another worker") == 1
    assert together(out) == expected


def test_a_shard_on_which_ten_workers_die_is_set_aside(
    source: Path, tiny: Path, tmp_path: Path, expected: bytes, regarde
) -> None:
    poisoned = source.read_bytes().split(b"\n")
    poisoned[700] = b"poison"
    (tmp_path / "in.txt").write_bytes(b"\n".join(poisoned))
    (tmp_path / "sitecustomize.py").write_text(
        "import os\n"
        "from regarde.streaming.shards import ShardWorker\n"
        "answer = ShardWorker.answer\n"
        "def dying(self, raw, first):\n"
        "    if b'poison' in raw:\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return answer(self, raw, first)\n"
        "ShardWorker.answer = dying\n"
    )
    out = tmp_path / "out"
    command = ("translate", tiny, "--input", tmp_path / "in.txt", "--output", out, "--on", "local:2")
    done = regarde(*command, PYTHONPATH=":".join([str(tmp_path), *sys.path]))
    assert done.code == 3
    last = done.error.splitlines()[-1]
    assert "1 part is missing: lines 513 to " in last
    assert "10 workers have ended on it, the last one: a worker has ended (signal 9)" in last
    assert not (out / manifest.MANIFEST).exists()
    assert recorded(out) == len(json.loads((out / "plan.json").read_text())["shards"]) - 1
    assert regarde(*command).code == 3, "now without what kills: only long lines are refused"
    assert together(out).count(b"\n") == expected.count(b"\n")


@pytest.fixture
def opened(source: Path, tiny: Path, tmp_path: Path) -> Iterator[PartsFolder]:
    """A folder for two files, of which nothing is answered."""
    config = FilterConfig(runs=(str(tiny),), threads=1)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"{name[0]}\n" * 300)
    with PartsFolder.opened(tmp_path / "out", config, [tmp_path / "a.txt", tmp_path / "b.txt"]) as folder:
        yield folder


@pytest.fixture
def pool(tiny: Path) -> Iterator[ProcessPool]:
    made = ProcessPool(FilterConfig(runs=(str(tiny),), threads=1), 1)
    yield made
    made.close()


def test_a_file_that_cannot_be_read_is_set_aside_and_the_rest_is_whole(
    opened: PartsFolder, pool: ProcessPool, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").unlink()
    assert translate_shards(opened, pool) == {0: "not readable (No such file or directory)"}
    assert opened.part(1).read_bytes().count(b"\n") == 300
    assert not (tmp_path / "out" / manifest.MANIFEST).exists()


def test_a_file_that_changes_underneath_ends_the_command(
    opened: PartsFolder, pool: ProcessPool, tmp_path: Path
) -> None:
    (tmp_path / "b.txt").write_text("c\n" * 300)
    with pytest.raises(DataError, match=r"b\.txt: changed since its translation began"):
        translate_shards(opened, pool)
    assert opened.part(0).exists()
    assert not opened.part(1).exists()


@pytest.fixture
def begun(cli, tiny: Path, tmp_path: Path) -> tuple[object, ...]:
    """A command that has come to its end."""
    (tmp_path / "in.txt").write_text("ab\nba\n")
    command = ("translate", tiny, "--input", tmp_path / "in.txt", "--output", tmp_path / "out", "--on", "local:1")
    assert cli(*command).code == 0
    return command


def test_a_file_that_has_changed_before_the_next_command_is_refused(cli, begun, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("ab\nbb\n")
    assert "in.txt: changed since its translation began" in cli(*begun).fails(3)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--beam", 3), "begun with beam = null, now 3"),
        (("--input", "other"), "begun for other files"),
        (("--on", "ray:1"), "expected local, local:N, ray or ray://HOST:PORT"),
        (("--on", "local", "--resume"), "leave out --resume"),
    ],
)
def test_a_folder_goes_on_only_with_the_same_command(cli, begun, more, told: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("ab\n")
    given = [tmp_path / each if each == "other" else each for each in more]
    assert told in cli(*begun, *given).fails(2)


def test_a_folder_goes_on_only_with_the_same_model(cli, begun, plain: Path, tiny: Path) -> None:
    assert "begun with another model" in cli(*[plain if each == tiny else each for each in begun]).fails(2)


def test_of_two_drivers_on_one_folder_the_second_is_refused(cli, begun, tmp_path: Path) -> None:
    with manifest.alone(tmp_path / "out"):
        assert f"process {os.getpid()} is writing parts here" in cli(*begun).fails(2)


def test_a_folder_of_something_else_is_not_touched(cli, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("ab\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    command = ("translate", tiny, "--input", tmp_path / "in.txt", "--on", "local", "--output")
    assert "not a folder that --on has begun" in cli(*command, tmp_path / "mine").fails(2)
    assert "a file, but --on writes a folder" in cli(*command, tmp_path / "in.txt").fails(2)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_a_part_that_was_damaged_is_computed_again(cli, begun, tmp_path: Path) -> None:
    part, before = tmp_path / "out" / "part-000000.txt", together(tmp_path / "out")
    part.write_bytes(b"x" + before[1:])
    done = cli(*begun)
    assert done.code == 0
    assert "part-000000.txt: damaged or removed, computed again" in done.error
    assert together(tmp_path / "out") == before


def test_a_record_that_was_not_finished_is_cut_off(cli, begun, tmp_path: Path) -> None:
    before = together(tmp_path / "out")
    records = tmp_path / "out" / "parts.jsonl"
    records.write_bytes(records.read_bytes()[:-9])
    assert "1 of 1 part, of 2 lines, in" in cli(*begun).error
    assert together(tmp_path / "out") == before
    assert "1 of 1 part, of 2 lines, were there already" in cli(*begun).error


def test_a_full_disk_ends_it_with_5_and_the_parts_before_are_kept(
    source: Path, tiny: Path, tmp_path: Path, expected: bytes, regarde
) -> None:
    out = tmp_path / "out"
    command = ["translate", tiny, "--input", source, "--output", out, "--on", "local:1"]
    regarde(*command)
    largest = (max(path.stat().st_size for path in out.glob("part-*")) - 1) // 1024  # what the model says decides
    shutil.rmtree(out)
    limited = f"ulimit -f {largest}; exec {sys.executable} -m regarde {' '.join(map(str, command))}"  # of 1,024 bytes
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", ":".join(sys.path))
        done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stderr
    assert "not written (File too large). Free some space, then repeat the command" in done.stderr
    kept = recorded(out)
    assert 0 < kept < 9
    assert regarde(*command).code == 3
    assert together(out) == expected


def test_the_error_of_a_worker_is_that_of_the_command(cli, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("ab\n")
    run = shutil.copytree(tiny, tmp_path / "run")
    weights = bytearray((run / "weights.safetensors").read_bytes())
    weights[-5] ^= 1
    (run / "weights.safetensors").write_bytes(weights)
    done = cli("translate", run, "--input", tmp_path / "in.txt", "--output", tmp_path / "out", "--on", "local:1")
    assert "SHA-256 differs" in done.fails(4)
