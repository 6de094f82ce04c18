"""The page of a lab: whole, offline, and free of anything that could run."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

VOID = {"meta", "img", "source", "br"}
REFERENCES = {"src", "href", "srcset", "xlink:href", "data", "action", "poster"}


class Reader(HTMLParser):
    """Tags that close, what they refer to, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.references: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.references += [value or "" for name, value in attrs if name in REFERENCES]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def source(laboratory) -> str:
    return (laboratory.folder / "index.html").read_text(encoding="utf-8")


def test_every_tag_is_closed(source: str) -> None:
    assert Reader(source).open == []


def test_nothing_comes_from_elsewhere(source: str) -> None:
    page = Reader(source)
    assert page.references
    assert all(reference.startswith("data:image/svg+xml;base64,") for reference in page.references)
    assert "url(" not in source
    assert "@import" not in source


def test_nothing_can_run(source: str) -> None:
    page = Reader(source)
    assert not page.tags & {"script", "iframe", "object", "embed", "form", "link"}
    assert not any(name.startswith("on") for name in page.attributes)
    assert re.search(r'http-equiv="Content-Security-Policy" content="default-src &#x27;none&#x27;', source)


def test_it_tells_of_every_model_and_every_part(source: str) -> None:
    text = Reader(source).text
    for told in (
        "sutskever-small",
        "mine",
        "AER",
        "peak memory",
        "Attention of each model",
        "mine after sutskever-small",
    ):
        assert told in text


def test_every_example_of_a_difference_is_shown(laboratory, source: str) -> None:
    text = Reader(source).text
    (step,) = json.loads((laboratory.folder / "report.json").read_text(encoding="utf-8"))["steps"]
    assert step["better"] or step["worse"]
    for which, several in (("ahead", step["better"]), ("behind", step["worse"])):
        for example in several:
            assert f"Pair {example['number']:,}, {step['second']} {which}" in text


def test_what_others_wrote_is_text(source: str) -> None:
    assert "<b>" not in source
