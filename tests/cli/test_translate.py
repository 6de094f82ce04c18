"""`regarde translate` as a process between two pipes, and its options."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
        "regarde: warning: 1 lines have a lone CR inside, kept as text",
        "regarde: warning: 1 lines held bytes that are no text; they were replaced by U+FFFD",
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
        assert error.decode().splitlines() == ["regarde: 1 lines were too long and got an empty answer. Cut them."]


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


# Its options, in this process


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(b"abc\nhgf\n")
    return path


def test_a_file_can_be_given(cli, tiny: Path, text: Path) -> None:
    done = cli("translate", tiny, "--input", text)
    assert (done.code, done.error, done.out.count(b"\n")) == (0, "", 2)


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam", "0"], "greater than or equal to 1"),
        (["--beam", "1000000000"], "less than or equal to 1000"),
        (["--beam", "x"], "--beam"),
        (["--n-best", "4", "--beam", "3"], "n_best = 4: expected at most the beam size, 3"),
        (["--sample", "--beam", "2"], "--beam and --alpha exclude --sample"),
        (["--sample", "--n-best", "200"], "expected a value from 1 to 100"),
        (["--sample", "--temperature", "nan"], "--temperature"),
        (["--sample", "--top-p", "1.5"], "--top-p"),
        (["--seed", "5"], "--seed is about sampling"),
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


def test_a_model_that_is_not_there_is_exit_code_4(cli, text: Path, tmp_path: Path) -> None:
    assert "no such folder" in cli("translate", tmp_path / "none", "--input", text).fails(4)
    assert "no manifest.json" in cli("translate", tmp_path, "--input", text).fails(4)


def test_a_model_without_attention_gives_none(cli, plain: Path, text: Path) -> None:
    record = json.loads(cli("translate", plain, "--input", text, "--json").out.splitlines()[0])
    assert record["attention"] is None
    assert record["links"] == []
