"""Searches that somebody plays with: going on from a node, forcing, hiding, pinning; models side by side."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Look

TEXT = "abcde"


def hash_of(page: Any) -> str:
    page.wait_for_timeout(200)  # the address is written a little after the last change
    return str(page.evaluate("location.hash"))


def tokens(page: Any, name: str) -> list[str]:
    group = page.get_by_role("group", name=name, exact=True)
    group.get_by_role("button").first.wait_for()
    return [str(text) for text in group.locator("bdi").all_inner_texts()]


def changed(page: Any, name: str, before: list[str]) -> list[str]:
    """The tokens once they are others, and stay so."""
    seen = before
    for _ in range(60):
        if (now := tokens(page, name)) == seen != before:
            return now
        seen = now
        page.wait_for_timeout(100)
    raise AssertionError(f"{name} still says {before}")


def test_a_search_is_a_tree_and_goes_on_from_any_node(look: Look) -> None:
    watched = look(f"#beam?text={TEXT}")
    page = watched.page
    page.locator(".tree svg").wait_for()
    assert "beam=4" in hash_of(page)
    fates = set(page.locator("[data-node]").evaluate_all("all => all.map(each => each.dataset.fate)"))
    assert {"kept", "pruned"} <= fates
    node = page.locator('[data-fate="pruned"]').first
    token = node.locator(".token").text_content()
    node.click()
    page.get_by_text("continues from").wait_for()
    assert page.locator('[data-node="0 0"]').get_attribute("class") is not None
    link = hash_of(page)
    assert "prefix=" in link
    page.wait_for_function(
        "wanted => [...document.querySelectorAll('.given .token')].some(each => each.textContent === wanted)", arg=token
    )
    best = page.locator(".ranking button bdi").first.inner_text()
    watched.open(link)
    page.get_by_text("continues from").wait_for()
    assert page.locator(".ranking button bdi").first.inner_text() == best


def test_the_tree_is_walked_by_keys(look: Look) -> None:
    page = look(f"#beam?text={TEXT}&beam=3").page
    page.locator(".tree").focus()
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    assert page.locator(".lit[data-node]").get_attribute("data-node") == "0 1"
    page.keyboard.press("Enter")
    page.get_by_text("continues from").wait_for()
    page.locator(".tree").focus()
    page.keyboard.press("Escape")
    page.get_by_text("continues from").wait_for(state="detached")
    assert "prefix=" not in hash_of(page)


def test_a_forced_token_stands_beside_what_the_model_says_by_itself(look: Look) -> None:
    watched = look(f"#whatif?text={TEXT}&step=1")
    page = watched.page
    alone = tokens(page, "Unchanged")
    assert tokens(page, "Changed") == alone
    page.locator(".words li:not(.chosen) button:enabled").first.click()
    then = changed(page, "Changed", alone)
    assert then[0] == alone[0]
    assert then[1] != alone[1]
    assert tokens(page, "Unchanged") == alone
    assert "They differ from step 2 on." in page.locator(".outcome .readout").inner_text()
    assert page.locator(".come").count() > 0
    watched.open(hash_of(page))
    assert changed(page, "Changed", alone) == then
    page.get_by_role("button", name="Start over").click()
    assert changed(page, "Changed", then) == alone


def test_a_hidden_source_token_is_looked_at_by_nobody(look: Look) -> None:
    page = look(f"#whatif?text={TEXT}&by=token").page
    page.get_by_role("button", name="Hide b", exact=True).click()
    page.get_by_role("button", name="Undo: b hidden").wait_for()
    assert "mask=1" in hash_of(page)
    slider = page.get_by_role("slider", name="Weight on b")
    page.wait_for_function("slider => slider.getAttribute('aria-valuenow') === '0'", arg=slider.element_handle())
    page.get_by_role("button", name="Undo: b hidden").click()
    assert "mask" not in hash_of(page)


def test_a_weight_is_dragged_and_moved_by_keys(look: Look) -> None:
    page = look(f"#whatif?text={TEXT}").page
    slider = page.get_by_role("slider", name="Weight on c")
    slider.wait_for()
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.25, steps=5)
    page.mouse.up()
    assert int(slider.get_attribute("aria-valuenow")) == pytest.approx(75, abs=2)
    assert "pin=0.2.75" in hash_of(page)
    slider.focus()
    page.keyboard.press("End")
    assert slider.get_attribute("aria-valuetext") == "100 %, fixed"
    page.keyboard.press("Delete")
    assert "pin" not in hash_of(page)


def test_a_change_may_hold_for_one_head_alone(look: Look) -> None:
    page = look("#whatif?text=012&model=heads&by=token").page
    for name, number in (("Layer", 2), ("Head", 1)):  # the first is the mean of all
        page.locator(f'label:has(span:text-is("{name}")) select').select_option(index=number)
    page.get_by_role("button", name="Hide 1", exact=True).click()
    page.get_by_text("in layer 2, head 1").wait_for()
    assert "mask=1_1.0" in hash_of(page)


def test_a_model_without_attention_can_still_be_forced(look: Look) -> None:
    page = look("#whatif?text=012&model=plain").page
    alone = tokens(page, "Unchanged")
    assert page.get_by_role("slider", name="Weight on 0").count() == 0
    page.locator(".words li:not(.chosen) button:enabled").first.click()
    assert changed(page, "Changed", alone)[0] != alone[0]


def test_what_if_says_that_attention_is_no_proof(look: Look) -> None:
    page = look(f"#whatif?text={TEXT}").page
    page.locator(".honest").wait_for()
    assert "not proof of cause" in page.locator(".honest").inner_text()


def test_models_are_compared_at_one_step(look: Look) -> None:
    watched = look("#compare?text=012")
    page = watched.page
    page.locator(".models article").nth(2).wait_for()
    page.get_by_role("slider", name="Step of all models").fill("1")
    currents = page.locator(".models [aria-current=step]")
    assert all(label.startswith("Step 2:") for label in currents.evaluate_all("all => all.map(e => e.ariaLabel)"))
    page.get_by_role("checkbox", name="plain").uncheck()
    page.locator(".models article").nth(2).wait_for(state="detached")
    link = hash_of(page)
    watched.open(link)
    page.locator(".models article").nth(1).wait_for()
    assert page.locator(".models article h2").all_inner_texts() == ["tiny", "heads"]


def test_quality_by_length_comes_from_the_report(look: Look) -> None:
    page = look("#compare?text=012").page
    page.get_by_role("img", name="exact match by source length in characters").wait_for()
    page.locator(".quality summary").click()
    row = page.get_by_role("row", name="plain")
    assert "70.0 % [60.0 %, 75.0 %]" in row.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_everybody_can_use_them(look: Look, width: int, scheme: str) -> None:
    for hash_, there in (
        (f"#beam?text={TEXT}&beam=3&prefix=5", ".tree svg"),
        (f"#whatif?text={TEXT}&mask=1&pin=0.2.500", ".sliders"),
        ("#compare?text=012", ".grouped svg"),
    ):
        watched = look(hash_, width=width, scheme=scheme)
        watched.page.locator(there).wait_for()
        for summary in watched.page.locator("summary").all():
            summary.click()
        assert watched.violations() == []
        assert watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is too wide"
