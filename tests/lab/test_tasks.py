"""A lab of classifiers, taggers or language models: the task says what is compared, and how."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regarde.errors import UsageError
from regarde.evaluation.telling import TellingSums
from regarde.folder.loading import load
from regarde.lab.measure import context_group
from regarde.lab.request import LabRequest, hold_out, planned
from regarde.tasks import TASKS
from regarde.training.recipe import DataConfig
from tests.tasks import CLASSIFIER, saved

FILES = {
    "classification": "".join(f"{n % 10} and {n}\t{'even' if n % 2 == 0 else 'odd'}\n" for n in range(120)),
    "tagging": "".join(f"{n // 10}\tB-TEN\n{n % 10}\tI-TEN\n.\tO\n\n" for n in range(90)),
    "modeling": "".join(f"{n} and {n + 1} and so on\n" for n in range(90)),
}
MODELS = {
    "classification": ("classifier-mean-small,classifier-small", "model.embedding=5"),
    "tagging": ("tagger-small,tagger-crf-small", "model.embedding=5"),
    "modeling": ("lstm-lm-small,attentive-lm-small", "training.valid_pairs=4"),
}
METRICS = {
    "classification": ["accuracy", "macro_f1", "micro_f1"],
    "tagging": ["token_accuracy", "span_f1", "span_precision", "span_recall"],
    "modeling": ["perplexity", "bits_per_character", "nats_per_token"],
}


@pytest.fixture(scope="module", params=list(FILES))
def done(request: pytest.FixtureRequest, start, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    task, home = request.param, tmp_path_factory.mktemp(request.param)
    (home / "my.txt").write_text(FILES[task])
    names, setting = MODELS[task]
    given = ["lab", home / "my.txt", "--out", home / "out", "--tokens", 300, "--models", names, "--set", setting]
    with start(*given, "--set", "task.context=0" if task == "modeling" else "training.valid_every=20") as process:
        _, error = process.communicate(timeout=600)
    assert process.returncode == 0, error
    return task, home / "out"


def report_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_bytes())
    return found


def test_the_metrics_are_those_of_the_task(done: tuple[str, Path]) -> None:
    task, folder = done
    report = report_of(folder)
    assert report["task"] == task
    assert [metric["name"] for metric in report["metrics"]] == METRICS[task]
    for entry in report["entries"]:
        assert list(entry["results"]) == METRICS[task]
        assert entry["answering_speed"] > 0


def test_groups_add_up_to_the_test_set(done: tuple[str, Path]) -> None:
    task, folder = done
    report = report_of(folder)
    for entry in report["entries"]:
        total = sum(point["pairs"] for point in entry["by_length"])
        if task == "modeling":
            assert report["lengths"] == "tokens of context"
            assert entry["by_length"][0]["group"] == "0"
            assert entry["by_length"][0]["pairs"] == report["pairs"]
            assert total > report["pairs"]
        else:
            assert total == report["pairs"]


def test_the_same_texts_are_drawn_and_the_page_and_the_text_have_all(done: tuple[str, Path]) -> None:
    task, folder = done
    report = report_of(folder)
    drawn = [[one["number"] for one in entry["alignments"]] for entry in report["entries"] if entry["alignments"]]
    assert drawn
    assert all(numbers == drawn[0] for numbers in drawn)
    rows = {"classification": "label", "tagging": "tags", "modeling": "words"}
    assert {one["down"] for entry in report["entries"] for one in entry["alignments"]} == {rows[task]}
    page, text = (folder / "index.html").read_text(), (folder / "report.md").read_text()
    for entry in report["entries"]:
        assert entry["name"] in page
        assert entry["name"] in text
    assert ("Words looked at" in page) == ("Words looked at" in text) == (task == "classification")
    assert "pair" not in text


def test_without_names_the_models_of_the_task_are_compared(tmp_path: Path) -> None:
    for name, task in {"languages": "classification", "date-parts": "tagging", "diary": "modeling"}.items():
        plan = planned(LabRequest(tmp_path / name, DataConfig(name=name), minutes=1))
        assert (plan.task, tuple(plan.models)) == (task, TASKS[task].course)


def test_models_of_two_tasks_are_not_compared(tmp_path: Path) -> None:
    request = LabRequest(
        tmp_path / "out", DataConfig(name="languages"), models=("classifier-small", "tagger-small"), minutes=1
    )
    with pytest.raises(UsageError, match="tagger-small: a tagger, but the lab is for classification"):
        planned(request)


@pytest.mark.parametrize("task", list(FILES))
def test_rows_that_are_held_out_are_read_again_as_they_were(tmp_path: Path, task: str) -> None:
    (tmp_path / "my.txt").write_text(FILES[task])
    settings = ("task.context=0",) if task == "modeling" else ()
    request = LabRequest(tmp_path / "out", DataConfig(name=str(tmp_path / "my.txt")), tokens=9, settings=settings)
    plan = planned(request)
    hold_out(request)
    kept = list((tmp_path / "out" / "data").iterdir())
    assert {path.name.split(".")[0] for path in kept} == {"train", "valid", "test"}
    testset = plan.testset()
    content = FILES[task].replace("\t", " ").replace("\n", " ")
    assert len(testset) >= 2
    for source, (target,) in zip(testset.sources, testset.references, strict=True):
        assert (source.split(" ")[0] if source else target) in content
        assert target.split(" ")[0] in content


def test_contexts_are_grouped_by_powers_of_two() -> None:
    assert [context_group(number) for number in range(5)] == ["0", "1", "2 to 3", "4 to 7", "8 to 15"]


def test_telling_words_are_those_with_the_most_attention_over_the_texts_of_a_label(tmp_path: Path) -> None:
    translator, sums = load(saved(tmp_path / "run", CLASSIFIER)), TellingSums()
    scored = list(translator.score([("the cat", "animal"), ("the mat", "animal")]))
    for one in scored:
        sums.add("animal", one)
    (found,) = sums.telling(3)
    assert (found.label, found.texts) == ("animal", 2)
    expected = sum(float(one.attention[0, :3].sum()) for one in scored if one.attention is not None) / 2
    (the,) = (word for word in found.words if word.word == "the")
    assert the.texts == 2
    assert the.score == pytest.approx(expected, abs=1e-6)
    assert [word.score for word in found.words] == sorted((word.score for word in found.words), reverse=True)


def test_a_telling_word_is_the_same_with_and_without_punctuation(tmp_path: Path) -> None:
    translator, sums = load(saved(tmp_path / "run", CLASSIFIER)), TellingSums()
    for one in translator.score([('the cat, "the" ...', "animal")]):
        sums.add("animal", one)
    assert {word.word for word in sums.telling(9)[0].words} == {"the", "cat", "..."}
