"""`regarde translate` disturbed: consumers that are slow or die, producers that wait, kills, signals, full disks."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from regarde.errors import DiskError
from regarde.streaming.endpoints import to_file
from regarde.streaming.forms import Plain

FEW, MANY = 1_500, 100_000  # lines
FORMS = {"plain": [], "json": ["--json"], "ranked": ["--n-best", "3"]}
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak of memory from /proc")


def text(path: Path, lines: int) -> Path:
    """Words of the tiny model, some of them blank, some of them too long."""
    dice = random.Random(lines)
    words = ("".join(dice.choices("abcdefgh", k=dice.randint(0, 7))) for _ in range(lines))
    path.write_text("".join(f"{word}\n" for word in words))
    return path


def peak(process: subprocess.Popen[bytes]) -> int:
    """Kilobytes; 0 of a process that has ended."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), 0))


def until(true: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


# Kills, and going on


def check_kills(start, tiny: Path, folder: Path, lines: int, kills: int, options: list[str]) -> str:
    """Kill a run again and again and go on with it: the file is always a beginning, and in the end the whole."""
    given = text(folder / "text.txt", lines)
    whole, out = folder / "whole.txt", folder / "out.txt"
    command = ("translate", tiny, "--input", given, *options)
    began = time.monotonic()
    assert start(*command, "--output", whole).wait(timeout=600) == 0
    undisturbed, began = time.monotonic() - began, time.monotonic()
    expected = whole.read_bytes()
    for kill in range(kills):
        wanted = (kill + 1) * expected.count(b"\n") // (kills + 1)
        process = start(*command, "--output", out, "--resume")
        until(lambda wanted=wanted: lines_of(out) >= wanted, process)
        process.kill()
        process.wait()
        assert expected.startswith(out.read_bytes())
        assert lines_of(out) < expected.count(b"\n")
    assert start(*command, "--output", out, "--resume").wait(timeout=600) == 0
    assert out.read_bytes() == expected
    seconds = time.monotonic() - began
    return f"{lines:,} lines: {undisturbed:.1f} s undisturbed, {seconds:.1f} s with {kills} kills, same bytes"


@pytest.mark.parametrize("form", FORMS)
def test_a_run_killed_and_resumed_writes_the_bytes_of_an_undisturbed_one(
    start, tiny: Path, tmp_path: Path, form: str
) -> None:
    check_kills(start, tiny, tmp_path, FEW, 1, FORMS[form])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_100000_lines_killed_three_times_are_the_bytes_of_an_undisturbed_run(
    start, tiny: Path, tmp_path: Path, form: str
) -> None:
    print(form, check_kills(start, tiny, tmp_path, MANY if form == "plain" else MANY // 5, 3, FORMS[form]))


def check_faults(lab, tiny: Path, home: Path, mode: str, options: list[str], most: int | None) -> str:
    """A fault at calls that change the file, at all of them or at some."""
    given, folder = text(home / "text.txt", 300), home / "out"
    folder.mkdir()
    out = folder / "out.txt"

    def translate(*more: str, **how: list[object]):
        return lab.command("translate", tiny, "--input", given, "--output", out, *options, *more, **how)

    calls = translate(fault=[str(folder), 0, "count"]).counted
    expected = out.read_bytes()
    chosen = random.Random(mode).sample(range(1, calls + 1), calls if most is None else min(most, calls))
    for call in sorted(chosen):
        out.unlink(missing_ok=True)
        done = translate(fault=[str(folder), call, mode])
        left = out.read_bytes() if out.exists() else b""
        assert expected.startswith(left)
        if mode == "kill":
            assert done.code == -signal.SIGKILL
        else:
            assert done.code == 5
            assert ("No space left" if mode == "ENOSPC" else "Input/output error") in done.error
            assert len(done.error.splitlines()) == 1
            assert left == b"" or left.endswith(b"\n")
        assert translate("--resume").code == 0
        assert out.read_bytes() == expected
    return f"{mode} at {len(chosen)} of {calls} calls {options}: whole lines, and the same bytes once resumed"


@pytest.mark.parametrize(("mode", "form"), [("kill", "ranked"), ("ENOSPC", "json"), ("EIO", "plain")])
def test_a_fault_at_some_writes_leaves_whole_lines_and_can_be_resumed(
    faulty_lab, tiny: Path, tmp_path: Path, mode: str, form: str
) -> None:
    check_faults(faulty_lab, tiny, tmp_path, mode, FORMS[form], 2)


def test_a_disk_that_fills_up_within_a_line_leaves_the_lines_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, write = 15, os.write

    def filling(handle: int, content: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(handle, content[:room])
        room -= written
        return written

    out = to_file(tmp_path / "out.txt", Plain(), resume=False, skipped=0, source=None)
    for line in ("first\n", "second\n", "third\n"):
        out.end(line)
    monkeypatch.setattr(os, "write", filling)
    with pytest.raises(DiskError, match="--resume"):
        out.flush()
    out.close()
    assert (tmp_path / "out.txt").read_bytes() == b"first\nsecond\n"  # 13 of the 15 bytes that there was room for


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["kill", "ENOSPC", "EIO"])
@pytest.mark.parametrize("form", FORMS)
def test_a_fault_at_any_write_leaves_whole_lines_and_can_be_resumed(
    faulty_lab, tiny: Path, tmp_path: Path, mode: str, form: str
) -> None:
    most = 40 if form == "json" else None  # its answers are long, and its writes many and alike
    print(check_faults(faulty_lab, tiny, tmp_path, mode, FORMS[form], most))


def test_a_full_disk_behind_standard_output_is_exit_code_5(start, tiny: Path, tmp_path: Path) -> None:
    given = text(tmp_path / "text.txt", 10)
    with Path("/dev/full").open("wb") as full:
        process = start("translate", tiny, "--input", given, stdout=full)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 5
    assert error.decode() == "regarde: standard output: not written (No space left on device). Free some space.\n"


# Signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_between_two_lines_and_the_run_goes_on(
    start, tiny: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    given, out = text(tmp_path / "text.txt", 20_000), tmp_path / "out.txt"
    process = start("translate", tiny, "--input", given, "--output", out)
    until(lambda: lines_of(out) > 200, process)
    process.send_signal(number)
    began = time.monotonic()
    _, error = process.communicate(timeout=60)
    assert time.monotonic() - began < 5
    assert process.returncode == code
    left = out.read_bytes()
    assert left.endswith(b"\n")
    message = f"regarde: stopped by {number.name} after {lines_of(out):,} lines. Continue with --resume.\n"
    assert error.decode() == message


def test_a_signal_stops_a_run_whose_consumer_sleeps(start, tiny: Path, tmp_path: Path) -> None:
    given = text(tmp_path / "text.txt", 30_000)  # answers that no pipe holds
    process = start("translate", tiny, "--input", given)
    assert process.stdout.readline().endswith(b"\n")
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 143
    assert process.stdout.read().endswith(b"\n")
    assert process.stderr.read() == b"regarde: terminated\n"


def test_a_signal_that_was_ignored_stays_ignored(tiny: Path) -> None:
    script = f"trap '' INT; exec {sys.executable} -m regarde translate {tiny}"
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(["sh", "-c", script], stdin=pipe, stdout=pipe, env=environment) as process:
        for _ in range(2):
            process.stdin.write(b"abc\n")
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")
            process.send_signal(signal.SIGINT)
        process.stdin.close()
        assert process.wait(timeout=20) == 0


# Consumers and producers


def check_dying_consumer(start, tiny: Path, folder: Path, lines: int) -> str:
    given = text(folder / "text.txt", lines)
    process = start("translate", tiny, "--input", given)
    with subprocess.Popen([sys.executable, "-c", "import sys; [*sys.stdin]"], stdin=process.stdout) as consumer:
        process.stdout.close()
        time.sleep(2)
        consumer.kill()
    began = time.monotonic()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""
    return f"{time.monotonic() - began:.2f} s after its consumer was killed, it had ended"


def check_slow_consumer(start, tiny: Path, folder: Path, lines: int) -> str:
    """One that sleeps, then reads little by little: nothing is lost, and nothing piles up."""
    given, whole = text(folder / "text.txt", lines), folder / "whole.txt"
    assert start("translate", tiny, "--input", given, "--output", whole).wait(timeout=600) == 0
    process = start("translate", tiny, "--input", given)
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4_096)  # what waits shall wait in the process
    seen = os.read(process.stdout.fileno(), 100)
    before = after = peak(process)
    time.sleep(1)
    while chunk := os.read(process.stdout.fileno(), 1_000):
        seen += chunk
        time.sleep(0.002)
        if process.poll() is None:
            after = max(after, peak(process))
    assert process.wait(timeout=60) == 0
    assert seen == whole.read_bytes()
    assert after - before < 16 * 1024
    return (
        f"{lines:,} lines to a slow consumer: {before / 1024:.1f} MB after the first, {after / 1024:.1f} MB in the end"
    )


def check_pipe(start, tiny: Path, lines: int) -> str:
    """As many lines as wanted through two pipes: memory does not grow with them."""
    process = start("translate", tiny, stderr=None)
    dice = random.Random(7)
    sent, answered, early = 0, 0, 0
    began = time.monotonic()
    while sent < lines:
        words = ["".join(dice.choices("abcdefgh", k=dice.randint(0, 7))) for _ in range(500)]
        process.stdin.write("".join(f"{word}\n" for word in words).encode())
        process.stdin.flush()
        sent += len(words)
        for _ in words:
            answered += process.stdout.readline().endswith(b"\n")
        early = early or peak(process)
    late = peak(process)
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    assert answered == lines
    assert late - early < 8 * 1024
    seconds = time.monotonic() - began
    return f"{lines:,} lines in {seconds:.1f} s: {early / 1024:.1f} MB after 500, {late / 1024:.1f} MB in the end"


def test_a_consumer_that_is_killed_ends_it_quietly(start, tiny: Path, tmp_path: Path) -> None:
    check_dying_consumer(start, tiny, tmp_path, 30_000)


@needs_proc
def test_a_slow_consumer_gets_everything_in_bounded_memory(start, tiny: Path, tmp_path: Path) -> None:
    check_slow_consumer(start, tiny, tmp_path, FEW)


@needs_proc
def test_memory_does_not_grow_with_the_input(start, tiny: Path) -> None:
    check_pipe(start, tiny, FEW)


@pytest.mark.slow
@needs_proc
def test_100000_lines_are_translated_whatever_the_consumer(start, tiny: Path, tmp_path: Path) -> None:
    print(check_dying_consumer(start, tiny, tmp_path, MANY))
    print(check_slow_consumer(start, tiny, tmp_path, MANY))
    print(check_pipe(start, tiny, MANY))


def test_a_producer_that_waits_gets_each_answer_before_it_goes_on(start, tiny: Path) -> None:
    with start("translate", tiny) as process:
        waits = []
        for word in (b"abc", b"de\nfgh", b"", b"abc"):
            began = time.monotonic()
            process.stdin.write(word + b"\n")
            process.stdin.flush()
            for _ in range(1 + word.count(b"\n")):
                assert process.stdout.readline().endswith(b"\n")
            waits.append(time.monotonic() - began)
            time.sleep(0.05)
        assert max(waits[1:]) < 2  # the first one waits for the model
        process.stdin.close()
        assert process.wait(timeout=20) == 0
