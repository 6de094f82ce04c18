"""The page and the notebook's fragment."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from regarde.visualize import Heatmap
from regarde.visualize.html import fragment, page


class Tags(HTMLParser):
    """Which elements and attributes a text opens."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}


def test_the_policy_names_each_script_and_style_by_its_hash(words: Heatmap) -> None:
    text = page([words], "t")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src &#x27;none&#x27;" in policy[1]
    assert "unsafe" not in policy[1]
    for inline in re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", text, re.DOTALL):
        assert base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode() in policy[1]


def test_a_page_carries_no_attribute_its_policy_would_block(any_map: Heatmap) -> None:
    attributes = Tags(page([any_map], "t")).attributes
    assert "style" not in attributes
    assert not [name for name in attributes if name.startswith("on") or name in {"src", "href"}]


def test_tokens_cannot_become_elements(hostile: Heatmap, words: Heatmap) -> None:
    text = page([hostile], 'title <img src="x">')
    assert set(Tags(text).tags) == set(Tags(page([words], "t")).tags) | {"h2"}  # its own title differs from the page's
    assert text.count("<script") == 1


def test_every_token_is_in_the_table_with_its_own_direction(words: Heatmap) -> None:
    text = page([words], "t")
    assert '<th scope="row"><bdi dir="auto">économique</bdi></th>' in text
    assert f"<td>{words.weights[0, 0]:.3f}</td>" in text


def test_a_page_can_be_written_as_utf8(any_map: Heatmap) -> None:
    page([any_map, any_map], any_map.title).encode("utf-8")


def test_a_page_without_maps_says_so() -> None:
    assert "No attention to show." in page([], "t")


def test_a_fragment_has_no_script(any_map: Heatmap) -> None:
    assert "script" not in Tags(fragment(any_map)).tags
