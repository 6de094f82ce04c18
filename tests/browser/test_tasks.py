"""The studio on models that classify, tag and continue texts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import regarde
from regarde.models.classifier import ClassifierConfig
from tests.browser.conftest import Look, Watched, started
from tests.browser.test_pages import hash_of, settled
from tests.tasks import CLASSIFIER, LANGUAGE_MODELS, TAGGER, saved

HOSTILE = "<img src=x onerror=alert(1)>"  # a label is the user's data as any other


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of models by name; two queries look at the text of `label`."""
    folder = tmp_path_factory.mktemp("tasks")
    labeled = replace(CLASSIFIER, model=ClassifierConfig(embedding=5, hidden=4, size=6, queries=2))
    hostile = replace(CLASSIFIER, pairs=(("the cat", HOSTILE), ("the mat", "place")))
    models = {"label": labeled, "tag": TAGGER, "hostile": hostile, **LANGUAGE_MODELS}
    return {name: saved(folder / name, model) for name, model in models.items()}


@pytest.fixture(scope="module")
def base(runs: dict[str, Path]) -> Iterator[str]:
    with started(*(f"{name}={folder}" for name, folder in runs.items())) as address:
        yield address


def test_a_label_is_shown_with_all_probabilities(look: Look, base: str, runs: dict[str, Path]) -> None:
    page = look("#predict?model=label", base=base).page
    page.get_by_role("textbox", name="Text to classify").type("the cat")
    bars = page.get_by_role("list", name="Probability of each label").locator("li:not(.axis)")
    bars.first.wait_for()
    expected = regarde.load(runs["label"]).predict("the cat")
    assert page.locator(".verdict").inner_text() == expected.text
    assert expected.probabilities is not None
    for bar, (label, p) in zip(bars.all(), expected.probabilities.items(), strict=True):
        assert bar.locator(".what").inner_text() == label
        widths = bar.locator(".gauge").evaluate("each => [each.firstChild.offsetWidth, each.clientWidth]")
        assert widths[0] / widths[1] == pytest.approx(p, abs=0.02)


def test_each_query_shades_the_text_by_its_weights(look: Look, base: str, runs: dict[str, Path]) -> None:
    page = look("#predict?model=label&text=the cat", base=base).page
    heads = regarde.load(runs["label"]).predict("the cat").heads  # (queries, 1, T, S)
    for query in (0, 1):
        chips = page.get_by_role("group", name=f"Weights of query {query + 1}").get_by_role("button")
        chips.first.wait_for()
        told = [float(re.search(r"weight (\S+)$", label)[1]) for label in labels(chips)]  # type: ignore[index]
        assert told == pytest.approx(heads[query, 0, 0, : len(told)].tolist(), abs=1e-3)
    chips.first.hover()
    assert "of query 2" in page.locator(".attended .readout").inner_text()


def labels(found: Any) -> list[str]:
    return [each.get_attribute("aria-label") for each in found.all()]


def test_tags_are_named_below_their_tokens(look: Look, base: str, runs: dict[str, Path]) -> None:
    text = "on the mat"
    page = look(f"#predict?model=tag&text={text}", base=base).page
    group = page.get_by_role("group", name="Tags")
    group.wait_for()
    tags = regarde.load(runs["tag"]).predict(text).text.split(" ")
    shown = [label.rpartition(",")[0] for label in labels(group.get_by_role("button"))]
    assert shown == [f"{word}: {tag}" for word, tag in zip(text.split(" "), tags, strict=True)]
    named = {tag.removeprefix("B-").removeprefix("I-") for tag in tags} - {"O"}
    assert set(group.locator(".tag").all_inner_texts()) - {""} == named != set()
    legend = page.get_by_role("list", name="Kinds of tags").locator("bdi").all_inner_texts()
    assert legend == ["ANIMAL", "PLACE"]
    group.get_by_role("button").last.focus()
    assert f"mat is tagged {tags[-1]}" in page.locator(".readout").inner_text()


def test_words_are_listed_by_their_weights(look: Look, base: str, runs: dict[str, Path]) -> None:
    page = look("#predict?model=label&text=the cat", base=base).page
    bars = page.get_by_role("list", name="Words by weight").locator("li")
    bars.first.wait_for()
    weights = regarde.load(runs["label"]).predict("the cat").heads[:, 0, 0].mean(axis=0)  # (S,) of both queries
    sums = {"the": float(weights[:3].sum()), "cat": float(weights[4:7].sum())}
    expected = sorted(sums.items(), key=lambda one: -one[1])
    shown = [(bar.locator(".what").inner_text(), float(bar.locator(".figure").inner_text())) for bar in bars.all()]
    assert [word for word, _ in shown] == [word for word, _ in expected]
    assert [weight for _, weight in shown] == pytest.approx([weight for _, weight in expected], abs=1e-3)


