"""`regarde predict`, `generate` and `score`: every task as a Unix filter, and text from a language model."""

from __future__ import annotations

import json
import math
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import regarde as package
from tests.conftest import Command, environment
from tests.tasks import CLASSIFIER, LANGUAGE_MODELS, TAGGER, saved


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    tiny = {"label": CLASSIFIER, "tags": TAGGER, "text": LANGUAGE_MODELS["attentive"]}
    return {name: saved(folder / name, model) for name, model in tiny.items()}


@pytest.mark.parametrize("command", ["predict", "translate"])
def test_each_task_answers_one_line_for_each_line(regarde: Command, runs: dict[str, Path], command: str) -> None:
    lines = ["the cat", "", "on mat"]
    for name, run in runs.items():
        done = regarde(command, run, stdin="\n".join(lines).encode())
        assert (done.code, done.error) == (0, "")
        model = package.load(run)
        assert done.out.decode().split("\n") == [model.predict(line).text for line in lines], name


def test_json_has_what_only_the_task_knows(regarde: Command, runs: dict[str, Path]) -> None:
    records = {
        name: json.loads(regarde("predict", run, "--json", stdin=b"the cat\n").out) for name, run in runs.items()
    }
    assert {name: record["task"] for name, record in records.items()} == {
        "label": "classification",
        "tags": "tagging",
        "text": "modeling",
    }
    probabilities = records["label"]["probabilities"]
    assert next(iter(probabilities)) == records["label"]["text"]
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-4)
    assert "alternatives" not in records["label"]
    assert {"label", "start", "end", "text"} >= {key for span in records["tags"]["spans"] for key in span}
    assert records["text"]["text"] == "the cat" + records["text"]["continuation"]
    assert len(records["text"]["attention"]) == len(records["text"]["source_tokens"])


def test_a_json_line_may_name_its_text_as_a_request_to_the_server_does(regarde: Command, runs: dict[str, Path]) -> None:
    stdin = b'{"id": 7, "text": "the cat"}\n{"text": 1}\n'
    first, second = map(json.loads, regarde("predict", runs["label"], "--json", stdin=stdin).out.splitlines())
    assert (first["id"], first["source"]) == (7, "the cat")
    assert second["source"] == '{"text": 1}'


def test_the_n_best_labels_come_with_their_log_probabilities(regarde: Command, runs: dict[str, Path]) -> None:
    rows = regarde("predict", runs["label"], "--n-best", 2, stdin=b"the cat").out.decode().split("\n")
    found = package.load(runs["label"]).predict("the cat").probabilities
    assert found is not None
    assert rows == [f"1\t{r}\t{math.log(p):.4f}\t{label}" for r, (label, p) in enumerate(found.items(), 1)][:2]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("label", ["--replace-unknown"], "--replace-unknown has no meaning for a classifier. Leave it out."),
        ("label", ["--long", "split"], "--long split has no meaning for a classifier. Leave it out."),
        ("tags", ["--min-length", 3], "--min-length has no meaning for a tagger. Leave it out."),
        ("text", ["--beta", 0.2], "--beta has no meaning for a language model. Leave it out."),
    ],
)
def test_an_option_without_meaning_is_refused(
    regarde: Command, runs: dict[str, Path], name: str, options: list[object], message: str
) -> None:
    assert regarde("predict", runs[name], *options, stdin=b"a\n").fails(2) == f"regarde: {message}"


def test_a_prompt_longer_than_the_limit_is_refused_alone(regarde: Command, runs: dict[str, Path]) -> None:
    done = regarde("predict", runs["text"], stdin=b"the\n" + b"the " * 300 + b"\nthe")
    assert "1 line too long" in done.fails(3)
    first, refused, last = done.out.decode().split("\n")
    assert (first, refused) == (last, "")


def test_generate_writes_what_predict_in_python_samples(regarde: Command, runs: dict[str, Path]) -> None:
    given = ["generate", runs["text"], "--prompt", "the c", "--length", 12, "--count", 70]
    done = regarde(*given)
    assert (done.code, done.error) == (0, "")
    texts = done.out.decode().splitlines()
    assert len(texts) == 70
    assert len(set(texts)) > 20
    assert all(text.startswith("the c") and len(text) <= 17 for text in texts)
    assert regarde(*given, "--engine", "torch").out == done.out
    assert regarde(*given, "--seed", 2).out.decode().splitlines()[:-1] == texts[1:]
    assert package.load(runs["text"]).generate("the c", length=12).text == texts[0]


