"""Every command that reads pairs asks the same questions about them and takes the same answers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

COMMANDS = {
    "evaluate": ["RUN", "--samples", 0, "--no-perplexity", "--json"],
    "compare": ["RUN", "RUN", "--samples", 0, "--json"],
    "align": ["RUN"],
    "inspect": ["RUN", "--most", 4],
    "shortlist": ["RUN"],
    "quantize": ["RUN", "--out", "OUT"],
}


@pytest.fixture
def call(cli, tiny: Path, tmp_path: Path):  # type: ignore[no-untyped-def]
    run = Path(shutil.copytree(tiny, tmp_path / "run"))

    def called(command: str, content: str, *options: str):  # type: ignore[no-untyped-def]
        (tmp_path / "my.tsv").write_text(content)
        places = {"RUN": run, "OUT": tmp_path / "out"}
        given = [places.get(str(word), word) for word in COMMANDS[command]]
        return cli(command, *given, "--data", tmp_path / "my.tsv", *options)

    return called


@pytest.mark.parametrize("command", COMMANDS)
def test_a_header_and_quotes_are_asked_about_and_answered(call, command: str) -> None:
    content = "source\ttarget\n" + '"abc"\t"abc"\n' * 3
    assert "--header to skip the row" in call(command, content).fails(3)
    if command != "align":  # which answers as it reads, and so asks last
        assert "--quotes to remove them" in call(command, content, "--header").fails(3)
    done = call(command, content, "--header", "--quotes")
    assert done.code == 0, done.error
    assert "header row skipped (source target)" in done.error


@pytest.mark.parametrize("command", COMMANDS)
def test_many_skipped_lines_are_a_warning_or_refused(call, command: str) -> None:
    few, many = "abc\tabc\n" * 3 + "abc\n", "abc\tabc\n" * 4 + "abc\n"
    assert "1 of 4 lines skipped (25.0%)" in call(command, few, "--on-error", "skip").fails(3)
    done = call(command, many, "--on-error", "skip")
    assert done.code == 0, done.error
    if command != "inspect":  # which has seen enough before
        assert "warning: 1 of 5 lines skipped (20.0%)" in done.error
