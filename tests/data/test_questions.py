"""Files of questions: JSON lines, tables with names, SQuAD's JSON; and what is refused, with its remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regarde.data.corpus import ReadOptions, Report, read_questions
from regarde.data.formats import Pair
from regarde.data.kinds import first_lines, infer_task
from regarde.data.questions import source_of
from regarde.errors import DataError
from regarde.tasks import QuestionsTask


def read(file: Path, **options: Any) -> tuple[list[Pair], Report]:
    report = Report()
    return list(read_questions([file], ReadOptions(**options), report)), report


def jsonl(folder: Path, *records: object) -> Path:
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def test_json_lines_have_one_answer_or_several_and_white_space_is_one_space(tmp_path):
    one = {"passage": "Ada goes.\n Hugo\tstays.", "question": "Who  stays?", "answer": "Hugo"}
    two = {"passage": "Ada goes.", "question": "Who?", "answers": ["Ada", "she"], "supporting": [0], "id": 7}
    pairs, report = read(jsonl(tmp_path, one, two))
    assert pairs == [("Ada goes. Hugo stays.\tWho stays?", "Hugo"), ("Ada goes.\tWho?", "Ada")]
    assert [pair.accepted for pair in pairs] == [("Hugo",), ("Ada", "she")]
    assert [pair.supporting for pair in pairs] == [(), (0,)]
    assert report.kept == 2


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"passage": "a", "question": "b"}, "expected the strings passage, question and answer, or answers"),
        ({"passage": 1, "question": "b", "answer": "c"}, "expected the strings passage, question and answer"),
        ({"passage": " ", "question": "b", "answer": "c"}, "the passage is blank"),
        ({"passage": "a", "question": "", "answer": "c"}, "the question is blank"),
        ({"passage": "a", "question": "b", "answer": " "}, "the target is blank"),
        ({"passage": "a", "question": "b", "answers": []}, "the list of answers is empty"),
        ({"passage": "a", "question": "b", "answer": "c", "supporting": [-1]}, '"supporting" must be a list'),
        ({"passage": "a", "question": "b", "answer": "c", "answer_start": "1"}, '"answer_start" must be a character'),
        (["a"], "expected an object with passage, question and answer"),
    ],
)
def test_a_malformed_record_is_one_line_with_its_remedy(tmp_path, record, said):
    with pytest.raises(DataError) as error:
        read(jsonl(tmp_path, record))
    assert "rows.jsonl, line 1: " in str(error.value)
    assert said in str(error.value)
    assert "--on-error skip" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_table_names_its_columns_in_any_order(tmp_path):
    file = tmp_path / "rows.tsv"
    file.write_text("id\tAnswer\tpassage\tquestion\n1\tAda\tAda goes.\tWho?\n")
    assert read(file)[0] == [("Ada goes.\tWho?", "Ada")]
    assert infer_task(first_lines(file), str(file)).kind == "questions"


def test_a_table_without_names_needs_columns(tmp_path):
    file = tmp_path / "rows.tsv"
    file.write_text("Ada goes.\tWho?\tAda\n")
    with pytest.raises(DataError, match=r"does not name the columns .* --columns 1\+2:3"):
        read(file)
    assert read(file, columns="1+2:3")[0] == [("Ada goes.\tWho?", "Ada")]


def squad(folder: Path, *asked: dict[str, Any]) -> Path:
    file = folder / "dev.json"
    file.write_text(json.dumps({"data": [{"title": "x", "paragraphs": [{"context": "Ada\ngoes.", "qas": asked}]}]}))
    return file


def test_squad_says_where_an_answer_begins(tmp_path):
    answers = [{"text": "goes", "answer_start": 4}, {"text": "Ada", "answer_start": 0}]
    pairs, _ = read(squad(tmp_path, {"question": "What?", "answers": answers}))
    assert pairs[0].start == 3  # before the space


def test_squad_is_read_and_impossible_questions_are_counted_and_left_out(tmp_path):
    answers = [{"text": "Ada", "answer_start": 0}, {"text": "Ada", "answer_start": 0}, {"text": "she"}]
    file = squad(
        tmp_path,
        {"question": "Who?", "id": "1", "answers": answers},
        {"question": "Why?", "id": "2", "answers": [], "is_impossible": True},
    )
    pairs, report = read(file)
    assert pairs == [("Ada goes.\tWho?", "Ada")]
    assert pairs[0].accepted == ("Ada", "she")
    assert pairs[0].start == 0
    assert report.impossible == 1
    assert "1 impossible question left out" in report.summary()
    assert infer_task(first_lines(file), str(file)).kind == "questions"


def test_the_place_of_an_answer_is_given_or_follows_from_what_supports_it(tmp_path):
    passage = "Ada  saw Ada. Then\nAda left."
    asked = {"question": "Who?", "passage": passage, "answer": "Ada"}
    starts = [0, 9, 19]
    rows = [{**asked, "answer_start": start} for start in starts]
    rows += [asked, {**asked, "supporting": [1]}, {**asked, "supporting": [7]}]
    pairs, _ = read(jsonl(tmp_path, *rows))
    assert [pair.start for pair in pairs] == [0, 7, 17, 0, 18, 0]  # at the word or the space before it


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not valid JSON, expected SQuAD's"),
        ("[1]", "expected SQuAD's"),
        ('{"data": [{"paragraphs": 3}]}', "no list of objects under 'paragraphs'"),
        ('{"data": [{"paragraphs": [{"context": "a", "qas": [1]}]}]}', "no list of objects under 'qas'"),
        (
            '{"data": [{"paragraphs": [{"context": 1, "qas": [{"question": "a", "answers": [{"text": "b"}]}]}]}]}',
            "dev.json, question 1: expected the strings passage",
        ),
    ],
)
def test_a_malformed_squad_file_is_one_line(tmp_path, content, said):
    file = tmp_path / "dev.json"
    file.write_text(content)
    with pytest.raises(DataError) as error:
        read(file)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_json_lines_of_questions_are_recognized(tmp_path):
    file = jsonl(tmp_path, *[{"passage": "a", "question": "b", "answer": "c"}] * 3)
    guess = infer_task(first_lines(file), str(file))
    assert (guess.kind, guess.reason) == ("questions", "The keys are passage and question.")


def test_no_passage_is_in_training_and_validation():
    pairs = [Pair(f"story {n // 4}\tquestion {n}", "x") for n in range(200)]
    train, valid = QuestionsTask().split(pairs, seed=3)
    assert len(train) + len(valid) == 200
    assert valid
    assert not {p.source.split("\t")[0] for p in train} & {p.source.split("\t")[0] for p in valid}


def test_questions_about_one_passage_are_divided_themselves():
    pairs = [Pair(f"story\tquestion {n}", "x") for n in range(40)]
    assert len(QuestionsTask().split(pairs, seed=3).valid) == 2


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("Ada  goes.\tWho?", "Ada goes.\tWho?"),
        ("Ada\tgoes.\tWho?", "Ada goes.\tWho?"),  # the last TAB separates
        ('{"passage": "Ada goes.", "question": "Who?"}', "Ada goes.\tWho?"),
        ("", ""),
        ("  ", ""),
        ("Who?", None),
        ("\tWho?", None),
        ('{"question": "Who?"}', None),
    ],
)
def test_a_line_to_answer_is_passage_tab_question_or_json(line, source):
    assert source_of(line) == source
