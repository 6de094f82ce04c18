"""Questions and pointers at the command line and in Python, from files to answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import regarde as package
from regarde.errors import DataError
from regarde.streaming.filter import LONGEST
from tests.conftest import Command, Ended
from tests.tasks import POINTER, QUESTIONS, SPAN, TinyModel, saved

STORY = "Ada goes. Hugo stays."


@pytest.fixture(params=[QUESTIONS, SPAN], ids=["written", "span"])
def run(request, tmp_path: Path) -> Path:
    return saved(tmp_path / "run", request.param)


@pytest.fixture(scope="module")
def command(regarde: Command) -> Callable[..., Ended]:
    return lambda *arguments, given="": regarde(*arguments, stdin=given.encode())


def test_lines_and_json_have_the_same_answer(run: Path, command) -> None:
    line = f"{STORY}\tWho goes?"
    record = json.dumps({"passage": STORY, "question": "Who goes?"})
    ended = command("predict", run, given=f"{line}\n{record}\n\n")
    first, second, empty = ended.out.decode().split("\n")[:3]
    assert (ended.code, first, empty) == (0, second, "")
    assert package.load(run).predict(line).text == first


def test_json_keeps_the_fields_of_its_input(run: Path, command) -> None:
    record = json.dumps({"passage": STORY, "question": "Who goes?", "id": 7})
    found = json.loads(command("predict", run, "--json", given=record).out)
    assert {"passage": STORY, "question": "Who goes?", "id": 7, "task": "questions"}.items() <= found.items()
    assert len(found["attention"]) == len(found["tokens"])


def test_a_line_without_a_question_has_an_empty_answer_and_the_exit_code_of_data(run: Path, command) -> None:
    ended = command("predict", run, given=f"Who?\n{STORY}\tWho goes?\n")
    assert ended.out.startswith(b"\n")
    assert ended.code == 3
    assert "1 line with an empty answer: expected passage TAB question, or JSON with both." in ended.error


def test_in_python_a_question_without_a_passage_is_one_line(run: Path) -> None:
    with pytest.raises(DataError, match=r"'Who\?': expected passage TAB question, or JSON with both. Give both."):
        package.load(run).predict("Who?")


def test_a_span_is_written_as_in_the_passage(tmp_path: Path) -> None:
    model = package.load(saved(tmp_path / "run", SPAN))
    found = model.predict(f"{STORY}\tWho stays?")
    assert found.text in STORY
    assert found.text
    assert found.finished
    assert len(found.tokens) == 3  # where it begins, where it ends, EOS


@pytest.mark.parametrize("tiny", [QUESTIONS, SPAN], ids=["written", "span"])
def test_a_passage_that_is_too_long_is_answered_by_its_best_window(tmp_path: Path, tiny: TinyModel) -> None:
    model = replace(package.load(saved(tmp_path / "run", tiny)), longest=14)
    long = " ".join([STORY] * 6)
    sentence = model.tokens(f"{long}\tWho goes?")
    assert len(sentence.windows) > 2
    assert all(window.size <= 14 for window in sentence.windows)
    parts = [window.text.split("\t")[0].split(" ") for window in sentence.windows]
    new = [word for part in parts[:-1] for word in part[: len(part) // 2]]
    assert [*new, *parts[-1]] == long.split(" ")
    found = model.predict(f"{long}\tWho goes?")
    each = [model.predict(window.text) for window in sentence.windows]
    best = max(each, key=lambda one: one.score)
    assert found.text == best.text
    assert found.score == pytest.approx(best.score, abs=1e-5)


def test_a_question_that_is_too_long_itself_is_refused(tmp_path: Path) -> None:
    model = replace(package.load(saved(tmp_path / "run", SPAN)), longest=5)
    with pytest.raises(DataError, match=r"expected at most 5\. Cut it into shorter ones"):
        model.predict(f"{STORY}\t{'why ' * 9}?")


def test_a_line_too_long_is_refused_without_the_remedies_of_translation(tmp_path: Path, command) -> None:
    run = saved(tmp_path / "run", SPAN)
    done = command("predict", run, given=f"{'a ' * LONGEST}\tWho goes?\n")
    assert done.code == 3
    assert done.error.splitlines()[-1] == "regarde: 1 line too long, with an empty answer. Cut them."


def test_a_pointer_answers_with_tokens_of_its_source(tmp_path: Path, command) -> None:
    run = saved(tmp_path / "run", POINTER)
    said = command("predict", run, given="cabxy\n").out.decode().strip()
    assert set(said) <= set("cabxy")
    assert len(set(said)) == len(said)


def test_answers_that_are_not_in_the_passage_are_counted_and_left_out(tmp_path: Path, command) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [{"passage": f"Ada has {n} maps.", "question": "How many?", "answer": str(n)} for n in range(30)]
    rows += [{"passage": f"Ada goes {n}.", "question": "Who?", "answer": "Hugo"} for n in range(10)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    small = [f"model.{name}=4" for name in ("embedding", "hidden", "characters", "spelling")]
    settings = [each for setting in [*small, "training.steps=2"] for each in ("--set", setting)]
    out = ["--preset", "span-small", "--valid", str(file), "--out", str(tmp_path / "run")]
    ended = command("train", file, *out, *settings)
    assert ended.code == 0, ended.error
    assert "training: 10 questions of 40 left out: the target is not in the source" in ended.error
    assert "never seen in training" not in ended.error  # positions are no labels
    ended = command("evaluate", tmp_path / "run", "--data", file)
    assert "10 references not in the source: a model that points cannot say them" in ended.error
    assert "never seen in training" not in ended.error


def test_answers_of_which_none_is_in_its_passage_are_an_error(tmp_path: Path, command) -> None:
    file = tmp_path / "rows.jsonl"
    row = {"passage": "Ada goes.", "question": "Who?", "answer": "Hugo"}
    file.write_text("".join(json.dumps(row | {"passage": f"Ada goes {n}."}) + "\n" for n in range(9)))
    ended = command("train", file, "--preset", "span-small", "--out", tmp_path / "run")
    assert ended.code == 3
    assert "No target of 8 training questions is in its source" in ended.error
    assert "questions-small" in ended.error
