"""Which task a file is for shows in its first lines."""

from __future__ import annotations

import gzip
import json
from itertools import product
from pathlib import Path

import pytest

from regarde.data.formats import parse_columns
from regarde.data.kinds import LOOKED_AT, TaskKind, first_lines, infer_task

TEXTS = [
    f"{who} {does} {what}" for who, does, what in product(["we", "you"], ["see", "like", "buy"], ["it", "him", "a"])
]
LABELS = ["good", "bad"]
NUMBERED = [f"{text} {i}" for i in range(4) for text in TEXTS]
REVIEWS = [(text, LABELS[i * i % 3 > 0]) for i, text in enumerate(NUMBERED)]
SENTENCES = ["Wolff\tB-PER\nplays\tO\nin\tO\nRome\tB-LOC", "No\tO", "Rome\tB-LOC\nis\tO\nold\tO"]


def kind(content: str, name: str = "a.tsv", columns: str | None = None) -> TaskKind:
    return infer_task(content.split("\n"), name, parse_columns(columns) if columns else None).kind


def table(*rows: tuple[str, ...]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def test_a_small_closed_set_beside_texts_is_classification_in_either_order() -> None:
    after = infer_task(table(*REVIEWS).split("\n"), "a.tsv")
    assert (after.kind, after.columns) == ("classification", None)
    assert after.reason == "Column 2 has 2 different labels (bad, good) for 72 texts."
    before = infer_task(table(*((label, text) for text, label in REVIEWS)).split("\n"), "a.txt")
    assert (before.kind, before.columns) == ("classification", "2:1")
    assert before.reason == "Column 1 has 2 different labels (bad, good) for 72 texts."


def test_labels_may_be_sorted_and_have_a_header() -> None:
    rows = sorted((label, text) for text, label in REVIEWS)
    assert kind(table(("label", "text"), *rows)) == "classification"


def test_one_label_for_all_texts_is_a_label_set_of_one() -> None:
    assert kind(table(*((text, "good") for text in TEXTS))) == "classification"


def test_a_label_has_few_words() -> None:
    assert kind(table(*((text, "it is not as bad as they say") for text in TEXTS))) == "translation"


@pytest.mark.parametrize(
    "rows",
    [
        [(text, text[::-1]) for text in NUMBERED],
        [(word, f"right{i // 4}") for i, word in enumerate(NUMBERED)],  # four misspellings of each word
        [(f"phrase {i % 12}", f"expression {i % 12}") for i in range(400)],  # repeated, but one for each
        REVIEWS[:9],  # too few to tell
    ],
)
def test_two_columns_of_text_are_translation(rows: list[tuple[str, str]]) -> None:
    assert kind(table(*rows)) == "translation"
    assert kind(table(*((target, source) for source, target in rows))) == "translation"
    assert kind("".join(f"{source} ||| {target}\n" for source, target in rows), "a.en-fr") == "translation"


def test_more_columns_are_translation_until_the_user_chooses() -> None:
    rows = table(*((str(i), text, label) for i, (text, label) in enumerate(REVIEWS)))
    assert kind(rows) == "translation"
    assert kind(rows, columns="2:3") == "classification"
    assert kind(rows, columns="3:2") == "translation"  # the user has said which is wanted
    assert kind(rows, columns="1+3:2") == "translation"


def test_json_lines_are_judged_by_their_source_and_target() -> None:
    def records(rows: list[tuple[str, str]]) -> str:
        return "\n".join(json.dumps({"source": source, "target": target}) for source, target in rows)

    assert kind(records(REVIEWS), "a.jsonl") == "classification"
    assert kind(records([(text, text) for text in NUMBERED]), "a.jsonl.gz") == "translation"
    assert kind('{"source": 1}\n[]\nnot JSON', "a.jsonl") == "translation"


def test_bars_separate_a_text_from_its_label() -> None:
    guess = infer_task([f"{text} ||| {label}" for text, label in REVIEWS], "a.txt")
    assert (guess.kind, guess.columns) == ("classification", None)


@pytest.mark.parametrize(
    "content",
    [
        "\n\n".join(SENTENCES),
        "\n\n".join(SENTENCES).replace("\t", " "),
        "-DOCSTART- -X-\n\n" + "\n\n".join(SENTENCES).replace("\t", " "),
        "\n\n".join(f"# sent_id = {i}\n{sentence}" for i, sentence in enumerate(SENTENCES)),
        "\n\n".join(SENTENCES).replace("\t", "\t_\t"),  # with a column that is not used
        "Wolff\tO\nplays\tO\n\nhere\tO\n",
    ],
)
def test_tokens_with_few_tags_and_blank_lines_between_are_tagging(content: str) -> None:
    assert kind(content, "a.txt") == "tagging"


def test_a_chosen_column_holds_the_tags() -> None:
    lines = "\n\n".join(SENTENCES).replace("\t", "\tX\t").split("\n")
    reason = "Blank lines separate 3 sentences, one token a line: 3 different tags in column 3."
    assert infer_task(lines, "a.tsv").reason == reason
    assert infer_task(lines, "a.tsv", parse_columns("1:3")).kind == "tagging"
    assert infer_task(lines, "a.tsv", parse_columns("1:9")).kind == "tagging"  # refused where it is read


def test_blank_lines_alone_do_not_make_sentences() -> None:
    names = [(text.replace(" ", "_"), label) for text, label in REVIEWS]
    assert kind("\n\n".join("\t".join(row) for row in names)) == "classification"  # one between all rows
    assert kind(f"{table(*REVIEWS)}\n{table(*REVIEWS)}") == "classification"  # texts, not tokens
    words = [(f"word{i}", f"mot{i}") for i in range(60)]
    assert kind(f"{table(*words[:30])}\n{table(*words[30:])}") == "translation"  # not a closed set


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a", "a.en", "a.txt.gz"])
def test_text_without_columns_is_modeling(name: str) -> None:
    play = (
        "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.\n\nFirst Citizen:\nNo\n"
    )
    assert kind(play, name) == "modeling"
    assert infer_task(play.split("\n"), name).reason == "One column of text: no line has a TAB."
    assert kind(f"{play}a\tTAB\n", name) == "modeling"


def test_no_lines_are_modeling_of_nothing_and_not_an_error() -> None:
    assert kind("", "a.txt") == "modeling"


def test_comma_separated_values_are_no_text() -> None:
    assert kind("a,b\nc,d\n", "a.csv") == "translation"  # and refused where they are read


def test_first_lines_are_decompressed_and_no_more_than_needed(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv.gz"
    file.write_bytes(gzip.compress(b"\xff a\tb\r\n" * (LOOKED_AT + 7)))
    lines = first_lines(file)
    assert (len(lines), lines[0]) == (LOOKED_AT, "\ufffd a\tb")
