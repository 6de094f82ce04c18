"""`regarde translate` as a process between two pipes, and its options."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from regarde.native import library

HEAVY = {
    *("torch", "matplotlib", "pandas", "sentencepiece", "rich", "babel", "sacrebleu", "jiwer", "tensorboard"),
    *("PIL", "scipy", "starlette", "uvicorn", "asyncio", "http", "ssl", "multiprocessing"),
    *("numpy.random", "numpy.fft", "numpy.polynomial", "numpy.ma", "numpy.testing"),
}

# As a process


def test_lines_go_in_and_come_out_before_the_end_and_an_interrupt_ends_it(start, tiny: Path) -> None:
    with start("translate", tiny) as process:
        for text in (b"abc\n", b"\n", b"dd\r\n"):
            process.stdin.write(text)
            process.stdin.flush()
            assert process.stdout.readline().endswith(text[-1:])  # would wait for ever if it were not flushed
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read().decode().split() == ["regarde:", "interrupted"]


def test_a_reader_that_leaves_ends_it_quietly(start, tiny: Path) -> None:
    with start("translate", tiny) as process:
        process.stdin.write(b"abc\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"abc\n")
        process.stdin.flush()  # and stays open: the command must end while it still waits for a line
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == b""


def test_a_pipe_of_odd_bytes_keeps_its_lines(regarde, tiny: Path) -> None:
    content = b"\xef\xbb\xbfabc\n\n\xff\xfe\0\n \r\na\rb\n\xe2\x80\xa8x\n</s>\nlast"
    done = regarde("translate", tiny, stdin=content, PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    assert done.code == 0
    assert done.out.count(b"\n") == content.count(b"\n")
    assert done.out.split(b"\n")[1] == b""
    assert done.error.splitlines() == [
        "regarde: warning: 1 line with a lone CR inside, kept as text",
        "regarde: warning: 1 line with bytes that are not text, replaced by U+FFFD",
        "regarde: warning: 1 line without any token that the model knows",
    ]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak of memory from /proc")
def test_a_line_of_a_hundred_megabytes_is_refused_in_bounded_memory(start, tiny: Path) -> None:
    with start("translate", tiny) as process:

        def answer(end: bytes) -> bytes:
            process.stdin.write(end)
            process.stdin.flush()
            return process.stdout.readline()

        def peak() -> int:
            status = Path(f"/proc/{process.pid}/status").read_text()
            return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))

        first, before = answer(b"abc\n"), peak()
        for _ in range(100):
            process.stdin.write(b"x" * 2**20)
        assert answer(b"\n") == b"\n"
        assert answer(b"abc\n") == first
        assert peak() - before < 16 * 1024  # kilobytes
        out, error = process.communicate(timeout=20)
        assert (process.returncode, out) == (3, b"")
        assert error.decode().splitlines() == [
            "regarde: 1 line too long, with an empty answer. Cut them, or choose --long split or truncate."
        ]


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [("<&-", 3, "standard input: closed"), ("</dev/null >&-", 5, "standard output: closed")],
)
def test_a_closed_stream_is_said_plainly(redirection: str, code: int, message: str) -> None:
    script = f"exec {sys.executable} -m regarde translate nowhere {redirection}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=False, env=_environment())
    assert done.returncode == code
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": ":".join(sys.path)}


@pytest.mark.skipif(not library.available(), reason="only the native engine needs so little")
def test_nothing_is_imported_that_translating_does_not_need(tiny: Path) -> None:
    code = f"""
import sys
from regarde.cli.main import run
sys.argv = ["regarde", "translate", {str(tiny)!r}, "--input", "/dev/null"]
try:
    run()
