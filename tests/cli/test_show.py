"""`regarde show` as a command."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from regarde.folder.loading import load
from regarde.models.classifier import ClassifierConfig
from regarde.visualize.style import DARK, LIGHT
from tests.tasks import CLASSIFIER, LANGUAGE_MODELS, TAGGER, saved


def test_the_translation_and_its_attention_are_drawn(cli, tiny: Path) -> None:
    done = cli("show", tiny, "abc")
    text, drawn = done.out.decode().split("\n", 1)
    assert (done.code, done.error) == (0, "")
    assert text
    assert f"abc → {text}" in drawn
    assert "</s>" in drawn
    assert "\x1b" not in drawn  # no terminal, no color


def test_the_beam_is_as_wide_as_told(cli, tiny: Path) -> None:
    translator, dice = load(tiny), Random(1)
    texts = ["".join(dice.choices("abcdefgh", k=12)) for _ in range(40)]
    greedy, wide = translator.translate(texts), translator.translate(texts, beam=8)
    place = next(place for place, one in enumerate(greedy) if one.text != wide[place].text)
    assert cli("show", tiny, texts[place]).out.decode().splitlines()[0] == greedy[place].text
    assert cli("show", tiny, texts[place], "--beam", 8).out.decode().splitlines()[0] == wide[place].text


def test_pictures_are_written(cli, tiny: Path, tmp_path: Path) -> None:
    svg, html, png = tmp_path / "a.svg", tmp_path / "a.html", tmp_path / "a.png"
    done = cli("show", tiny, "abc", "--svg", svg, "--html", html, "--png", png)
    assert done.code == 0
    assert done.error.splitlines() == [f"regarde: wrote {path}" for path in (png, svg, html)]
    assert svg.read_text().startswith("<svg") or "<svg" in svg.read_text()[:200]
    assert "<html" in html.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["", "  ", "\u2028"])
def test_nothing_to_translate_is_exit_code_2(cli, tiny: Path, text: str) -> None:
    assert "TEXT is blank" in cli("show", tiny, text).fails(2)


def test_a_model_without_attention_shows_its_text(cli, plain: Path, tmp_path: Path) -> None:
    done = cli("show", plain, "001")
    assert (done.code, done.out.count(b"\n")) == (0, 1)
    assert done.error == "regarde: this model has no attention to show\n"
    assert "nothing to draw" in cli("show", plain, "001", "--svg", tmp_path / "a.svg").fails(2)
    assert not list(tmp_path.iterdir())


def test_a_page_shows_the_steps_of_any_model(cli, plain: Path, tiny: Path, tmp_path: Path) -> None:
    for run, text in ((plain, "001"), (tiny, "abc")):
        page = tmp_path / f"{run.name}.html"
        assert cli("show", run, text, "--html", page, "--beam", 2).code == 0
        assert 'id="enclosed"' in page.read_text()
    assert "not written" in cli("show", tiny, "abc", "--html", tmp_path / "none" / "a.html").fails(5)


def test_a_picture_of_the_wrong_name_is_exit_code_2(cli, tiny: Path) -> None:
    assert "expected a name that ends in .svg" in cli("show", tiny, "abc", "--svg", "a.png").fails(2)


def test_a_picture_that_cannot_be_written_is_exit_code_5(cli, tiny: Path, tmp_path: Path) -> None:
    assert "not written" in cli("show", tiny, "abc", "--svg", tmp_path / "none" / "a.svg").fails(5)


def test_a_sentence_over_the_limit_is_exit_code_3(cli, tiny: Path) -> None:
    assert "A sentence of 1001 tokens" in cli("show", tiny, "a" * 1_001).fails(3)


def test_bytes_that_are_no_text_are_replaced(cli, tiny: Path) -> None:
    done = cli("show", tiny, os.fsdecode(b"a\xffb"))
    assert done.code == 0
    assert "replaced by U+FFFD" in done.error
    assert "a\ufffdb →" in done.out.decode()


TWICE = """
import os, sys
from regarde.cli.main import run
for color in ("", "1"):
    os.environ["NO_COLOR"] = color
    try:
        run()
    except SystemExit as end:
        print("code", end.code, flush=True)
