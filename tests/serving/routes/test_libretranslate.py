"""LibreTranslate's API: its clients work unmodified, and what they send comes in every form."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlencode

import pytest
from deep_translator import LibreTranslator
from libretranslatepy import LibreTranslateAPI

import regarde
from regarde.serving.routes.markup import cut
from tests.serving.conftest import Running

FORM = {"content_type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def said(german: Path) -> dict[str, str]:
    """What the model itself says."""
    texts = ["abc", "cba", "bca"]
    return {one.source: one.text for one in regarde.load(german, engine="native").translate(texts)}


def test_libretranslatepy_works_unmodified(libre: Running, said: dict[str, str]) -> None:
    client = LibreTranslateAPI(libre.url)
    assert client.translate("abc", "de", "en") == said["abc"]
    assert client.detect("abc") == [{"confidence": 100.0, "language": "de"}]
    assert client.languages() == [{"code": "de", "name": "German", "targets": ["en"]}]


def test_deep_translator_works_unmodified(libre: Running, said: dict[str, str]) -> None:
    client = LibreTranslator(api_key="any", source="de", target="en", custom_url=f"{libre.url}/")
    assert client.translate("abc") == said["abc"]
    assert client.translate_batch(["abc", "cba"]) == [said["abc"], said["cba"]]


def test_fields_come_as_json_as_a_form_or_in_the_query(libre: Running, said: dict[str, str]) -> None:
    fields = {"q": "abc", "source": "de", "target": "en"}
    expected = {"translatedText": said["abc"]}
    assert libre.post("/translate", fields).json == expected
    assert libre.send("POST", "/translate", urlencode(fields).encode(), **FORM).json == expected
    assert libre.send("POST", f"/translate?{urlencode(fields)}").json == expected
    several = urlencode([("q", "abc"), ("q", "cba"), ("target", "en")])
    assert libre.send("POST", "/translate", several.encode(), **FORM).json["translatedText"] == [
        said["abc"],
        said["cba"],
    ]


def test_a_list_gives_lists(libre: Running, said: dict[str, str]) -> None:
    asked = {"q": ["abc", "cba"], "source": "auto", "target": "en", "alternatives": 2}
    answer = libre.post("/translate", asked).json
    assert answer["detectedLanguage"] == [{"confidence": 100.0, "language": "de"}] * 2
    assert len(answer["translatedText"]) == 2
    assert [len(others) for others in answer["alternatives"]] == [2, 2]
    alone = libre.post("/translate", asked | {"q": "abc"}).json
    assert alone["translatedText"] == answer["translatedText"][0]
    assert alone["alternatives"] == answer["alternatives"][0]


def test_newlines_are_kept_and_each_line_is_translated(libre: Running, said: dict[str, str]) -> None:
    answer = libre.post("/translate", {"q": "abc\n\ncba\r\n bca \n", "source": "de", "target": "en"}).json
    assert answer["translatedText"] == f"{said['abc']}\n\n{said['cba']}\r\n {said['bca']} \n"


def test_tags_are_kept_and_the_text_between_them_is_translated(libre: Running, said: dict[str, str]) -> None:
    page = '<p class="a>b">abc <b>cba</b></p>\n<!-- abc --><script>if (a < b) abc()</script>'
    answer = libre.post("/translate", {"q": page, "source": "de", "target": "en", "format": "html"}).json
    assert answer["translatedText"] == page.replace(">abc ", f">{said['abc']} ").replace(">cba<", f">{said['cba']}<")


def test_a_page_that_is_cut_and_filled_with_its_own_texts_is_the_same() -> None:
    for page in [
        "",
        "a",
        " a <b> c</b>\n",
        "<a href='x>y'>&lt;b&gt; &amp;</a>",
        "1 < 2",
        "<!doctype html><p>x",
        "<br/>",
    ]:
        found = cut(page)
        assert found.filled(found.texts) == page.replace("1 < 2", "1 &lt; 2")


def test_what_looks_like_a_tag_in_a_translation_becomes_text() -> None:
    assert cut("<b>x</b>").filled(["<script>"]) == "<b>&lt;script&gt;</b>"


def test_a_line_too_long_for_the_model_is_cut(libre: Running) -> None:
    answer = libre.post("/translate", {"q": "abc cba. " * 100, "source": "de", "target": "en"})
    assert answer.status == 200
    assert answer.json["translatedText"]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"q": "abc", "target": "fr"}, 400),
        ({"q": "abc", "source": "fr", "target": "en"}, 400),
        ({"q": "abc", "target": "en", "format": "pdf"}, 400),
        ({"q": "abc"}, 422),
        ({"target": "en"}, 422),
        ({"q": 7, "target": "en"}, 422),
        ({"q": "abc", "target": "en", "alternatives": 10**6}, 422),
        ({"q": "a\n" * 200, "target": "en"}, 422),
    ],
)
def test_errors_are_told_as_clients_expect_them(libre: Running, asked: object, status: int) -> None:
    answer = libre.post("/translate", asked)
    assert answer.status == status
    assert isinstance(answer.json["error"], str)


def test_settings_and_health_are_there(libre: Running) -> None:
    assert libre.get("/health").json == {"status": "ok"}
    settings = libre.get("/frontend/settings").json
    assert settings["language"]["source"] == {"code": "de", "name": "German"}
    assert settings["keyRequired"] is False


def test_no_language_is_made_up(server: Running) -> None:
    assert server.get("/languages").json == [{"code": "und", "name": "Not stated", "targets": ["und"]}]
    assert server.post("/translate", {"q": "abc", "target": "und"}).json["detectedLanguage"]["confidence"] == 0.0


def test_who_sends_another_type_is_told_so(libre: Running) -> None:
    answer = libre.send("POST", "/translate", json.dumps({"q": "a", "target": "en"}).encode(), content_type="text/xml")
    assert answer.status == 415
