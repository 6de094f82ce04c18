"""What the studio shows is current, complete and labeled: answers, settings, scores, axes, formulas, colors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regarde
from regarde.studio import enclosed
from regarde.visualize import Heatmap, save
from regarde.visualize.style import DARK, LIGHT
from tests.browser.conftest import Look
from tests.browser.test_exploring import TEXT, hash_of

ANSWERS = {  # the view, what shows its answer
    "translate": ".answer",
    "step": ".stage",
    "align": ".aligned",
    "beam": ".tree",
    "whatif": ".outcome",
    "compare": ".models .line",
}


@pytest.mark.parametrize("view", ANSWERS)
def test_a_request_that_fails_leaves_no_old_answer(look: Look, view: str) -> None:
    watched = look(f"#{view}?text={TEXT}")
    page = watched.page
    page.locator(ANSWERS[view]).first.wait_for()
    refused = {"status": 503, "content_type": "application/json", "body": json.dumps({"error": "Too many requests."})}
    for path in ("**/v1/predict", "**/studio/trace"):
        page.route(path, lambda route: route.fulfill(**refused))
    page.get_by_role("textbox", name="Sentence to translate").fill("edcba")
    page.locator(".problem").first.wait_for()
    assert page.locator(ANSWERS[view]).count() == 0
    watched.problems.clear()  # the browser reports the 503 in its console


def test_a_failed_request_shows_no_translation_of_a_checkpoint(look: Look) -> None:
    watched = look(f"#train?text={TEXT}&run=tiny")
    page = watched.page
    page.locator(".sample").first.wait_for()
    page.route("**/sample?*", lambda route: route.fulfill(status=503, json={"error": "Too many requests."}))
    page.get_by_role("textbox", name="Sentence to translate").fill("edcba")
    page.get_by_role("alert").wait_for()
    assert page.locator(".sample").count() == 0
    watched.problems.clear()


def search(page: Any) -> str:
    return str(page.locator('label:has(span:text-is("Search")) select').input_value())


def test_the_search_of_one_view_is_not_changed_by_another(look: Look) -> None:
    page = look(f"#translate?text={TEXT}").page
    page.get_by_role("link", name="Beam").click()
    page.locator(".tree svg").wait_for()
    assert search(page) == "4"
    page.locator('label:has(span:text-is("Search")) select').select_option("3")
    page.get_by_role("link", name="Translate").click()
    assert search(page) == "1"
    page.locator('label:has(span:text-is("Search")) select').select_option("5")
    page.get_by_role("link", name="Beam").click()
    assert search(page) == "3"
    assert "beam=5" in hash_of(page)


def test_choosing_a_search_keeps_the_translation_selected_in_another_view(look: Look) -> None:
    page = look(f"#translate?text={TEXT}&beam=3&rank=1").page
    page.get_by_role("link", name="Beam").click()
    page.locator(".tree svg").wait_for()
    page.locator('label:has(span:text-is("Search")) select').select_option("5")
    assert "rank=1" in hash_of(page)


def test_tree_and_list_show_the_same_score_and_name_the_length_penalty(look: Look) -> None:
    page = look(f"#beam?text={TEXT}&beam=3").page
    page.locator(".tree svg").wait_for()
    for rank in range(page.locator(".ranking button").count()):
        page.locator(".ranking button").nth(rank).click()
        last = page.locator("[data-node].chosen .score").last.text_content()
        assert last == page.locator(".ranking button .figures").nth(rank).inner_text()
    stated = re.search(
        r"divided by the length penalty \(\(5 \+ n\) / 6\)\^([\d.]+) for n", page.locator("main").inner_text()
    )
    assert stated is not None
    for n in (1, 2, 3):
        page.locator(f'[data-node="{n - 1} 1"]').hover()
        read = page.locator(".readout").inner_text().replace("−", "-")
        numbers = re.search(r"log-probability so far (\S+), score (\S+),", read)
        assert numbers is not None
        assert float(numbers[2]) == pytest.approx(float(numbers[1]) / ((5 + n) / 6) ** float(stated[1]), abs=0.011)


def test_the_list_of_translations_names_the_length_penalty_too(look: Look) -> None:
    page = look(f"#translate?text={TEXT}&beam=3").page
    page.get_by_text("divided by the length penalty ((5 + n) / 6)^alpha for n tokens").wait_for()


def test_a_penalty_that_is_a_power_of_the_length_is_stated_and_divides_scores(look: Look) -> None:
    page = look(f"#translate?text={TEXT}&model=heads&beam=3").page
    page.get_by_text("divided by the length penalty n^0.8 for n tokens").wait_for()
    page = look(f"#beam?text={TEXT}&model=heads&beam=3").page
    page.get_by_text("divided by the length penalty n^0.8 for n tokens").wait_for()
    page.locator('[data-node="2 1"]').hover()
    read = page.locator(".readout").inner_text().replace("−", "-")
    numbers = re.search(r"log-probability so far (\S+), score (\S+),", read)
    assert numbers is not None
    assert float(numbers[2]) == pytest.approx(float(numbers[1]) / 3**0.8, abs=0.011)


def test_bars_of_scores_begin_at_zero(look: Look) -> None:
    page = look("#step?text=012&model=heads&layer=0&head=0").page
    page.locator(".rows .score").first.wait_for()
    for score in page.locator(".rows .score").all():
        value = float(score.locator(".figure").inner_text().replace("−", "-"))
        start, size, zero = (
            float(score.locator(".gauge").evaluate(f"bar => bar.style.getPropertyValue('--{name}')").removesuffix("%"))
            for name in ("from", "size", "zero")
        )
        assert (start if value > 0 else start + size) == pytest.approx(zero, abs=0.01)


def test_the_axis_of_scores_has_a_zero_if_all_are_positive(look: Look, tiny: Path, tmp_path: Path) -> None:
    written = enclosed.page(
        {"name": "own", "settings": {"kind": "bahdanau"}, "layers": 1}, regarde.load(tiny).trace(TEXT)
    )
    moved = re.sub(r'"energies":(\[\[\[.*?\]\]\])', lambda found: re.sub(r"-?\d[\d.e-]*", "3.5", found[0]), written)
    file = tmp_path / "own.html"
    file.write_text(moved, encoding="utf-8")
    bar = look("#step", base=file.as_uri()).page.locator(".rows .score .gauge").first
    assert bar.evaluate("bar => [bar.style.getPropertyValue('--zero'), bar.style.getPropertyValue('--size')]") == [
        *("0%", "100%")
    ]


CUT = """() => [...document.querySelectorAll("main *, nav")].filter(each => {
  const style = getComputedStyle(each);
  return each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 1 && !each.closest("svg")
    && style.overflowX !== "visible" && style.textOverflow !== "ellipsis" && !each.matches("textarea, select")
    && style.maskImage === "none";
}).map(each => `${each.tagName}.${each.className}`)"""


def cut(page: Any) -> list[str]:
    """What is cut without a hint once the page has settled; on a busy machine that may take a while."""
    found: list[str] = []
    for _ in range(40):
        page.wait_for_timeout(150)
        found = page.evaluate(CUT)
        if not found:
            break
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_without_a_hint_on_a_phone(look: Look, scheme: str) -> None:
    for view, there in {**ANSWERS, "compare": ".grouped svg", "train": ".curves"}.items():
        page = look(f"#{view}?text={'abcde' * 6}&run=tiny", width=390, scheme=scheme).page
        page.locator(there).first.wait_for()
        for summary in page.locator("summary").all():
            summary.click()
        assert cut(page) == [], view


def test_a_saved_heat_map_is_not_cut_without_a_hint_on_a_phone(look: Look, tmp_path: Path) -> None:
    file = tmp_path / "map.html"
    save(Heatmap(tuple("abcde" * 8), tuple("abcde"), np.full((5, 40), 0.025)), file)
    page = look("", base=file.as_uri(), width=390).page
    page.locator("summary").click()
    assert cut(page) == []


FORMULAS = {  # the model, the phase, what its formula says, what it must not say
    "torch-gru": ({"kind": "conditional", "cell": "torch-gru"}, "state", "st=GRU2(ct,s′t)", "TORCH"),
    "simple": ({"kind": "sutskever", "cell": "simple"}, "state", "st=RNN(yt−1,st−1)", "simple"),
    "reversed": (
        {"kind": "luong", "cell": "lstm", "encoder": {"kind": "unidirectional", "reverse": True}},
        *("states", "hj=LSTM(xj,hj+1)", "→"),
    ),
    "bottom": (
        {"kind": "gnmt", "cell": "lstm", "encoder": {"kind": "bottom-bidirectional"}},
        *("states", "hj=LSTM(hjL−1,hj−1)", "→"),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_those_of_the_model(look: Look, name: str, tiny: Path, tmp_path: Path) -> None:
    settings, phase, expected, other = FORMULAS[name]
    described = {"name": "own", "settings": settings, "layers": 1}
    file = tmp_path / "own.html"
    file.write_text(enclosed.page(described, regarde.load(tiny).trace(TEXT)), encoding="utf-8")
    panel = look(f"#step?open={phase}", base=file.as_uri()).page.get_by_role("region", name="Formula")
    panel.wait_for()
    assert expected in (panel.locator("math").first.text_content() or "")
    assert other not in (panel.text_content() or "")


def test_a_score_has_its_name_in_the_literature_and_its_whole_formula(look: Look) -> None:
    panel = look("#step?text=012&model=heads&open=scores").page.get_by_role("region", name="Formula")
    panel.get_by_text("the scaled dot product (Vaswani et al. 2017)").wait_for()
    assert "√d" in (panel.locator("math").first.text_content() or "")


@pytest.mark.parametrize("view", ["compare", "train"])
def test_axes_have_titles_and_units(look: Look, view: str) -> None:
    page = look(f"#{view}?text=012&run=tiny").page
    titles = {
        "compare": ["exact match (%)", "source length in characters", "pairs"],
        "train": ["nats per target token, log scale", "training step", "target tokens per second"],
    }
    for title in titles[view]:
        page.locator("svg text", has_text=title).first.wait_for()


def test_maps_have_titles_and_a_scale(look: Look) -> None:
    for view in ("align", "whatif", "compare"):
        page = look(f"#{view}?text={TEXT}").page
        page.locator(".matrix svg").first.wait_for()
        assert {"source", "target"} <= set(page.locator(".matrix svg text").all_text_contents())
        scale = page.locator(".scale").first.inner_text()
        assert re.fullmatch(r"0\s+(0\.\d|1)\s+attention weight \(columns: source, rows: target\)", scale)


def rgb(color: str) -> str:
    """#rrggbb as a browser writes it."""
    return f"rgb({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))})"


def channels(color: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", color)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_and_pictures_have_one_palette(look: Look, scheme: str) -> None:
    palette = {"light": LIGHT, "dark": DARK}[scheme]
    page = look(f"#align?text={TEXT}", scheme=scheme).page
    page.locator(".matrix rect").first.wait_for()
    painted = page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    assert painted == [rgb(palette.paper), rgb(palette.ink)]
    scale = page.locator(".scale i").evaluate("bar => getComputedStyle(bar).backgroundImage")
    assert [scale.find(rgb(palette.weight(i / 16))) >= 0 for i in range(17)] == [True] * 17
    drawn = page.locator("[data-cell] rect").evaluate_all("all => all.map(each => getComputedStyle(each).fill)")
    shades = [channels(rgb(shade)) for shade in palette.shades(257)]
    assert drawn
    for cell in map(channels, drawn):  # the page interpolates between 17 shades
        assert min(max(abs(a - b) for a, b in zip(cell, shade, strict=True)) for shade in shades) <= 3