"""


def test_a_terminal_gets_color_unless_it_wants_none(tiny: Path) -> None:
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path), "TERM": "xterm-256color"}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", TWICE, "show", str(tiny), "abc"]
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    drawn = b""
    while chunk := _read(ours):
        drawn += chunk
    assert process.communicate()[1] == b""
    colored, without, _ = drawn.split(b"code 0")
    assert b"\x1b[" in colored
    assert b"\x1b[" not in without


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # how Linux says that the other side is closed
        return b""


def test_bidirectional_controls_are_shown_and_change_no_order(cli, tiny: Path, tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    done = cli("show", tiny, "a\u202eb", "--html", page)
    assert done.code == 0
    assert r"a\u202eb →" in done.out.decode()
    assert "\u202e" not in done.out.decode()
    assert "\u202e" not in page.read_text()


def test_a_picture_for_print_is_drawn_of_one_model_of_its_heads_or_of_several(
    cli, tiny: Path, wordy: Path, tmp_path: Path
) -> None:
    for name, options in {
        "one.pdf": ["--values"],
        "dark.png": ["--dark", "--transparent", "--dpi", "50"],
        "heads.svg": ["--heads"],
        "models.svg": ["--beside", wordy / "run", "--beside", tiny],
    }.items():
        done = cli("show", tiny, "abc", "--picture", tmp_path / name, *options)
        assert (done.code, done.error) == (0, f"regarde: wrote {tmp_path / name}\n")
        assert (tmp_path / name).stat().st_size > 1000


def test_a_picture_stands_on_light_or_dark_paper_or_on_none(cli, tiny: Path, tmp_path: Path) -> None:
    papers = {"light.svg": [], "dark.svg": ["--dark"], "none.svg": ["--transparent"]}
    for name, options in papers.items():
        assert cli("show", tiny, "abc", "--picture", tmp_path / name, *options).code == 0
    light, dark, none = ((tmp_path / name).read_text() for name in papers)
    assert [DARK.paper in drawn for drawn in (light, dark, none)] == [False, True, False]
    assert [LIGHT.ink in drawn for drawn in (light, dark, none)] == [True, False, True]
    assert light != none


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--values"], "--values: for a picture, and none is drawn. Add --picture FILE."),
        (["--dpi", "300"], "--dpi 300: for a picture"),
        (["--beside", "other"], "--beside other: for a picture"),
        (["--picture", "a.gif"], "a.gif: unknown picture format. Use .svg, .pdf, .png or .html."),
        (["--picture", "a.svg", "--heads", "--beside", "other"], "Leave out one."),
    ],
)
def test_what_makes_no_picture_is_exit_code_2(cli, tiny: Path, options: list[str], told: str) -> None:
    assert told in cli("show", tiny, "abc", *options).fails(2)


def test_a_model_without_attention_cannot_stand_beside(cli, tiny: Path, plain: Path, tmp_path: Path) -> None:
    told = cli("show", tiny, "abc", "--picture", tmp_path / "a.svg", "--beside", plain).fails(2)
    assert f"--beside {plain}: a model without attention" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("task", ["classification", "tagging", "modeling"])
def test_every_task_is_shown_in_the_terminal_and_in_every_kind_of_picture(cli, tmp_path: Path, task: str) -> None:
    tiny = {"classification": CLASSIFIER, "tagging": TAGGER, "modeling": LANGUAGE_MODELS["transformer"]}[task]
    run, legend = saved(tmp_path / "run", tiny), {"classification": "label", "tagging": "tags", "modeling": "words"}
    for name in ("a.svg", "a.pdf", "a.png", "a.html"):
        done = cli("show", run, "the cat", "--picture", tmp_path / name)
        assert (done.code, done.error.splitlines()[-1]) == (0, f"regarde: wrote {tmp_path / name}")
        assert f"rows: {legend[task]})" in done.out.decode()
        assert (tmp_path / name).stat().st_size > 1000
    assert cli("show", run, "the cat", "--picture", tmp_path / "b.svg", "--heads").code == 0


def test_a_given_answer_is_shown_instead_of_the_models_own(cli, tmp_path: Path) -> None:
    label, model = saved(tmp_path / "c", CLASSIFIER), saved(tmp_path / "m", LANGUAGE_MODELS["attentive"])
    assert cli("show", label, "the cat", "--answer", "place").out.decode().startswith("place\nthe cat → place ")
    assert cli("show", model, "the ", "--answer", "").out.decode().startswith("the \n")
    assert cli("show", model, "the ", "--answer", "mat").out.decode().startswith("the mat\n")
    assert "Leave out --beam" in cli("show", model, "the ", "--answer", "mat", "--beam", 2).fails(2)
    assert "Give a text to show" in cli("show", model, "", "--answer", "").fails(2)


def test_a_prompt_is_continued_by_so_many_tokens(cli, tmp_path: Path) -> None:
    run = saved(tmp_path / "run", LANGUAGE_MODELS["attentive"])
    text = cli("show", run, "the ", "--length", 2).out.decode().splitlines()[0]
    assert text.startswith("the ")
    assert len(text) <= 6


def test_a_label_without_attention_is_told_with_its_probabilities(cli, tmp_path: Path) -> None:
    last = replace(CLASSIFIER, model=ClassifierConfig(embedding=5, hidden=4, size=6, pooling="last"))
    done = cli("show", saved(tmp_path / "run", last), "the cat")
    label = done.out.decode().strip()
    assert done.error.splitlines()[-1].startswith(f"regarde: this model has no attention to show; {label} ")
