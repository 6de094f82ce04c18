"""`regarde evaluate` and `compare` of classifiers, taggers and language models: read by their task, judged by it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regarde
from regarde import config
from tests.conftest import Command, Ended
from tests.tasks import CLASSIFIER, LANGUAGE_MODELS, TAGGER, saved

TEXTS = ["the cat", "a mat", "on monday", "the mat", "the cat sat on the mat", "a cat", "sat", "monday"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    tiny = {"label": CLASSIFIER, "tags": TAGGER, "text": LANGUAGE_MODELS["transformer"]}
    first = {name: saved(folder / name, model) for name, model in tiny.items()}
    return first | {f"other {name}": saved(folder / f"other {name}", model, seed=9) for name, model in tiny.items()}


def record(done: Ended) -> dict[str, Any]:
    assert done.code == 0, done.error
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_labels_are_judged_by_accuracy_and_f1(cli: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    said = [out.text for out in regarde.load(runs["label"]).predict(TEXTS)]
    wanted = ["animal" if n % 3 else label for n, label in enumerate(said)]
    path = tmp_path / "test.tsv"
    path.write_text("".join(f"{text}\t{label}\n" for text, label in zip(TEXTS, wanted, strict=True)))
    found = record(cli("evaluate", runs["label"], "--data", path, "--samples", 100, "--json"))
    measured = ["accuracy", "macro_f1", "micro_f1", "calibration_error"]
    assert (found["task"], list(found["metrics"]), found["calibrated"]) == ("classification", measured, False)
    right = sum(a == b for a, b in zip(said, wanted, strict=True))
    accuracy = found["metrics"]["accuracy"]
    assert accuracy["value"] == right / len(TEXTS)
    assert accuracy["low"] <= accuracy["value"] <= accuracy["high"]
    names, counts = found["confusion"]["labels"], np.array(found["confusion"]["counts"])
    assert set(names) == {*said, *wanted}
    assert np.trace(counts) == right
    by_name = {one["name"]: one for one in found["classes"]}
    assert by_name["animal"]["support"] == wanted.count("animal")
    assert sum(group["pairs"] for group in found["by"]["source length in characters"]) == len(TEXTS)
    told = cli("evaluate", runs["label"], "--data", path, "--samples", 0).out.decode()
    assert "the model is a classifier: accuracy, macro_f1, micro_f1\n" in told
    assert "wanted \\ answered" in told


def test_labels_never_seen_in_training_are_counted_and_wrong(
    cli: Command, runs: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "test.tsv"
    said = regarde.load(runs["label"]).predict("the cat").text
    path.write_text(f"the cat\t{said}\na mat\tplant\nmonday\tplant\nsat\tstone\n")
    done = cli("evaluate", runs["label"], "--data", path, "--samples", 0)
    assert "warning: 3 labels or tags never seen in training, scored as wrong: plant (2), stone (1)" in done.error
    found = record(cli("evaluate", runs["label"], "--data", path, "--samples", 0, "--json"))
    assert found["unseen"] == {"plant": 2, "stone": 1}
    assert found["metrics"]["accuracy"]["value"] == 0.25


def test_notes_call_a_row_what_its_task_calls_it(cli: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    (path := tmp_path / "test.tsv").write_text("the ☃\tanimal\na mat\tanimal\nalone\n")
    for command in ("evaluate", "inspect"):
        done = cli(command, runs["label"], "--data", path, "--on-error", "skip-any")
        assert "2 texts kept; 1 skipped" in done.error
    done = cli("evaluate", runs["label"], "--data", path, "--on-error", "skip-any")
    assert "does not know all tokens of 1 text" in done.error


def test_a_table_is_read_in_the_columns_of_the_training(cli: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    run, path = saved(tmp_path / "run", CLASSIFIER, columns="2:1"), tmp_path / "test.tsv"
    said = [out.text for out in regarde.load(run).predict(TEXTS)]
    path.write_text("".join(f"{label}\t{text}\n" for text, label in zip(TEXTS, said, strict=True)))
    assert config.read(run / "config.toml")["data"]["columns"] == "2:1"
    assert record(cli("evaluate", run, "--data", path, "--json"))["metrics"]["accuracy"]["value"] == 1
    swapped = record(cli("evaluate", run, "--data", path, "--columns", "1:2", "--json"))
    assert swapped["metrics"]["accuracy"]["value"] == 0


def test_tags_are_judged_by_token_and_by_span(cli: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    sentences = ["the cat sat", "on the mat", "cat"]
    path = tmp_path / "test.conll"
    said = [out.text.split(" ") for out in regarde.load(runs["tags"]).predict(sentences)]
    wanted = [["B-PLACE", *said[0][1:]], *said[1:]]
    pairs = [zip(s.split(" "), tags, strict=True) for s, tags in zip(sentences, wanted, strict=True)]
    lines = ["-DOCSTART- O", "", *("\n".join(f"{t} {tag}" for t, tag in pair) + "\n" for pair in pairs)]
    path.write_text("\r\n".join("\n".join(lines).split("\n")), newline="")
    found = record(cli("evaluate", runs["tags"], "--data", path, "--samples", 50, "--json"))
    assert list(found["metrics"]) == ["token_accuracy", "span_f1", "span_precision", "span_recall"]
    right = sum(a == b for one, other in zip(said, wanted, strict=True) for a, b in zip(one, other, strict=True))
    assert found["metrics"]["token_accuracy"]["value"] == pytest.approx(right / 7)
    assert {one["name"] for one in found["classes"]} <= {"ANIMAL", "PLACE"}
    assert sum(map(sum, found["confusion"]["counts"])) == 7


def test_a_language_model_is_judged_by_likelihood_alone(cli: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "test.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    found = record(cli("evaluate", runs["text"], "--data", path, "--samples", 50, "--json"))
    scored = list(regarde.load(runs["text"]).score(("", text) for text in TEXTS))
    total, tokens = -sum(one.score for one in scored), sum(len(one.tokens) for one in scored)
    values = {name: one["value"] for name, one in found["metrics"].items()}
    assert values == pytest.approx(
        {
            "perplexity": math.exp(total / tokens),
            "bits_per_character": total / math.log(2) / sum(len(text) + 1 for text in TEXTS),
            "nats_per_token": total / tokens,
        },
        rel=1e-5,
    )
    assert [group["group"] for group in found["by"]["text length in characters"]]
    told = cli("evaluate", runs["text"], "--data", path, "--samples", 0).out.decode()
    assert told.startswith(f"8 texts of {path}, forced decoding, ")


@pytest.mark.parametrize("name", ["label", "tags", "text"])
def test_models_are_compared_by_the_metrics_of_their_task(
    cli: Command, runs: dict[str, Path], tmp_path: Path, name: str
) -> None:
    path = tmp_path / "data.txt"
    model = regarde.load(runs[name])
    if name == "text":
        path.write_text("".join(f"{text}\n" for text in TEXTS))
    elif name == "label":
        path.write_text("".join(f"{text}\t{model.predict(text).text}\n" for text in TEXTS))
    else:
        rows = [zip(text.split(), model.predict(text).text.split(), strict=True) for text in TEXTS]
        path.write_text("\n".join("".join(f"{token}\t{tag}\n" for token, tag in row) for row in rows))
    found = record(cli("compare", runs[name], runs[f"other {name}"], "--data", path, "--samples", 100, "--json"))
    judged = {"label": "accuracy", "tags": "span_f1", "text": "perplexity"}[name]
    row = next(row for row in found["metrics"] if row["metric"] == judged)
    first, second = row["models"]
    if name != "text":
        assert first["value"] == 1
    assert second["difference"]["value"] == pytest.approx(second["value"] - first["value"])
    assert 0 <= second["difference"]["p"] <= 1
    (apart,) = found["disagreements"]
    assert 0 < apart["ahead"] + apart["behind"] <= len(TEXTS)
    told = cli("compare", runs[name], runs[f"other {name}"], "--data", path, "--samples", 20)
    assert told.code == 0
    noun = {"label": "accuracy", "tags": "token accuracy", "text": "bits per character"}[name]
    assert f"\nby {noun}, other {name} is ahead of {name} on " in told.out.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "text", "--data", "dates"], "dates: data for translation, but the model is a language model."),
        (["evaluate", "label", "--data", "diary"], "diary: data for modeling, but the model is a classifier."),
        (["evaluate", "text", "--data", "diary", "--metrics", "bleu"], "--metrics bleu compares answers with refer"),
        (["evaluate", "label", "--data", "languages", "--metrics", "perplexity"], "--metrics perplexity: not of a cl"),
        (["compare", "label", "text", "--data", "languages"], "{text} is a language model, {label} is a classifier."),
    ],
)
def test_what_does_not_fit_the_task_ends_in_one_line(
    cli: Command, runs: dict[str, Path], arguments: list[str], message: str
) -> None:
    given = [runs.get(word, word) for word in arguments]
    assert cli(*given).fails(2).startswith(f"regarde: {message.format(**runs)}")


def test_several_answers_need_a_table(cli: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "test.txt"
    path.write_text("the cat\n")
    line = cli("evaluate", runs["text"], "--data", path, "--several").fails(2)
    assert line == "regarde: --several is for tables, which a language model does not read. Leave it out."


def test_running_text_is_judged_in_one_piece(cli: Command, tmp_path: Path) -> None:
    run, path = saved(tmp_path / "run", LANGUAGE_MODELS["recurrent"], context=8), tmp_path / "test.txt"
    lines = [f"{text}\n" for text in TEXTS]
    path.write_text("".join(lines))
    found = record(cli("evaluate", run, "--data", path, "--samples", 0, "--json"))
    (whole,) = regarde.load(run).score([("", "".join(lines))])
    nats = -sum(whole.token_scores[:-1])  # the end of the text is not judged
    assert found["metrics"]["nats_per_token"]["value"] == pytest.approx(nats / (len(whole.tokens) - 1), rel=1e-4)
    assert found["metrics"]["bits_per_character"]["value"] == pytest.approx(
        nats / math.log(2) / sum(map(len, lines)), rel=1e-4
    )


def test_inspecting_a_label_or_tags_says_nothing_false_of_attention(
    cli: Command, runs: dict[str, Path], tmp_path: Path
) -> None:
    texts, tags = tmp_path / "texts.tsv", tmp_path / "tags.conll"
    said = [out.text for out in regarde.load(runs["label"]).predict(TEXTS)]
    texts.write_text("".join(f"{text}\t{label}\n" for text, label in zip(TEXTS, said, strict=True)))
    found = record(cli("inspect", runs["label"], "--data", texts, "--json"))
    assert found["attention"]["dead"] == [[1, 1]]  # all tokens of an answer have the attention of the label
    assert "dead_heads" not in [finding["name"] for finding in found["findings"]]
    told = cli("inspect", runs["label"], "--data", texts).out.decode()
    assert told.startswith("8 texts of ")
    assert "  right  most telling words\n" in told  # to the left, as the words below it
    words = ["the", "cat", "sat"] * 4
    tags.write_text("".join(f"{word}\tO\n" for word in words) + "\n")
    found = record(cli("inspect", runs["tags"], "--data", tags, "--json"))
    assert found["attention"] is None  # each tag is that of its own token
    assert found["source"]["tokens"] == len(words)  # and not their characters
    assert found["answers"]["looping"] == 0  # tags may be alike


def test_inspecting_a_language_model_asks_for_no_answers_without_a_prompt(
    cli: Command, runs: dict[str, Path], tmp_path: Path
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat sat\non the mat\n")
    found = record(cli("inspect", runs["text"], "--data", texts, "--json"))
    assert (found["pairs"], found["answers"]["answers"]) == (2, 0)
    assert "answer" not in cli("inspect", runs["text"], "--data", texts).out.decode()


def test_an_8_bit_model_is_compared_by_its_task(cli: Command, runs: dict[str, Path], tmp_path: Path) -> None:
    tags, lines = tmp_path / "tags.conll", tmp_path / "lines.txt"
    tags.write_text("the\tO\ncat\tO\n\na\tO\nmat\tO\n")
    lines.write_text("".join(f"{text}\n" for text in TEXTS))
    done = cli("quantize", runs["tags"], "--out", tmp_path / "tags", "--data", tags)
    assert done.out.decode().splitlines()[-1] == "2 of 2 answers equal (100.0%)"
    done = cli("quantize", runs["text"], "--out", tmp_path / "text", "--data", lines)
    exact = record(cli("evaluate", runs["text"], "--data", lines, "--samples", 0, "--json"))
    value = exact["metrics"]["perplexity"]["value"]
    assert next(line.rsplit(", ", 1)[1] for line in done.out.decode().splitlines()) == f"perplexity {value:.3f}"
    assert len(done.out.splitlines()) == 2  # no answers: all would begin with nothing
