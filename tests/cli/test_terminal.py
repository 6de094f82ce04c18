"""A model's text, a file's name and a file's content drive no terminal; a pipe gets what was said."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regarde import config
from regarde.errors import RegardeWarning, show_warning, warn
from regarde.folder import model as folder
from regarde.folder.model import Blueprint
from regarde.models import BahdanauConfig
from regarde.search import Greedy, Rules
from regarde.streaming.streams import tell
from regarde.text import TextConfig
from regarde.visualize.labels import seen

HOSTILE = "\x1b]0;owned\x07\x9b31m\u202e\r\x7f"
OBEYED = [c for c in HOSTILE if not c.isprintable()]


@pytest.fixture(scope="module")
def escaping(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says ESC and nothing else."""
    model = BahdanauConfig(embedding=5, hidden=6, maxout=4)
    text = TextConfig(normalize="none").train([("abc", HOSTILE)])
    built = model.build(len(text.source), len(text.target))
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.zero_()
        built.state_dict()["decoder.W_o.bias"][text.target.encode("\x1b")[0]] = 5.0
    search = Greedy(rules=Rules(max_ratio=0.0, max_extra=3))
    blueprint = Blueprint(model=model, text=TextConfig(normalize="none"), search=search)
    path = tmp_path_factory.mktemp("terminal") / "model"
    folder.save(path, config.as_table(blueprint), text, built, "a card")
    return path


def test_what_a_model_says_is_shown_and_not_obeyed(cli, escaping: Path) -> None:  # type: ignore[no-untyped-def]
    done = cli("show", escaping, "abc")
    assert done.code == 0
    assert b"\x1b" not in done.out
    assert done.out.decode().startswith("␛␛␛\n")


def test_a_filter_passes_what_a_model_says_through(cli, escaping: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "in").write_text("abc\n")
    assert cli("translate", escaping, "--input", tmp_path / "in").out == b"\x1b\x1b\x1b\n"


def test_an_error_that_quotes_a_file_or_its_name_drives_no_terminal(cli, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    recipe = tmp_path / "\x1b[31mred.toml"
    recipe.write_text('model = "\\u009b2J\\u202e"')
    done = cli("train", "dates", "--recipe", recipe)
    assert not any(c in done.error for c in OBEYED)
    missing = cli("train", "dates", "--recipe", tmp_path / "\x1b[31mred")
    assert "␛[31mred: no such file" in missing.error


def test_lines_for_people_keep_their_words(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    tell([f"one {HOSTILE}\n", "deux\u202fmots, \u200dمی\u200cخواهم\n"])
    warn(f"three {HOSTILE}")
    show_warning(RegardeWarning(f"four {HOSTILE}"), RegardeWarning, "", 0)
    out, error = (stream.decode() for stream in capfdbinary.readouterr())
    assert out == f"one {seen(HOSTILE)}\ndeux\u202fmots, \u200dمی\u200cخواهم\n"
    assert seen(HOSTILE) == "␛]0;owned␇\\u009b31m\\u202e␍␡"
    assert not any(c in error for c in OBEYED)