except SystemExit as ended:
    print(ended.code, *sorted(set(sys.modules) & {HEAVY!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=_environment())
    assert done.stdout.split() == [b"0"]


def test_an_input_that_does_not_block_is_read_to_its_end(tiny: Path) -> None:
    heard, told = os.pipe()
    os.set_blocking(heard, False)
    command = [sys.executable, "-m", "regarde", "translate", str(tiny)]
    with subprocess.Popen(command, stdin=heard, stdout=subprocess.PIPE, env=_environment()) as process:
        assert process.stdout is not None
        for _ in range(2):
            os.write(told, b"abc\n")
            assert process.stdout.readline().endswith(b"\n")
        os.close(told)
        assert process.wait(timeout=20) == 0
    os.close(heard)


def test_an_output_that_does_not_block_gets_everything(tiny: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"abc\n" * 30_000)  # more than a pipe holds
    heard, told = os.pipe()
    os.set_blocking(told, False)
    command = [sys.executable, "-m", "regarde", "translate", str(tiny), "--input", str(text)]
    with subprocess.Popen(command, stdout=told, env=_environment()) as process:
        os.close(told)
        time.sleep(1)
        with open(heard, "rb") as pipe:  # noqa: PTH123  # a handle, no path
            assert pipe.read().count(b"\n") == 30_000
        assert process.wait(timeout=20) == 0


# What a terminal shows


def shown(tiny: Path, text: Path, *options: str, **variables: str) -> str:
    """What stands on standard error, where that is a terminal and nothing else is."""
    handle, slave = pty.openpty()
    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    command = [sys.executable, "-m", "regarde", "translate", str(tiny), *options]
    environment = {name: value for name, value in _environment().items() if name not in ("NO_COLOR", "COLUMNS")}
    environment |= {"TERM": "xterm"} | variables
    with text.open("rb") as source:
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL, stderr=slave, env=environment)
    os.close(slave)
    seen = b""
    while True:
        try:
            seen += os.read(handle, 4096)
        except OSError:  # the terminal's way to end
            break
    os.close(handle)
    assert process.wait(timeout=20) == 0
    return seen.decode()


def test_a_terminal_is_told_how_far_it_is(tiny: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"abcdefg\n" * 2_000)
    seen = shown(tiny, text)
    assert re.search(r"translating .*[\d,]+ lines  [\d,]+ lines/s", re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", seen))
    assert "\x1b[?25h" in seen  # the cursor is back
    assert re.search(r"\x1b\[(\d+;)*3\dm", seen)
    assert not re.search(r"\x1b\[(\d+;)*3\dm", shown(tiny, text, NO_COLOR="1"))
    assert shown(tiny, text, TERM="dumb") == ""


# Its options, in this process


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(b"abc\nhgf\n")
    return path


def test_a_file_can_be_given(cli, tiny: Path, text: Path) -> None:
    done = cli("translate", tiny, "--input", text)
    assert (done.code, done.error, done.out.count(b"\n")) == (0, "", 2)


def test_answers_can_go_to_a_file_that_is_not_overwritten(cli, tiny: Path, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    expected = cli("translate", tiny, "--input", text).out
    done = cli("translate", tiny, "--input", text, "--output", out)
    assert (done.code, done.out, done.error) == (0, b"", "")
    assert out.read_bytes() == expected
    assert "exists and is not overwritten" in cli("translate", tiny, "--input", text, "--output", out).fails(2)
    assert out.read_bytes() == expected


def test_lines_can_be_left_out_at_the_start(cli, tiny: Path, text: Path) -> None:
    def rows(*options: object) -> list[bytes]:
        return cli("translate", tiny, "--input", text, "--n-best", 2, *options).out.splitlines()

    assert rows("--skip-lines", 1) == rows()[2:]
    assert rows("--skip-lines", 2) == []
    assert "has 2 lines, fewer than the 3" in cli("translate", tiny, "--input", text, "--skip-lines", 3).fails(3)


@pytest.mark.parametrize("options", [[], ["--json"], ["--n-best", "3"]])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_any_beginning_of_an_output_is_resumed_to_the_same_bytes(
    cli, tiny: Path, tmp_path: Path, options: list[str], end: bytes
) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "out.txt"
    text.write_bytes(b"abc\r\n\nde" + end)
    whole = cli("translate", tiny, "--input", text, *options).out
    for size in sorted({*range(0, len(whole), 1 + len(whole) // 7), len(whole) - 1, len(whole)}):
        out.write_bytes(whole[:size])
        done = cli("translate", tiny, "--input", text, "--output", out, "--resume", *options)
        assert (done.code, done.error) == (0, "")
        assert out.read_bytes() == whole


def test_a_resumed_run_counts_what_was_refused_before(cli, tiny: Path, tmp_path: Path) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "out.txt"
    text.write_bytes(b"x" * 1_001 + b"\nabc\n")
    out.write_bytes(b"\n")
    told = cli("translate", tiny, "--input", text, "--output", out, "--resume").fails(3)
    assert "1 line too long" in told
    assert out.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"1\t1\t-0.1000\tabc\n", [], "the row after the answer to line 0 has another format"),
        (b'{"source": "a", "text": "b"}\n', [], "has another format"),
        (b"abc\n", ["--json"], "has another format"),
        (b"abc\n", ["--n-best", "2"], "has another format"),
        (b"1\t1\t-0.1000\ta\n3\t1\t-0.1000\ta\n", ["--n-best", "2"], "the row after the answer to line 1"),
    ],
)
def test_an_output_of_another_kind_is_not_resumed(
    cli, tiny: Path, text: Path, tmp_path: Path, content: bytes, options: list[str], message: str
) -> None:
    out = tmp_path / "out.txt"
    out.write_bytes(content)
    told = cli("translate", tiny, "--input", text, "--output", out, "--resume", *options).fails(2)
    assert message in told
    assert out.read_bytes() == content


def test_an_output_longer_than_the_input_is_not_resumed(cli, tiny: Path, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    out.write_bytes(b"a\nb\nc\n")
    told = cli("translate", tiny, "--input", text, "--output", out, "--resume").fails(3)
    assert "The input has 2 lines, fewer than the 3 to leave out" in told


def test_an_output_that_cannot_be_is_said_plainly(cli, tiny: Path, text: Path, tmp_path: Path) -> None:
    def told(*options: object) -> str:
        return cli("translate", tiny, "--input", text, *options).fails(2)

    assert "is also the input" in told("--output", text, "--resume")
    assert "Name it with --output" in told("--resume")
    assert "not a regular file" in told("--output", "/dev/null", "--resume")
    missing = cli("translate", tiny, "--input", text, "--output", tmp_path / "none" / "x").fails(5)
    assert "cannot be written (No such file or directory)" in missing
    out = tmp_path / "out.txt"
    with out.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert "another process is writing it" in told("--output", out)


@pytest.mark.parametrize(("how", "warning"), [("split", "translated in pieces"), ("truncate", "only the first")])
def test_long_lines_are_cut_if_wanted_and_counted(cli, tiny: Path, tmp_path: Path, how: str, warning: str) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"ab " * 400 + b"\nabc\n")
    done = cli("translate", tiny, "--input", text, "--long", how)
    assert done.code == 0
    assert done.out.count(b"\n") == 2
    assert len(done.error.splitlines()) == 1
    assert "1 line too long" in done.error
    assert warning in done.error


@pytest.mark.parametrize("options", [[], ["--json", "--beam", "3"]])
def test_two_threads_say_what_one_says(cli, tiny: Path, tmp_path: Path, options: list[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(b"".join(b"%s\n" % (b"abcdefgh" * 2)[: 1 + n % 9] for n in range(600)))
    one, two = (cli("translate", tiny, "--input", text, "--threads", n, *options) for n in (1, 2))
    assert one.code == two.code == 0
    assert one.out == two.out


def test_beam_one_is_greedy_and_a_wider_beam_scores_no_worse(cli, tiny: Path, text: Path) -> None:
    def scores(*options: str) -> list[float]:
        lines = cli("translate", tiny, "--input", text, "--json", *options).out.splitlines()
        return [sum(json.loads(line)["token_scores"]) for line in lines]

    assert scores() == scores("--beam", "1")
    wide = cli("translate", tiny, "--input", text, "--beam", "8", "--n-best", "2")
    assert [line.split("\t")[0:2] for line in wide.out.decode().splitlines()] == [[n, r] for n in "12" for r in "12"]


@pytest.mark.parametrize("how", [[], ["--beam", "3"], ["--sample"]])
def test_answers_are_as_long_as_asked_for(cli, tiny: Path, text: Path, how: list[str]) -> None:
    lines = cli("translate", tiny, "--input", text, "--json", "--min-length", 12, *how).out.splitlines()
    assert len(lines) == 2
    for line in lines:
        tokens = json.loads(line)["tokens"]
        assert len(tokens) > 12
        assert "</s>" not in tokens[:12]


def test_samples_depend_on_the_seed_alone(cli, tiny: Path, text: Path) -> None:
    def drawn(*options: object) -> bytes:
        done = cli("translate", tiny, "--input", text, "--sample", *options)
        assert (done.code, done.error) == (0, "")
        return done.out

    assert drawn("--seed", 5) == drawn("--seed", 5)
    assert len({drawn("--seed", seed, "--temperature", 3) for seed in range(4)}) > 1
    assert drawn("--top-k", 1) == drawn("--top-p", 0) == cli("translate", tiny, "--input", text).out
    assert drawn("--n-best", 3).count(b"\n") == 6


def test_pruning_leaves_fewer_answers(cli, tiny: Path, text: Path) -> None:
    def found(*options: object) -> int:
        return cli("translate", tiny, "--input", text, "--beam", 8, "--n-best", 8, *options).out.count(b"\n")

    assert found("--prune", 0) == found()
    assert found("--prune", 1e-9) < found()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam", "0"], "'--beam': 0 is not in the range 1<=x<=1000"),
        (["--beam", "1000000000"], "'--beam': 1000000000 is not in the range 1<=x<=1000"),
        (["--beam", "x"], "--beam"),
        (["--n-best", "4", "--beam", "3"], "n_best = 4: expected at most the beam size, 3"),
        (["--sample", "--beam", "2"], "--beam, --alpha, --beta and --prune exclude --sample"),
        (["--sample", "--prune", "3"], "--beam, --alpha, --beta and --prune exclude --sample"),
        (["--prune", "inf"], "--prune"),
        (["--sample", "--n-best", "200"], "expected a value from 1 to 100"),
        (["--sample", "--temperature", "nan"], "--temperature"),
        (["--alpha", "nan"], "--alpha: nan is not a number"),
        (["--sample", "--top-p", "1.5"], "--top-p"),
        (["--seed", "5"], "--seed is a setting of sampling"),
        (["--device", "abacus"], "--device abacus: not available here. Available: auto, "),
        (["--threads", "-1"], "--threads"),
        (["--nbest", "3"], "--nbest"),
    ],
)
def test_a_wrong_option_is_exit_code_2(cli, tiny: Path, text: Path, options: list[str], message: str) -> None:
    assert message in cli("translate", tiny, "--input", text, *options).fails(2)


def test_a_text_that_is_not_there_is_exit_code_3(cli, tiny: Path, tmp_path: Path) -> None:
    assert "No such file" in cli("translate", tiny, "--input", tmp_path / "none").fails(3)
    assert "Is a directory" in cli("translate", tiny, "--input", tmp_path).fails(3)


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16LE", "UTF-32"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_text_in_utf_16_or_32_is_named_before_anything_is_written(
    cli, tiny: Path, tmp_path: Path, encoding: str, form: list[str]
) -> None:
    path, out = tmp_path / "text", tmp_path / "out"
    path.write_text("abc\n\nba\n", encoding=encoding)
    done = cli("translate", tiny, "--input", path, *form)
    assert f"{path}: {encoding}, expected UTF-8. Convert it: iconv -f {encoding} -t UTF-8" in done.fails(3)
    assert done.out == b""
    cli("translate", tiny, "--input", path, "--output", out, *form).fails(3)
    path.write_text("abc\n")
    assert cli("translate", tiny, "--input", path, "--output", out, *form).code == 0  # what was refused left no answers


def test_a_pipe_in_utf_16_is_named(regarde, tiny: Path) -> None:
    done = regarde("translate", tiny, stdin="abc\nba\n".encode("UTF-16"))
    assert "standard input: UTF-16, expected UTF-8. Convert it: … | iconv -f UTF-16 -t UTF-8" in done.fails(3)
    assert done.out == b""


def test_a_model_that_is_not_there_is_exit_code_4(cli, text: Path, tmp_path: Path) -> None:
    assert "no such folder" in cli("translate", tmp_path / "none", "--input", text).fails(4)
    assert "no manifest.json" in cli("translate", tmp_path, "--input", text).fails(4)


def test_a_model_without_attention_gives_none(cli, plain: Path, text: Path) -> None:
    record = json.loads(cli("translate", plain, "--input", text, "--json").out.splitlines()[0])
    assert record["attention"] is None
    assert record["links"] == []
