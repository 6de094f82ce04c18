"""`regarde calibrate`: one temperature, folded into the output layer; answers stay, probabilities change."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regarde
from regarde import load
from regarde.evaluation.calibrate import temperature
from regarde.evaluation.labels import BINS, calibration_error, confidence_bins
from regarde.folder import manifest
from regarde.native import library
from tests.conftest import Command, Ended
from tests.tasks import CLASSIFIER, LABEL_SETS, TAGGER, saved

TEXTS = ["the cat", "a mat", "on monday", "the mat", "the cat sat on the mat", "a cat", "sat", "monday"]
MODELS = {"label": CLASSIFIER, "sets": LABEL_SETS}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {name: saved(folder / name, model) for name, model in {**MODELS, "tags": TAGGER}.items()}


def record(done: Ended) -> dict[str, Any]:
    assert done.code == 0, done.error
    found: dict[str, Any] = json.loads(done.out)
    return found


def rows(run: Path, path: Path, wrong: str) -> Path:
    """What the model says, with one text in three given another label."""
    said = [found.text for found in regarde.load(run).predict(TEXTS)]
    labels = [wrong if n % 3 == 0 else text or wrong for n, text in enumerate(said)]
    path.write_text("".join(f"{text}\t{label}\n" for text, label in zip(TEXTS, labels, strict=True)))
    return path


@pytest.mark.parametrize("name", MODELS)
def test_logits_are_divided_and_answers_stay(name: str, cli: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    data, out = rows(runs[name], tmp_path / "valid.tsv", "time"), tmp_path / "out"
    fitted = record(cli("calibrate", runs[name], "--data", data, "--out", out, "--json"))
    T = fitted["temperature"]
    assert abs(T - 1) > 0.01
    assert fitted["loss"][1] < fitted["loss"][0]
    assert fitted["texts"] == len(TEXTS)
    manifest.verify(out)
    for engine in ("native", "torch") if library.available() else ("torch",):
        before, after = (regarde.load(run, engine=engine).predict(TEXTS) for run in (runs[name], out))
        assert [one.text for one in before] == [one.text for one in after]
        for one, other in zip(before, after, strict=True):
            assert one.probabilities
            assert other.probabilities
            assert list(one.probabilities) == list(other.probabilities)
            p = np.array(list(one.probabilities.values()))
            odds = p ** (1 / T), (1 - p) ** (1 / T)
            expected = odds[0] / (odds[0].sum() if name == "label" else odds[0] + odds[1])
            np.testing.assert_allclose(list(other.probabilities.values()), expected, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_evaluate_and_inspect_say_whether_it_is_calibrated(
    name: str, cli: Command, runs: dict[str, Path], tmp_path: Path
) -> None:
    data, out = rows(runs[name], tmp_path / "valid.tsv", "time"), tmp_path / "out"
    fitted = record(cli("calibrate", runs[name], "--data", data, "--out", out, "--json"))
    for run, state, error in zip((runs[name], out), (False, True), fitted["error"], strict=True):
        found = record(cli("evaluate", run, "--data", data, "--samples", 0, "--json"))
        assert found["calibrated"] == state
        assert found["temperature"] == pytest.approx(fitted["temperature"] if state else 1.0)
        assert found["metrics"]["calibration_error"]["value"] == pytest.approx(error, abs=1e-5)
        told = cli("evaluate", run, "--data", data, "--samples", 0).out.decode()
        assert (f"\ncalibrated, temperature {fitted['temperature']:.3f}\n" if state else "\nnot calibrated\n") in told
        assert record(cli("inspect", run, "--data", data, "--json"))["calibrated"] == state
    assert "Calibrated: " in (out / "README.md").read_text()
    again = record(cli("calibrate", out, "--data", data, "--json"))  # there is nothing left to correct
    assert again["temperature"] == pytest.approx(1, abs=1e-3)
    small = tmp_path / "small"
    assert cli("quantize", out, "--out", small, "--data", data).code == 0
    assert record(cli("evaluate", small, "--data", data, "--samples", 0, "--json"))["calibrated"]
    assert "Calibrate the model that it was made from" in cli("calibrate", small, "--data", data).fails(2)


def test_several_labels_are_judged_each_and_as_sets(cli: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    said = [found.text for found in regarde.load(runs["sets"]).predict(TEXTS)]
    wanted = ["animal,old" if n % 2 else text or "time" for n, text in enumerate(said)]
    path.write_text("".join(f"{text}\t{labels}\n" for text, labels in zip(TEXTS, wanted, strict=True)))
    found = record(cli("evaluate", runs["sets"], "--data", path, "--samples", 0, "--json"))
    pairs = [({*a.split(",")} - {""}, {*b.split(",")}) for a, b in zip(said, wanted, strict=True)]
    both, answered, right = (sum(map(len, each)) for each in zip(*[(a & b, a, b) for a, b in pairs], strict=True))
    assert found["metrics"]["accuracy"]["value"] == sum(a == b for a, b in pairs) / len(TEXTS)
    assert found["metrics"]["micro_f1"]["value"] == pytest.approx(2 * both / (answered + right))
    assert {one["name"] for one in found["classes"]} <= {"animal", "old", "place", "time"}
    assert sum(one["support"] for one in found["classes"]) == right
    assert "confusion" not in found
    assert "subset accuracy" in cli("evaluate", runs["sets"], "--data", path, "--samples", 0).out.decode()


def test_probabilities_of_several_labels_are_those_of_each(regarde: Command, runs: dict[str, Path]) -> None:
    """The probability of a set is the product over all labels, so that forced decoding gives it too."""
    found = record(regarde("predict", runs["sets"], "--json", stdin=b"the cat\n"))
    p = found["probabilities"]
    assert sorted(p) == ["animal", "old", "place", "time"]
    assert list(p.values()) == sorted(p.values(), reverse=True)
    assert {label for label in p if p[label] > 0.5} == {*found["text"].split(",")} - {""}
    for labels in ([], ["time"], ["animal", "old"], ["animal", "place", "time"]):
        expected = sum(math.log(p[label] if label in labels else 1 - p[label]) for label in p)
        (scored,) = load(runs["sets"]).score([("the cat", ",".join(labels))])
        assert scored.score == pytest.approx(expected, abs=1e-4)


def test_the_temperature_is_the_best_of_many() -> None:
    chance = np.random.default_rng(5)
    scores = chance.normal(size=(200, 4)) * 3
    right = np.where(chance.random(200) < 0.6, scores.argmax(axis=1), chance.integers(0, 4, 200))

    def loss(T: float) -> float:
        z = scores / T
        return float((np.log(np.exp(z).sum(axis=1)) - z[np.arange(200), right]).mean())

    grid = np.exp(np.linspace(-2.5, 2.5, 2001))
    assert temperature(scores, right) == pytest.approx(min(grid, key=loss), rel=0.005)
    assert temperature(scores, scores.argmax(axis=1)) == 1 / 20
    assert temperature(scores, scores.argmin(axis=1)) == 20


def test_calibration_error_is_that_of_the_paper() -> None:
    chance = np.random.default_rng(2)
    decisions = [[(float(p), bool(chance.random() < p / 2)) for p in chance.random(3)] for _ in range(40)]
    every = [one for row in decisions for one in row]
    expected = 0.0
    for m in range(BINS):
        inside = [(p, right) for p, right in every if m / BINS <= p < (m + 1) / BINS]
        if inside:
            accuracy, confidence = np.mean([right for _, right in inside]), np.mean([p for p, _ in inside])
            expected += len(inside) / len(every) * abs(accuracy - confidence)
    assert calibration_error(confidence_bins(decisions).sum(axis=0)) == pytest.approx(expected)


def test_what_cannot_be_calibrated_is_refused(cli: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    data = rows(runs["label"], tmp_path / "valid.tsv", "time")
    assert "a tagger, expected a classifier" in cli("calibrate", runs["tags"], "--data", data).fails(2)
    assert "never overwritten" in cli("calibrate", runs["label"], "--data", data, "--out", tmp_path).fails(2)
    assert "Expected --data" in cli("calibrate", runs["label"]).fails(2)
    (tmp_path / "new.tsv").write_text("the cat\tnever seen\n")
    line = cli("calibrate", runs["label"], "--data", tmp_path / "new.tsv").fails(3)
    assert "no text with a label that the model knows" in line
    assert not runs["label"].with_name("label-calibrated").exists()
    settings = ["task.kind=classification", "task.temperature=2"]
    with pytest.raises(regarde.RegardeError, match="Leave it out, and calibrate after training"):
        regarde.train(data, steps=1, settings=settings, preset="classifier-small", out=tmp_path / "run")