def test_a_tag_shows_the_words_that_it_depends_on(look: Look, base: str, runs: dict[str, Path]) -> None:
    words = ["on", "the", "mat"]
    page = look(f"#predict?model=tag&text={' '.join(words)}", base=base).page
    chips = page.get_by_role("group", name="Tags").get_by_role("button")
    chips.last.focus()
    model = regarde.load(runs["tag"])
    before = model.predict(" ".join(words))
    expected = []
    for hidden in range(3):
        other = model.predict(" ".join(word if i != hidden else "\ufffd" for i, word in enumerate(words)))
        same = other.text.split(" ")[2] == before.text.split(" ")[2]
        lost = math.exp(before.token_scores[2]) - math.exp(other.token_scores[2])
        expected.append(max(0.0, lost) if same else 1.0)
    assert max(expected) > 0.01  # else nothing would be shown
    tints = chips.evaluate_all("chips => chips.map(chip => Number(chip.dataset.tint))")
    assert tints == pytest.approx([100 * each for each in expected], abs=1)
    assert "depends on" in page.locator(".readout").inner_text()


def test_a_label_is_one_step_and_its_certain_end_is_none(look: Look, base: str) -> None:
    page = look("#step?model=label&text=the cat", base=base).page
    page.get_by_role("slider", name="Step").wait_for()
    assert page.locator(".transport .figures").inner_text() == "1 / 1"
    assert page.get_by_text("</s>").count() == 1  # of the text, which attention reads; not of the answer


def test_lines_of_a_text_break_between_words(look: Look, base: str) -> None:
    page = look(
        "#predict?model=recurrent&text=the cat sat on the mat and on monday the cat sat&length=30", base=base, width=390
    ).page
    group = page.get_by_role("group", name="Text", exact=True)
    group.wait_for()
    words = group.locator(".word")
    assert words.all_text_contents()[:6] == ["the ", "cat ", "sat ", "on ", "the ", "mat "]
    tops = "words => words.map(word => new Set([...word.children].map(chip => chip.offsetTop)).size)"
    assert set(words.evaluate_all(tops)[:6]) == {1}
    assert len({each.bounding_box()["y"] for each in words.all()}) > 1  # there is more than one line


def test_what_if_begins_after_the_prompt_and_each_version_looks_at_its_own_words(look: Look, base: str) -> None:
    page = look("#whatif?model=attentive&text=the c&length=4", base=base).page
    slider = page.get_by_role("slider", name="Step")
    slider.wait_for()
    assert slider.input_value() == "5"
    page.locator(".controls .words button[aria-pressed=false]").last.click()
    page.locator(".come").first.wait_for()
    assert page.locator(".change").first.inner_text().startswith("begins with the␣c")
    for version in page.locator(".versions article").all():
        version.locator("summary").first.click()
        version.locator("table").first.wait_for()
        said = version.locator(".line").locator("bdi").all_text_contents()
        head = version.locator("table").first.locator("thead th").all_text_contents()[1:]
        assert head == ["<s>", *(each.replace(" ", "␣") for each in said[:-1])]


def test_the_tree_of_a_text_begins_where_its_prompt_ends(look: Look, base: str) -> None:
    page = look("#beam?model=attentive&text=the cat sat on the mat&length=5", base=base, width=390).page
    page.locator(".tree .knot").first.wait_for()
    assert page.locator(".knot.given").count() == len("the cat sat on the mat")
    seen = page.locator(".tree").evaluate("box => [box.scrollLeft, box.clientWidth]")
    first = page.locator(".knot:not(.given) rect").first.evaluate("rect => rect.x.baseVal.value")
    assert seen[0] <= first <= sum(seen)


def test_the_tree_of_tags_names_tokens_and_no_controls(look: Look, base: str) -> None:
    page = look("#beam?model=tag&text=on the mat", base=base).page
    page.locator(".tree .knot").first.wait_for()
    assert page.locator(".tree .axis").all_text_contents()[-3:] == ["on", "the", "mat"]
    assert not {"<unk>", "</s>"} & set(page.locator(".tree .token").all_text_contents())


def test_a_prompt_is_continued_and_looks_back(look: Look, base: str, runs: dict[str, Path]) -> None:
    page = look("#predict?model=attentive&length=12", base=base).page
    page.get_by_role("textbox", name="Beginning of the text").type("the c")
    group = page.get_by_role("group", name="Text", exact=True)
    page.get_by_text("given").or_(group.locator(".chip.faded").nth(4)).first.wait_for()
    shown = "".join(group.locator("bdi").all_inner_texts()).replace("␣", " ")
    assert shown.startswith("the c")
    assert len(shown) > len("the c")
    group.get_by_role("button").nth(7).hover()
    assert "looks back at" in page.locator(".readout").inner_text()
    tints = group.locator("button").evaluate_all("chips => chips.map(chip => parseFloat(chip.dataset.tint))")
    assert max(tints[:7]) == 100 or "<s>" in page.locator(".readout").inner_text()
    assert set(tints[7:]) == {0}  # nothing is known of what comes later


