"""What the studio asks beyond the API: a search told how to begin and where to look, and the reports of a lab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import regarde
from regarde.errors import FolderError
from regarde.search.interventions import Mask, Pin
from regarde.serving.routes.reports import read
from tests.serving.conftest import Running

POINT = {"group": "1 to 5", "pairs": 7, "quality": {"value": 0.5, "low": 0.25, "high": 0.75}, "microseconds": 9.0}
METRIC = {"name": "bleu", "label": "BLEU", "percent": False, "digits": 1, "higher_is_better": True}
REPORT = {
    "format": 1,
    "test": "copy test",
    "budget": "2 minutes",
    "lengths": "source length in characters",
    "metrics": [METRIC],
    "entries": [{"name": "tiny", "by_length": [POINT]}],
}


@pytest.fixture(scope="module")
def studio(tiny: Path, plain: Path, serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    letters = tmp_path_factory.mktemp("lab") / "letters"
    letters.mkdir()
    (letters / "report.json").write_text(json.dumps(REPORT))
    with serve(f"tiny={tiny}", f"plain={plain}", "--report", letters, "--no-open", name="studio") as found:
        yield found


def test_a_search_does_as_told(studio: Running, tiny: Path) -> None:
    model = regarde.load(tiny)
    ids = model.trace("abcd").hypotheses[0].ids[:2]
    pin = {"kind": "pin", "step": 0, "weights": {"2": 0.5}, "layer": None, "head": 0}
    told = [{"kind": "mask", "source": 1}, pin]
    reply = studio.post("/studio/trace", {"text": "abcd", "model": "tiny", "prefix": ids, "interventions": told})
    assert reply.status == 200
    expected = model.trace("abcd", prefix=ids, interventions=[Mask(1), Pin(0, {2: 0.5}, head=0)])
    assert reply.json == json.loads(json.dumps(expected.as_json()))


def test_a_beginning_may_be_all_that_is_said(studio: Running, tiny: Path) -> None:
    ids = list(regarde.load(tiny).trace("abcd").hypotheses[0].ids[:2])
    (said,) = studio.post("/studio/trace", {"text": "abcd", "prefix": ids, "end": True}).json["hypotheses"]
    assert said["ids"] == [*ids, 3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prefix": [1.5]}, "prefix: expected a list of at most 1,000 token ids."),
        ({"prefix": [-1]}, "prefix: expected a list of at most 1,000 token ids."),
        ({"prefix": [4] * 1001}, "prefix: expected a list of at most 1,000 token ids."),
        ({"prefix": [9999]}, "Token 9999: the vocabulary has 0 to"),
        ({"prefix": [1]}, "A prefix of ids [1]: control tokens and unknown words cannot be generated."),
        ({"interventions": {}}, "interventions: expected a list of at most 256 interventions."),
        ({"interventions": [{}] * 257}, "interventions: expected a list of at most 256 interventions."),
        ({"interventions": [7]}, 'interventions: expected objects whose kind is "mask" or "pin".'),
        ({"interventions": [{"kind": "push"}]}, 'interventions: expected objects whose kind is "mask" or "pin".'),
        ({"interventions": [{"kind": ["mask"]}]}, 'interventions: expected objects whose kind is "mask" or "pin".'),
        ({"interventions": [{"kind": "mask"}]}, "interventions: source of a mask: expected the index of a source"),
        (
            {"interventions": [{"kind": "mask", "source": 0, "head": "1"}]},
            "interventions: head of a mask: expected an index",
        ),
        ({"interventions": [{"kind": "mask", "source": 0, "x": 1}]}, "interventions: expected a mask with source,"),
        ({"interventions": [{"kind": "mask", "source": 99}]}, "Source token 99: this sentence has 0 to 4"),
        (
            {"interventions": [{"kind": "pin", "step": 0, "weights": {"a": 1}}]},
            "interventions: weights of a pin: expected an object of source tokens",
        ),
        (
            {"interventions": [{"kind": "pin", "step": 0, "weights": {"0": 2}}]},
            "A weight of 2.0 on source token 0: expected 0 to 1.",
        ),
        ({"model": "plain", "interventions": [{"kind": "mask", "source": 0}]}, "This model has no attention"),
        ({"text": " "}, "There is nothing to trace in an empty sentence."),
        ({"beam": 2, "n_best": 3}, "n_best = 3: expected at most the beam size, 2."),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(studio: Running, given: dict[str, Any], message: str) -> None:
    reply = studio.post("/studio/trace", {"text": "abcd", **given})
    assert reply.status == 422
    assert reply.json["error"].startswith(message)


def test_reports_are_told_as_the_page_shows_them(studio: Running) -> None:
    (told,) = studio.get("/studio/reports").json["reports"]
    assert (told["name"], told["metric"]["label"]) == ("letters", "BLEU")
    assert told["models"] == [
        {"name": "tiny", "points": [{"group": "1 to 5", "pairs": 7, "value": 0.5, "low": 0.25, "high": 0.75}]}
    ]


def test_a_folder_that_is_no_report_is_named(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"no report.json. Give a folder that regarde lab has finished"):
        read([tmp_path])
    path = tmp_path / "report.json"
    for content in (
        "nonsense",
        "[]",
        "{}",
        json.dumps(REPORT | {"metrics": []}),
        json.dumps(REPORT | {"entries": [3]}),
        json.dumps(REPORT | {"format": "\x1b[2J"}),
        json.dumps(REPORT | {"metrics": [METRIC | {"digits": float("inf")}]}),
        *(
            json.dumps(
                REPORT | {"entries": [{"name": "a", "by_length": [POINT | {"quality": POINT["quality"] | bad}]}]}
            )
            for bad in ({"value": float("nan")}, {"low": 10**400}, {"high": [1]})
        ),
        "[" * 100_000,
    ):
        path.write_text(content)
        with pytest.raises(FolderError, match="not a report of regarde lab"):
            read([tmp_path])
    path.write_text(json.dumps(REPORT | {"test": "\ud800"}))
    assert read([tmp_path])[0]["test"] == "?"
    path.write_text(json.dumps(REPORT | {"format": 2}))
    with pytest.raises(FolderError, match="format 2, expected 1"):
        read([tmp_path])
