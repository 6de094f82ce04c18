"""Our own API, asked over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

import regarde
from tests.serving.conftest import Running


def test_models_are_listed_by_name_and_the_first_one_is_asked_unless_another_is_named(server: Running) -> None:
    listed = server.get("/v1/models").json["models"]
    assert [model["name"] for model in listed] == ["tiny", "plain"]
    assert [model["layers"] for model in listed] == [1, 0]
    assert server.post("/v1/translate", {"text": "abc"}).json["model"] == "tiny"
    assert server.post("/v1/translate", {"text": "012", "model": "plain"}).json["model"] == "plain"


def test_an_answer_is_what_the_translator_says(server: Running, tiny: Path) -> None:
    expected = regarde.load(tiny, engine="native").translate(["abcd", "", "dcba"], beam=3, n_best=2)
    question = {"text": ["abcd", "", "dcba"], "beam": 3, "n_best": 2, "attention": True}
    said = server.post("/v1/translate", question).json["translations"]
    assert [one["text"] for one in said] == [one.text for one in expected]
    assert [one["alternatives"][0]["text"] for one in said if one["source"]] == [
        one.alternatives[0].text for one in expected if one.source
    ]
    assert said[0]["tokens"] == list(expected[0].tokens)
    assert said[0]["attention"] == expected[0].attention_rows()
    assert said[0]["score"] == pytest.approx(expected[0].score, abs=1e-5)


def test_a_trace_is_the_one_of_the_translator(server: Running, tiny: Path) -> None:
    expected = regarde.load(tiny, engine="native").trace("abcd", beam=2, top_k=3).as_json()
    question = {"text": ["abcd", " "], "beam": 2, "trace": True, "candidates": 3}
    whole, blank = server.post("/v1/translate", question).json["translations"]
    assert whole["trace"] == expected
    assert blank["trace"] is None
