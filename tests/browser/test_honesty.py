"""The studio never misleads: no old answers, no changed settings, axes with a zero, a hint where content is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.conftest import Look
from tests.browser.test_exploring import TEXT, hash_of

ANSWERS = {  # the view, what shows its answer
    "translate": ".answer",
    "step": ".stage",
    "align": ".aligned",
    "beam": ".tree",
    "whatif": ".outcome",
}


@pytest.mark.parametrize("view", ANSWERS)
def test_a_request_that_fails_leaves_no_old_answer(look: Look, view: str) -> None:
    watched = look(f"#{view}?text={TEXT}")
    page = watched.page
    page.locator(ANSWERS[view]).wait_for()
    refused = {"status": 503, "content_type": "application/json", "body": json.dumps({"error": "Too many requests."})}
    for path in ("**/v1/translate", "**/studio/trace"):
        page.route(path, lambda route: route.fulfill(**refused))
    page.get_by_role("textbox", name="Sentence to translate").fill("edcba")
    page.get_by_role("alert").wait_for()
    assert page.locator(ANSWERS[view]).count() == 0
    watched.problems.clear()  # the browser reports the 503 in its console


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


def test_tree_and_list_show_the_same_score_and_name_the_length_penalty(look: Look) -> None:
    page = look(f"#beam?text={TEXT}&beam=3").page
    page.locator(".tree svg").wait_for()
    for rank in range(page.locator(".ranking button").count()):
        page.locator(".ranking button").nth(rank).click()
        last = page.locator("[data-node].chosen .score").last.text_content()
        assert last == page.locator(".ranking button .figures").nth(rank).inner_text()
    assert "length penalty ((5 + n) / 6)^" in page.locator("main").inner_text()


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


CUT = """() => [...document.querySelectorAll("main *, nav")].filter(each => {
  const style = getComputedStyle(each);
  return each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 1 && !each.closest("svg")
    && style.overflowX !== "visible" && style.textOverflow !== "ellipsis" && !each.matches("textarea, select")
    && style.maskImage === "none";
}).map(each => `${each.tagName}.${each.className}`)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_without_a_hint_on_a_phone(look: Look, scheme: str) -> None:
    for view, there in {**ANSWERS, "compare": ".grouped svg", "train": ".curves"}.items():
        page = look(f"#{view}?text={'abcde' * 6}&run=tiny", width=390, scheme=scheme).page
        page.locator(there).first.wait_for()
        for summary in page.locator("summary").all():
            summary.click()
        page.wait_for_timeout(150)
        assert page.evaluate(CUT) == [], view


def test_a_cell_is_called_by_a_readable_name(look: Look, tiny: Any, tmp_path: Any) -> None:
    import regarde
    from regarde.studio import enclosed

    described = {"name": "own", "settings": {"kind": "conditional", "cell": "torch-gru"}, "layers": 1}
    file = tmp_path / "own.html"
    file.write_text(enclosed.page(described, regarde.load(tiny).trace(TEXT)), encoding="utf-8")
    page = look("#step?open=state", base=file.as_uri()).page
    page.get_by_text("GRU (torch's form)").wait_for()
    assert "TORCH" not in (page.get_by_role("region", name="Formula").text_content() or "")
