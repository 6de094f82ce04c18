"""Our own API, asked over HTTP."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
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


def test_a_stream_tells_what_is_said_so_far_and_then_the_answer(server: Running) -> None:
    question = {"text": ["", "abcd" * 60, "abc"], "beam": 16, "prefix": "abcd" * 50}
    whole = server.post("/v1/translate", question).json
    reply = server.post("/v1/translate", question | {"stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [event.split("\n", 1) for event in reply.body.decode().strip().split("\n\n")]
    *parts, (last, data) = [(name.removeprefix("event: "), json.loads(data[6:])) for name, data in events]
    assert (last, data) == ("answer", whole)
    assert {name for name, _ in parts} <= {"part"}  # none where the model is faster than the line
    assert {told["sentence"] for _, told in parts} <= {1, 2}
    for _, told in parts:
        assert "".join(told["tokens"]) == told["text"]
        assert data["translations"][told["sentence"]]["text"].startswith(told["text"][:200])


def test_what_is_wrong_with_a_stream_is_known_before_it_begins(server: Running) -> None:
    reply = server.post("/v1/translate", {"text": "a" * 300, "stream": True})
    assert reply.status == 422
    assert "tokens" in reply.json["error"]


def test_a_translation_begins_as_it_is_told(server: Running) -> None:
    (said,) = server.post("/v1/translate", {"text": "abc", "prefix": "dd"}).json["translations"]
    assert said["text"].startswith("dd")


def test_the_description_is_there_for_programs_and_for_people_without_another_host(server: Running) -> None:
    described = server.get("/openapi.json").json
    assert set(described["paths"]) >= {"/v1/translate", "/translate", "/detect", "/languages", "/health", "/metrics"}
    page = server.get("/docs").body.decode()
    assert all(path in page for path in described["paths"])
    assert "<script" not in page
    assert "//" not in page.replace("<!doctype", "")
    assert server.get("/docs.css").headers["content-type"].startswith("text/css")


def test_sentences_of_one_request_do_not_change_those_of_another(server: Running) -> None:
    texts = ["abcd"[: 1 + n % 4] * (1 + n % 5) for n in range(40)]
    alone = [server.post("/v1/translate", {"text": text}).json["translations"][0] for text in texts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda text: server.post("/v1/translate", {"text": text}).json, texts))
    for one, other in zip(alone, together, strict=True):
        (said,) = other["translations"]
        assert (said["source"], said["text"]) == (one["source"], one["text"])
        assert said["score"] == pytest.approx(one["score"], abs=1e-5)