def test_another_sample_is_another_text_and_the_address_has_its_seed(look: Look, base: str) -> None:
    page = look("#predict?model=recurrent&text=the&temperature=3&length=20", base=base).page
    group = page.get_by_role("group", name="Text", exact=True)
    group.wait_for()
    before = group.inner_text()
    page.get_by_role("button", name="Another sample").click()
    page.wait_for_function("before => document.querySelector('.generated .line')?.innerText !== before", arg=before)
    assert "seed=2" in hash_of(page)


def test_steps_of_a_text_are_over_its_own_words(look: Look, base: str) -> None:
    page = look("#step?model=attentive&text=the c&length=6", base=base).page
    slider = page.get_by_role("slider", name="Step")
    slider.wait_for()
    assert slider.input_value() == "5"  # the first token after the prompt
    rows = page.locator(".chart .rows li .what")
    assert rows.all_inner_texts() == ["<s>", "t", "h", "e", "␣", "c"]
    page.locator("main").focus()
    page.keyboard.press("ArrowRight")
    assert rows.count() == 7
    page.keyboard.press("Home")
    assert rows.all_inner_texts() == ["<s>"]
    assert page.locator(".spoken").inner_text().startswith("given:")


@pytest.mark.parametrize(
    ("model", "views"),
    [
        ("label", ["Classify", "Step", "What if", "Compare", "Train"]),
        ("tag", ["Tag", "Beam", "What if", "Compare", "Train"]),
        ("attentive", ["Generate", "Step", "Look back", "Beam", "What if", "Compare", "Train"]),
    ],
)
def test_a_task_has_its_views(look: Look, base: str, model: str, views: list[str]) -> None:
    page = look(f"#predict?model={model}", base=base).page
    page.locator("nav a", has_text=views[0]).wait_for()
    assert page.locator("nav a").all_inner_texts() == views


@pytest.mark.parametrize(("model", "view"), [("label", "align"), ("label", "beam"), ("tag", "step"), ("tag", "align")])
def test_a_view_that_a_task_does_not_have_says_why(look: Look, base: str, model: str, view: str) -> None:
    watched = look(f"#{view}?model={model}&text=the cat", base=base)
    page = settled(watched)
    assert "so there" in page.locator(".empty").inner_text() or "Classify shows" in page.locator(".empty").inner_text()
    page.get_by_role("link", name="Go to").click()
    page.locator(".answer").wait_for()
    assert watched.problems == []


def test_the_models_of_one_task_are_compared(look: Look, base: str) -> None:
    page = look("#compare?model=attentive&text=the&length=5", base=base).page
    page.locator(".models article").nth(2).wait_for()
    assert page.locator(".models h2").all_inner_texts() == ["recurrent", "attentive", "transformer"]


def test_a_forced_tag_changes_what_follows(look: Look, base: str) -> None:
    page = look("#whatif?model=tag&text=on the mat", base=base).page
    page.locator(".outcome").wait_for()
    assert page.get_by_text("hide it from attention").count() == 0  # tags have no attention to change
    page.locator(".controls button").last.click()
    page.get_by_role("list", name="What is changed").wait_for()


def test_labels_are_never_markup(look: Look, base: str) -> None:
    watched = look("#predict?model=hostile&text=the cat", base=base)
    page = watched.page
    page.get_by_text(HOSTILE).first.wait_for()
    for each in page.locator("details summary").all():
        each.click()
    assert page.locator("img").count() == 0
    watched.open("#step?model=hostile&text=the cat").locator(".stage").wait_for()
    assert page.locator("img").count() == 0


VIEWS = {
    "classify": "#predict?model=label&text=the cat",
    "tag": "#predict?model=tag&text=on the mat",
    "generate": "#predict?model=attentive&text=the c&length=12",
    "step of a label": "#step?model=label&text=the cat",
    "step of a text": "#step?model=transformer&text=the c&length=9",
    "step without attention": "#step?model=recurrent&text=the c&length=9",
    "look back": "#align?model=transformer&text=the c&length=9",
    "lines": "#align?model=attentive&text=the c&length=9&form=lines",
    "beam of a text": "#beam?model=attentive&text=the c&length=6",
    "beam of tags": "#beam?model=tag&text=on the mat",
    "what if of a label": "#whatif?model=label&text=the cat",
    "what if of a text": "#whatif?model=attentive&text=the c&length=6",
    "compare": "#compare?model=attentive&text=the c&length=6",
    "a view there is not": "#align?model=tag&text=on the mat",
    "empty": "#predict?model=tag",
}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_for_everybody(look: Look, base: str, name: str, width: int, scheme: str) -> None:
    watched: Watched = look(VIEWS[name], base=base, width=width, scheme=scheme)
    page = settled(watched)
    for closed in page.locator("details summary").all():
        closed.click()
    assert page.locator(".problem").count() == 0
    assert watched.violations() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
