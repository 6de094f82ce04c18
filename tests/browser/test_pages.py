"""The studio as somebody meets it: typing, stepping, scrubbing, switching, sharing a link."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

import regarde
from regarde.studio import enclosed
from tests.browser.conftest import Look, Watched

TEXT = "abcde"


def said(page: Any) -> str:
    """The tokens of the translation, without the end."""
    return "".join(page.get_by_role("group", name="Translation", exact=True).locator("bdi").all_inner_texts())


def hash_of(page: Any) -> str:
    page.wait_for_timeout(200)  # the address is written a little after the last change
    return str(page.evaluate("location.hash"))


def test_typing_translates(look: Look) -> None:
    page = look("#translate").page
    page.get_by_role("textbox", name="Sentence to translate").type("abc")
    page.get_by_role("group", name="Source tokens").wait_for()
    assert said(page)
    assert "text=abc" in hash_of(page)


def test_pointing_at_a_token_tints_what_it_looked_at(look: Look) -> None:
    page = look(f"#translate?text={TEXT}").page
    group = page.get_by_role("group", name="Translation", exact=True)
    group.get_by_role("button").first.hover()
    tints = (
        page.get_by_role("group", name="Source tokens")
        .locator("button")
        .evaluate_all("chips => chips.map(chip => parseFloat(chip.dataset.tint))")
    )
    assert sum(tints) == pytest.approx(100, abs=len(tints))
    page.get_by_role("group", name="Source tokens").get_by_role("button").first.focus()
    assert "attended to by" in page.locator(".readout").inner_text()


def test_a_beam_offers_what_else_it_might_have_said(look: Look) -> None:
    page = look(f"#translate?text={TEXT}&beam=3").page
    ranking = page.get_by_role("list", name="Translations found")
    ranking.get_by_role("button").nth(2).wait_for()
    second = ranking.get_by_role("button").nth(1)
    text = second.locator("bdi").inner_text()
    second.click()
    assert said(page).replace("</s>", "") == text
    assert "rank=1" in hash_of(page)


def test_keys_walk_from_step_to_step(look: Look) -> None:
    page = look(f"#step?text={TEXT}").page
    slider = page.get_by_role("slider", name="Step")
    slider.wait_for()
    page.locator("main").focus()
    last = int(slider.get_attribute("max") or 0)
    for key, step in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", last), ("Home", 0)):
        page.keyboard.press(key)
        assert slider.input_value() == str(step)
    page.keyboard.press("ArrowRight")
    assert "step=1" in hash_of(page)


def test_the_slider_scrubs(look: Look) -> None:
    page = look(f"#step?text={TEXT}").page
    page.get_by_role("slider", name="Step").fill("2")
    current = page.get_by_role("group", name="Translation", exact=True).locator("[aria-current=step]")
    assert current.get_attribute("aria-label").startswith("Step 3:")


def test_space_plays_through_the_phases_and_pauses(look: Look) -> None:
    page = look(f"#step?text={TEXT}", motion=True).page
    page.get_by_role("button", name="Play").wait_for()
    page.locator("main").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Pause").wait_for()
    phases = page.get_by_role("list", name="Within the step").get_by_role("button")
    page.locator(".phases [aria-pressed=true]", has_text=re.compile("Scores|Weights|Context")).wait_for()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Play").wait_for()
    pressed = [phases.nth(i).get_attribute("aria-pressed") for i in range(phases.count())]
    assert pressed.count("true") == 1


def test_whoever_wants_no_motion_sees_whole_steps(look: Look) -> None:
    page = look(f"#step?text={TEXT}").page
    page.get_by_role("button", name="Play").click()
    page.get_by_text(re.compile("^2 / ")).wait_for()
    assert page.locator(".phases [aria-pressed=true]").count() == 0


def test_the_weights_of_a_step_are_the_softmax_of_its_scores(look: Look) -> None:
    page = look(f"#step?text={TEXT}&step=1").page
    page.get_by_text("Numbers").click()
    rows = page.locator(".numbers tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].slice(1).map(cell => parseFloat(cell.innerText.replace('−', '-'))))"
    )
    total = sum(2.718281828**score for score, _ in rows)
    for score, weight in rows:
        assert weight == pytest.approx(2.718281828**score / total, abs=2e-3)


def test_every_quantity_opens_its_formula_with_the_numbers(look: Look) -> None:
    page = look(f"#step?text={TEXT}&step=1").page
    panel = page.get_by_role("region", name="Formula")
    for name in ("Encoder states", "Scores", "Weights", "Context", "Decoder state", "Candidates", "Token"):
        page.get_by_role("list", name="Within the step").get_by_role("button", name=name, exact=True).click()
        assert panel.get_by_role("heading").inner_text() == name
        assert panel.locator("math").count() >= 2
    page.get_by_role("list", name="Within the step").get_by_role("button", name="Token", exact=True).click()
    page.get_by_role("button", name=re.compile("^Weight of c")).click()
    weight = page.get_by_role("button", name=re.compile("^Weight of c")).locator(".figure").inner_text()
    assert weight in (panel.locator("math").last.text_content() or "")
    assert "open=softmax.2" in hash_of(page)


def test_the_context_is_the_states_mixed_by_their_weights(look: Look) -> None:
    page = look(f"#step?text={TEXT}&step=1&open=context").page
    panel = page.get_by_role("region", name="Formula")
    panel.get_by_text("Numbers: ").click()
    mixed = panel.locator("tbody td").evaluate_all("cells => cells.map(cell => +cell.innerText.replace('−', '-'))")
    engine = re.search(r"\|=([0-9.]+)", " ".join(panel.locator("math").all_text_contents()))
    assert engine is not None
    assert math.hypot(*mixed) == pytest.approx(float(engine[1]), abs=0.01)


def test_each_head_can_be_looked_at_alone(look: Look) -> None:
    page = look("#step?text=012&model=heads").page
    page.get_by_role("button", name="Layer 1, head 2").click()
    assert "layer=0&head=1" in hash_of(page)
    page.get_by_role("button", name=re.compile("^Score of 0: −?[0-9]")).wait_for()


def test_a_model_without_attention_is_walked_through_too(look: Look) -> None:
    page = look("#step?text=012&model=plain").page
    page.get_by_text("No attention: the decoder starts from").wait_for()
    assert page.get_by_role("button", name=re.compile("^Weight of")).count() == 0
    page.keyboard.press("3")
    page.get_by_text("there are no weights to show").wait_for()


def test_a_link_reproduces_the_view(look: Look) -> None:
    first = look(f"#step?text={TEXT}&beam=2").page
    first.get_by_role("slider", name="Step").fill("3")
    first.get_by_role("button", name=re.compile("^Score of b")).click()
    address = hash_of(first)
    second = look(address).page
    for page in (first, second):
        page.get_by_role("region", name="Formula").wait_for()
    assert second.locator("main").inner_text() == first.locator("main").inner_text()


def test_views_are_reached_by_number_and_left_by_the_back_button(look: Look) -> None:
    page = look(f"#translate?text={TEXT}").page
    page.get_by_role("group", name="Source tokens").wait_for()
    page.locator("main").focus()
    for number, name in enumerate(("Translate", "Step", "Align"), start=1):
        page.keyboard.press(str(number))
        assert page.locator("nav [aria-current=page]").inner_text() == name
    page.go_back()
    assert page.locator("nav [aria-current=page]").inner_text() == "Step"
    assert page.get_by_role("textbox", name="Sentence to translate").input_value() == TEXT


def test_arrows_move_from_cell_to_cell(look: Look) -> None:
    page = look(f"#align?text={TEXT}").page
    page.locator(".matrix").wait_for()
    page.locator(".matrix").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert re.search(r"attends to .*: [01]\.\d{3}", page.locator(".readout").inner_text())


def test_an_alignment_can_be_taken_away(look: Look, tmp_path: Path) -> None:
    page = look(f"#align?text={TEXT}&form=lines").page
    starts = {"SVG": b"<svg", "PNG": b"\x89PNG", "CSV": b'"","a","b"', "Pharaoh": b""}
    for name, start in starts.items():
        with page.expect_download() as coming:
            page.get_by_role("button", name=name, exact=True).click()
        coming.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    assert re.fullmatch(r"(\d+-\d+ ?)+\n", (tmp_path / "Pharaoh").read_text())


def test_a_long_sentence_is_painted(look: Look) -> None:
    page = look(f"#align?text={'abcdefgh' * 20}").page
    page.locator("canvas").wait_for()
    page.locator("canvas").hover(position={"x": 30, "y": 5})
    assert "attends to" in page.locator(".readout").inner_text()
    page.keyboard.press("2")
    page.get_by_text("those with the largest weights").wait_for()


def test_text_stays_text_in_any_script(look: Look) -> None:
    text = '<img src=x onerror="alert(1)">&amp; שלום ٣ مارس 🎉 e\u0301 \u202eabc'
    page = look("#align").page
    page.get_by_role("textbox", name="Sentence to translate").fill(text)
    page.locator(".matrix, canvas").first.wait_for()
    assert page.locator("main img").count() == 0
    page.keyboard.press("Tab")
    for number in "12":
        page.locator("main").focus()
        page.keyboard.press(number)
        page.get_by_role("group", name="Translation", exact=True).wait_for()
        assert page.locator("main img").count() == 0
    assert "\u202e" not in page.locator(".rows").inner_text()


def test_a_training_shows_its_curves_and_its_samples(look: Look) -> None:
    page = look(f"#train?text={TEXT}&run=tiny").page
    page.get_by_role("region", name="Loss").wait_for()
    page.get_by_role("region", name="Answers by checkpoint").get_by_role("button").first.click()
    page.locator(".sample .matrix").wait_for()


def test_what_the_studio_does_not_know_is_shown_by_its_own_name_and_formula(
    look: Look, tiny: Path, tmp_path: Path
) -> None:
    attention = {"kind": "sideways", "normalizer": "hardmax", "score": {"kind": "cosine"}}
    stated = {"score": r"e_{t,j} = g \cos(q_t, W h_j)", "weights": r"\alpha_{t,j} = \unheard(e", "context": "c_t = _"}
    described = {"name": "own", "settings": {"kind": "bag", "attention": attention}, "layers": 1, "formulas": stated}
    file = tmp_path / "own.html"
    file.write_text(enclosed.page(described, regarde.load(tiny).trace(TEXT)), encoding="utf-8")
    page = look("#step?open=scores", base=file.as_uri()).page
    panel = page.get_by_role("region", name="Formula")
    written = {}
    for name in ("Encoder states", "Decoder state", "Scores", "Weights", "Context", "Candidates"):
        page.get_by_role("list", name="Within the step").get_by_role("button", name=name, exact=True).click()
        assert panel.get_by_role("heading").inner_text() == name
        written[name] = panel.text_content() or ""
    assert "The score is cosine." in written["Scores"]
    assert "et,j=gcos(qt,Whj)" in written["Scores"]
    assert "Attention of kind sideways computes weights from the scores." in written["Weights"]
    assert "αt,j=unheard(e" in written["Weights"]
    everything = " ".join(written.values())
    for claim in ("tanh", "∑", "GRU", "maxout", "softmax", "add up to one"):  # of other models
        assert claim not in everything
    page.get_by_text("A model of kind bag: its decoder computes a context").wait_for()
    assert "Bahdanau" not in page.locator("main").inner_text()


def test_a_page_in_a_file_needs_no_server(look: Look, tiny: Path, cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "abc.html"
    assert cli("show", tiny, TEXT, "--html", file).code == 0
    page = look("", base=file.as_uri()).page
    assert page.locator("nav a").all_inner_texts() == ["Step", "Align"]
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("slider", name="Step").input_value() == "1"
    page.get_by_role("link", name="Align").click()
    page.locator(".matrix").wait_for()


VIEWS = {
    "translate": f"#translate?text={TEXT}&beam=3",
    "step": f"#step?text={TEXT}&step=2",
    "phase": f"#step?text={TEXT}&step=2&phase=scores",
    "heads": "#step?text=012&model=heads",
    "plain": "#step?text=012&model=plain",
    "align": f"#align?text={TEXT}",
    "lines": f"#align?text={TEXT}&form=lines",
    "train": f"#train?text={TEXT}&run=tiny",
    "empty": "#translate",
}


def settled(watched: Watched) -> Any:
    watched.page.wait_for_load_state("networkidle")
    watched.page.wait_for_timeout(300)  # a sentence is asked for a little after its last letter
    watched.page.wait_for_load_state("networkidle")
    return watched.page


ON_THE_PHONE = ["translate", "step", "heads", "align", "train"]


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_for_everybody(name: str, look: Look) -> None:
    assert_for_everybody(look, name, 1280, "light")


@pytest.mark.parametrize("name", ON_THE_PHONE)
def test_views_fit_a_phone_at_night(name: str, look: Look) -> None:
    assert_for_everybody(look, name, 390, "dark")


def assert_for_everybody(look: Look, name: str, width: int, scheme: str) -> None:
    watched = look(VIEWS[name], width=width, scheme=scheme)
    page = settled(watched)
    for closed in page.locator("details summary").all():
        closed.click()
    assert watched.violations() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