def test_generate_searches_with_a_beam(regarde: Command, runs: dict[str, Path]) -> None:
    done = regarde("generate", runs["text"], "--beam", 4, "--count", 3, "--length", 6, "--json")
    records = [json.loads(line) for line in done.out.splitlines()]
    assert len({record["text"] for record in records}) == 3
    assert [record["prompt_tokens"] for record in records] == [0, 0, 0]
    assert records[0]["score"] >= records[1]["score"] >= records[2]["score"]


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_a_terminal_sees_the_text_grow(runs: dict[str, Path], engine: str) -> None:
    command = ["generate", runs["text"], "--prompt", "the", "--length", 300, "--count", 2, "--engine", engine]
    started = [sys.executable, "-m", "regarde", *map(str, command)]
    handle, terminal = pty.openpty()
    with subprocess.Popen(started, stdout=terminal, stderr=subprocess.PIPE, env=environment()) as process:
        os.close(terminal)
        chunks = []
        try:
            while chunk := os.read(handle, 1 << 16):
                chunks.append(chunk)
        except OSError:  # how a terminal says that nobody writes any more
            pass
        assert process.wait() == 0
    os.close(handle)
    model = package.load(runs["text"])
    expected = package_texts(model, 2)
    assert b"".join(chunks).decode().replace("\r\n", "\n") == "".join(f"{text}\n" for text in expected)


def package_texts(model: package.Translator, count: int) -> list[str]:
    from regarde.search import Sampling
    from regarde.search.settings import Rules

    rules = Rules(max_ratio=0.0, max_extra=300)
    return [model.predict("the", search=Sampling(temperature=0.8, seed=1 + n, rules=rules)).text for n in range(count)]


@pytest.mark.parametrize(
    ("name", "options", "code", "message"),
    [
        ("label", [], 2, "generate needs a language model: {run} is a classifier. Use predict."),
        ("text", ["--prompt", "中中"], 2, "The model knows no token of the prompt '中中'. Use another, or none."),
        ("text", ["--prompt", "the " * 300], 3, "A prompt of 1200 tokens: expected at most 1000. Give a shorter one."),
        ("text", ["--beam", "2", "--top-k", "3"], 2, "--beam excludes --temperature, --top-k and --top-p. "),
        ("text", ["--alpha", "1"], 2, "--alpha and --prune are settings of a beam. "),
        ("text", ["--beam", "2", "--count", "3"], 2, "--count 3: a beam of 2 has fewer texts. "),
        ("text", ["--temperature", "nan"], 2, "--temperature: nan is not a number."),
    ],
)
def test_generate_says_in_one_line_what_is_wrong(
    cli: Command, runs: dict[str, Path], name: str, options: list[str], code: int, message: str
) -> None:
    line = cli("generate", runs[name], *options).fails(code)
    assert line.startswith(f"regarde: {message.format(run=runs[name])}")


def test_score_writes_log_probability_tokens_and_line(regarde: Command, runs: dict[str, Path]) -> None:
    done = regarde("score", runs["text"], stdin=b"the cat\n\nthe mat\n")
    assert (done.code, done.error) == (0, "")
    model = package.load(runs["text"])
    found = [
        f"{one.score:.4f}\t{len(one.tokens)}\t{one.text}"
        for one in model.score(("", t) for t in ("the cat", "", "the mat"))
    ]
    assert done.out.decode().splitlines() == found
    (record,) = map(json.loads, regarde("score", runs["text"], "--json", stdin=b"the cat").out.splitlines())
    assert record["score"] == pytest.approx(sum(record["token_scores"]), abs=1e-4)
    assert len(record["token_scores"]) == 8


def test_score_of_pairs_reads_a_tab_and_refuses_what_is_no_pair(regarde: Command, runs: dict[str, Path]) -> None:
    done = regarde("score", runs["label"], stdin=b"the cat\tanimal\nno pair\nthe cat\ttime\n")
    expected = "Expected what is given TAB what is wanted on each line: repair or shorten them."
    assert done.fails(3) == f"regarde: 1 line too long or no pair, with an empty answer. {expected}"
    rows = [row.split("\t") for row in done.out.decode().splitlines()]
    found = package.load(runs["label"]).predict("the cat").probabilities
    assert found is not None
    assert rows[1] == [""]
    assert math.exp(float(rows[0][0])) == pytest.approx(found["animal"], abs=1e-3)
    assert rows[2][1:] == ["2", "the cat", "time"]


def test_a_line_with_a_label_never_seen_in_training_is_warned_of(regarde: Command, runs: dict[str, Path]) -> None:
    done = regarde("score", runs["label"], stdin=b"the cat\tanimal\nthe cat\tplant\n")
    given = "1 line with a label or tag never seen in training"
    assert (done.code, done.error) == (0, f"regarde: warning: {given}, whose score means nothing\n")


def test_tags_and_tokens_of_unequal_number_have_no_score(regarde: Command, runs: dict[str, Path]) -> None:
    done = regarde("score", runs["tags"], stdin=b"the cat\tO B-ANIMAL\nthe cat\tO\n")
    assert done.code == 3
    assert [bool(row) for row in done.out.decode().split("\n")] == [True, False, False]


def test_lines_of_no_known_token_are_answered_and_counted(regarde: Command, runs: dict[str, Path]) -> None:
    for name, run in runs.items():
        done = regarde("predict", run, stdin="the cat\n中中\n\n".encode())
        assert done.code == 0
        assert done.error == "regarde: warning: 1 line without any token that the model knows\n", name
        assert done.out.count(b"\n") == 3
