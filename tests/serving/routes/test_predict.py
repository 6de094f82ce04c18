"""POST /v1/predict: labels, tags, and texts that are continued; and what the routes of translation say to them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import regarde
from regarde.search import Sampling
from regarde.serving.http.limits import Limits
from tests.serving.conftest import Running

Runs = dict[str, Path]


def predicted(server: Running, **question: Any) -> Any:
    reply = server.post("/v1/predict", question)
    assert reply.status == 200, reply.body
    return reply.json["predictions"]


def test_the_models_are_listed_with_their_tasks_and_labels(tasks: Running) -> None:
    listed = {model["name"]: (model["task"], model["labels"]) for model in tasks.get("/v1/models").json["models"]}
    assert listed["tiny"] == ("translation", [])
    assert listed["label"] == ("classification", ["animal", "place", "time"])
    assert listed["tag"] == ("tagging", ["O", "B-ANIMAL", "B-PLACE", "I-PLACE"])
    assert listed["attentive"] == ("modeling", [])


def test_a_label_comes_with_the_probabilities_of_all(tasks: Running, runs_of_tasks: Runs) -> None:
    expected = regarde.load(runs_of_tasks["label"]).predict("the cat")
    (said,) = predicted(tasks, model="label", text="the cat", attention=True)
    assert (said["task"], said["text"]) == ("classification", expected.text)
    assert said["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)
    assert next(iter(said["probabilities"])) == said["text"]
    assert sum(said["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert said["attention"] == expected.attention_rows()
    assert said["alternatives"] == []


def test_as_many_labels_are_returned_as_are_asked_for(tasks: Running) -> None:
    (said,) = predicted(tasks, model="label", text="the cat", n_best=2)
    assert [said["text"], *(other["text"] for other in said["alternatives"])] == list(said["probabilities"])[:2]


def test_tags_come_with_their_spans(tasks: Running, runs_of_tasks: Runs) -> None:
    texts = ["the cat sat", "", "on the mat"]
    expected = regarde.load(runs_of_tasks["tag"]).predict(texts)
    said = predicted(tasks, model="tag", text=texts)
    assert [one["text"] for one in said] == [one.text for one in expected]
    for one, other in zip(said, expected, strict=True):
        assert [tuple(span.values()) for span in one["spans"]] == [
            (span.label, span.start, span.end, span.text) for span in other.spans or ()
        ]
    assert sum(len(one["spans"]) for one in said) > 0


@pytest.mark.parametrize("name", ["ask", "span"])
def test_a_question_is_answered_and_says_where_it_looked(tasks: Running, runs_of_tasks: Runs, name: str) -> None:
    text = "Ada goes. Hugo stays.\tWho goes?"
    expected = regarde.load(runs_of_tasks[name]).predict(text)
    (said,) = predicted(tasks, model=name, text=text, attention=True)
    assert (said["task"], said["text"]) == ("questions", expected.text)
    assert said["attention"] == expected.attention_rows()
    refused = tasks.post("/v1/predict", {"model": name, "text": "Who goes?"})
    assert refused.status == 422
    assert "expected passage TAB question" in str(refused.json)


def test_a_passage_that_is_too_long_is_answered_by_its_best_window(tasks: Running, runs_of_tasks: Runs) -> None:
    words = random.Random(1).choices(["Ada", "goes", "Hugo", "stays", "Edda", "has", "a", "map", "."], k=1200)
    text = f"{' '.join(words)}\tWho goes?"
    model = regarde.load(runs_of_tasks["ask"])
    windows = model.windows(text, Limits().tokens)
    assert len(windows) > 1
    expected = max(model.stream(windows, model.search), key=lambda found: found.score)
    (said,) = predicted(tasks, model="ask", text=text)
    assert (said["text"], said["source"]) == (expected.text, expected.source)
    refused = tasks.post("/v1/predict", {"model": "ask", "text": text, "trace": True})
    assert refused.status == 422
    assert "expected at most 1000" in str(refused.json)


@pytest.mark.parametrize("name", ["attentive", "recurrent"])
def test_a_prompt_is_continued_as_the_settings_say(tasks: Running, runs_of_tasks: Runs, name: str) -> None:
    search = Sampling(temperature=0.7, top_k=9, top_p=0.9, seed=5, n_best=2)
    expected = regarde.load(runs_of_tasks[name]).generate("the c", length=6, search=search)
    settings = {"temperature": 0.7, "top_k": 9, "top_p": 0.9, "seed": 5, "n_best": 2, "length": 6}
    (said,) = predicted(tasks, model=name, text="the c", attention=True, **settings)
    assert (said["task"], said["text"]) == ("modeling", expected.text)
    assert said["text"] == "the c" + said["continuation"]
    assert said["prompt_tokens"] == 5
    assert said["source_tokens"] == ["<s>", *said["tokens"][:-1]]
    assert said["alternatives"][0]["text"] == expected.alternatives[0].text
    assert said["attention"] == expected.attention_rows()
    other = predicted(tasks, model=name, text="the c", **settings | {"seed": 6})
    assert other[0]["text"] != said["text"]


def test_an_empty_prompt_is_continued_too(tasks: Running) -> None:
    (said,) = predicted(tasks, model="attentive", text="", length=3)
    assert 1 <= len(said["tokens"]) <= 3
    assert said["prompt_tokens"] == 0


def test_without_settings_of_samples_the_search_is_the_model_s_own(tasks: Running, runs_of_tasks: Runs) -> None:
    (said,) = predicted(tasks, model="attentive", text="the")
    assert said["text"] == regarde.load(runs_of_tasks["attentive"]).predict("the").text


def test_a_prefix_is_the_end_of_a_prompt(tasks: Running) -> None:
    question = {"model": "attentive", "length": 4}
    assert (
        predicted(tasks, text="the", prefix=" c", **question)[0]["tokens"]
        == (predicted(tasks, text="the c", **question)[0]["tokens"])
    )


def test_a_stream_tells_a_continuation_as_it_is_made(tasks: Running) -> None:
    question = {"model": "recurrent", "text": "the", "temperature": 2, "length": 900}
    whole = tasks.post("/v1/predict", question).json
    reply = tasks.post("/v1/predict", question | {"stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [event.split("\n", 1) for event in reply.body.decode().strip().split("\n\n")]
    *parts, (last, data) = [(name.removeprefix("event: "), json.loads(data[6:])) for name, data in events]
    assert (last, data) == ("answer", whole)
    assert all(whole["predictions"][0]["text"].startswith(told["text"]) for _, told in parts)


def test_a_trace_of_a_continuation_looks_back(tasks: Running, runs_of_tasks: Runs) -> None:
    question = {"model": "attentive", "text": "the", "seed": 3, "length": 5, "trace": True, "candidates": 3}
    (said,) = predicted(tasks, **question)
    trace = said["trace"]
    assert trace["looks_back"]
    assert trace["hypotheses"][0]["text"] == said["text"]
    assert [len(step["branches"][0]["weights"][0][0]) for step in trace["steps"]] == list(
        range(1, len(trace["steps"]) + 1)
    )


def test_text_is_never_markup(tasks: Running) -> None:
    (said,) = predicted(tasks, model="label", text="<b>the cat</b>")
    assert said["source"] == "<b>the cat</b>"
    assert tasks.post("/v1/predict", {"text": "a"}).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"temperature": 0}, "temperature = 0: expected a number from 0.001 to 1000"),
        ({"temperature": True}, "temperature = True: expected a number"),
        ({"top_p": 1.5}, "top_p = 1.5: expected a number from 0 to 1"),
        ({"top_k": -1}, "top_k = -1: expected an integer from 0"),
        ({"length": 1001}, "length = 1001: expected an integer from 1 to 1000"),
        ({"seed": 2**63}, "seed: expected an integer"),
        ({"seed": 1, "beam": 3}, "samples are not searched with a beam"),
        ({"n_best": 3, "beam": 2}, "n_best = 3: expected at most the beam size"),
        ({"text": "cat " * 100}, "tokens: expected at most 250"),
        ({"temperatur": 1}, "unknown field, expected one of: text"),
    ],
)
def test_a_setting_out_of_bounds_is_named(tasks: Running, given: dict[str, Any], named: str) -> None:
    reply = tasks.post("/v1/predict", {"model": "attentive", "text": "the"} | given)
    assert reply.status == 422
    assert named in reply.json["error"]


def test_a_continuation_that_may_be_too_large_is_refused_at_once(tasks: Running) -> None:
    question = {"model": "attentive", "text": ["the"] * 128, "length": 1000, "n_best": 16, "seed": 1}
    reply = tasks.post("/v1/predict", question)
    assert reply.status == 422
    assert "expected at most" in reply.json["error"]


def test_routes_of_translation_are_for_models_that_translate(tasks: Running) -> None:
    assert tasks.post("/v1/translate", {"text": "abc"}).json["model"] == "tiny"
    reply = tasks.post("/v1/translate", {"text": "abc", "model": "label"})
    assert reply.status == 422
    assert reply.json["error"] == "model: label does not translate. Use POST /v1/predict."
    assert tasks.get("/languages").json == [{"code": "und", "name": "Not stated", "targets": ["und"]}]


def test_a_server_without_translation_says_so_to_clients_of_libretranslate(serve: Any, runs_of_tasks: Runs) -> None:
    with serve(f"label={runs_of_tasks['label']}") as server:
        assert server.get("/languages").json == []
        for path, question in (("/translate", {"q": "a", "target": "en"}), ("/detect", {"q": "a"})):
            reply = server.post(path, question)
            assert reply.status == 400
            assert "No model of this server translates. Use POST /v1/predict" in reply.json["error"]
        assert server.post("/v1/translate", {"text": "a"}).status == 422
        assert server.get("/frontend/settings").status == 200
