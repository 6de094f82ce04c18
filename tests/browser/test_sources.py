"""The studio on models whose answers come from their source: passages with questions, and copied tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

import regarde
from tests.browser.conftest import Look, started
from tests.tasks import QUESTIONS, SPAN, saved

PASSAGE, QUESTION = "Ada goes. Hugo stays.", "Who goes?"
TEXT = f"{PASSAGE}\t{QUESTION}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of models by name; `copies` has learned nothing yet, and knows neither of the letters X and Y."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "pairs.tsv").write_text("".join(f"{n:03}\t{n:03}\n" for n in range(60)))
    sizes = [
        "training.steps=2",
        "model.embedding=6",
        "model.hidden=8",
        "model.maxout=4",
        "model.attention.score.size=8",
    ]
    copies = regarde.train(
        folder / "pairs.tsv", preset="copying-small", settings=["training.steps=2", *sizes], out=folder / "copies"
    )
    return {"ask": saved(folder / "ask", QUESTIONS), "span": saved(folder / "span", SPAN), "copies": copies.folder}


@pytest.fixture(scope="module")
def base(runs: dict[str, Path]) -> Iterator[str]:
    with started(*(f"{name}={folder}" for name, folder in runs.items())) as address:
        yield address


@pytest.mark.parametrize("name", ["ask", "span"])
def test_the_passage_is_shaded_by_where_the_answer_looks(
    look: Look, base: str, runs: dict[str, Path], name: str
) -> None:
    page = look(f"#predict?model={name}", base=base).page
    page.get_by_role("textbox", name="Passage").fill(f"{PASSAGE}\n{QUESTION}")
    page.locator(".verdict").wait_for()
    found = regarde.load(runs[name]).predict(TEXT)
    assert page.locator(".verdict").inner_text() == (found.text or "none")
    rows = np.array(found.attention)[: max(1, len(found.tokens) - found.finished)]
    weights = rows.mean(axis=0)
    end = list(found.source_tokens).index("⇥" if name == "ask" else "</s>")
    for part, places in (("passage", range(end)), ("question", range(end + 1, len(found.source_tokens) - 1))):
        chips = page.get_by_role("group", name=f"Weights on the {part}").get_by_role("button")
        told = [each.get_attribute("aria-label") for each in chips.all()]
        shown = [float(re.search(r"weight (\S+)$", label)[1]) for label in told]  # type: ignore[index]
        assert shown == pytest.approx(weights[list(places)], abs=1e-3)


def test_a_step_says_what_was_copied_and_from_where(look: Look, base: str, runs: dict[str, Path]) -> None:
    trace = regarde.load(runs["copies"]).trace("0XY").as_json()
    best = trace["hypotheses"][0]
    step, place = next((t, place) for t, place in enumerate(best["copied"]) if place is not None)
    page = look(f"#step?model=copies&text=0XY&step={step + 1}", base=base).page
    origin = page.locator(".origin")
    origin.wait_for()
    assert f"Copied from source token {place + 1}" in origin.inner_text()
    assert "vocabulary" in origin.inner_text()


def test_a_link_to_a_question_shows_the_whole_question(look: Look, base: str) -> None:
    page = look(f"#step?model=ask&text={quote(TEXT)}", base=base).page
    page.locator(".stage").wait_for()
    box = page.get_by_role("textbox", name="Passage")
    assert box.input_value() == f"{PASSAGE}\n{QUESTION}"
    assert box.evaluate("box => box.scrollHeight - box.clientHeight") <= 1
