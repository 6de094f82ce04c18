"""A lab as one watches it: a line for each model on a terminal, and a quiet one anywhere else."""

from __future__ import annotations

import io
import re
import sys

import pytest

from regarde.display.lab import LabDisplay

NAMES = ["sutskever-small", "mine"]


class Terminal(io.StringIO):
    """Standard error, as a terminal has it."""

    def isatty(self) -> bool:
        return True


def watched() -> None:
    """A lab whose first model was finished before, and whose second is trained halfway and then to its end."""
    with LabDisplay() as display:
        display.planned(NAMES)
        display.ended("sutskever-small", "train")
        display.ended("sutskever-small", "measure")
        display.began("mine", "train")
        display.received("mine", {"value": "BLEU 20.1", "best": True})
        display.received("mine", {"value": "BLEU 19.0", "best": False})
        display.received("mine", {"share": 0.5, "loss": 1.23456, "seconds": 60.0})
        display.bar.refresh()
        display.ended("mine", "train")
        display.began("mine", "measure")
        display.ended("mine", "measure")


def test_a_terminal_has_a_line_for_each_model_with_share_loss_and_best_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    watched()
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", terminal.getvalue())]
    halfway = next(line for line in lines if " 50%" in line)
    assert halfway.startswith("mine ")
    assert "loss 1.235, best BLEU 20.1" in halfway
    assert any(line.startswith("sutskever-small") and "100%" in line and "done" in line for line in lines)
    assert "regarde:" not in terminal.getvalue()


def test_anywhere_else_there_is_a_line_for_each_part_that_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    watched()
    done = ["regarde: mine: trained, loss 1.235, best BLEU 20.1", "regarde: mine: measured"]
    assert capsys.readouterr().err.splitlines() == done


def test_where_nobody_listens_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    watched()
