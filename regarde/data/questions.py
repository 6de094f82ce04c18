"""Questions about passages, as pairs of texts: the source is `passage TAB question`, the target the answer.

Runs of white space become one space, so the only TAB of a source is the one between passage and question.

name.jsonl   {"passage": "…", "question": "…", "answer": "…"}; "answers": ["…", …] where several are right;
             "supporting": the sentences that the answer follows from, counted from 0; "answer_start": the character
             of the passage at which the first answer begins; other keys are ignored
name.json    SQuAD (Rajpurkar et al. 2016, 2018); impossible questions of version 2 are counted and left out
name.tsv     a table whose first row names the columns passage, question and answer; others are ignored. Of a table
             without names, --columns chooses them: 1+2:3
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regarde.data.formats import LineError, Pair, parsed
from regarde.data.lines import File
from regarde.errors import DataError, unreadable
from regarde.text.sentences import sentences_of
from regarde.text.tokenizers import BETWEEN

COLUMNS = ("passage", "question", "answer")
LARGEST_FILE = 2**30  # bytes of a JSON file, which is read whole


class Question(NamedTuple):
    """A passage, a question, its accepted answers, and the sentences they follow from, counted from 0, if known."""

    passage: str
    question: str
    answers: tuple[str, ...]
    supporting: tuple[int, ...] = ()
    answer_start: int | None = None  # the character of the passage at which the first answer begins, if known

    @property
    def start(self) -> int:
        """The character of the passage near which the first answer begins, if the passage contains it several times.

        It is `answer_start` or, if that is unknown, the first place of the answer in a supporting sentence; else 0.
        """
        if self.answer_start is not None or not self.supporting:
            return self.answer_start or 0
        start = 0
        for number, sentence in enumerate(sentences_of(self.passage)):
            start = self.passage.index(sentence, start)
            if number in self.supporting and self.target in sentence:
                return start + sentence.index(self.target)
        return 0

    @property
    def source(self) -> str:
        return f"{self.passage}{BETWEEN}{self.question}"

    @property
    def target(self) -> str:
        return self.answers[0]

    @property
    def links(self) -> tuple[tuple[int, int], ...]:
        """None: an answer is supported by sentences, not by characters."""
        return ()

    @property
    def pair(self) -> Pair:
        return QuestionPair(self)

    def line(self, *, links: bool) -> str:
        """A JSON object, without a line ending."""
        answer = {"answer": self.answers[0]} if len(self.answers) == 1 else {"answers": self.answers}
        support = {"supporting": self.supporting} if self.supporting else {}
        record = {"passage": self.passage, "question": self.question, **answer, **support}
        return json.dumps(record, ensure_ascii=False)


class QuestionPair(Pair):
    """The pair of a question; its target is the first of the answers."""

    question: Question

    def __new__(cls, question: Question) -> QuestionPair:
        pair = super().__new__(cls, question.source, question.target)
        pair.question = question
        return pair

    @property
    def accepted(self) -> tuple[str, ...]:
        return self.question.answers

    @property
    def supporting(self) -> tuple[int, ...]:
        return self.question.supporting

    @property
    def start(self) -> int:
        return self.question.start


def tidy(text: str) -> str:
    """The text with one space for each run of white space."""
    return " ".join(text.split())


def source_of(given: str) -> str | None:
    """The source of a line: of `passage TAB question`, a JSON object, or a blank line (empty); None for any other."""
    if given.lstrip().startswith("{"):
        try:
            return question_of(parsed(given, "passage and question"), answered=False).source
        except LineError:
            pass
    passage, _, question = (tidy(part) for part in given.rpartition(BETWEEN))
    if not given.strip():
        return ""
    return f"{passage}{BETWEEN}{question}" if passage and question else None


def question_of(record: object, *, answered: bool = True) -> Question:
    """The question of a JSON object; `answered`: it must have an answer."""
    keys = "passage, question and answer" if answered else "passage and question"
    if not isinstance(record, dict):
        raise LineError(f"no {keys}", f"expected an object with {keys}")
    answers = record.get("answers", record.get("answer"))
    answers = [answers] if isinstance(answers, str) else answers
    texts = [record.get("passage"), record.get("question"), *(answers if isinstance(answers, list) else [])]
    if (answered and not isinstance(answers, list)) or not all(isinstance(text, str) for text in texts):
        raise LineError(f"no {keys}", f"expected the strings {keys}, or answers, a list of strings")
    if answered and not answers:
        raise LineError("no answer", "the list of answers is empty, expected one or more")
    found = _question(texts[0], texts[1], texts[2:] if answered else [""])
    start = _start(record.get("answer_start"), texts[0])
    return found._replace(supporting=_supporting(record.get("supporting", [])), answer_start=start)


class QuestionRecords:
    """A JSON object a line."""

    has_keys = True
    plain = False

    def pair(self, text: str) -> Pair:
        return QuestionPair(question_of(parsed(text, "passage, question and answer")))


class QuestionTable:
    """TAB-separated columns with names in the first row."""

    has_keys = False
    plain = False

    def __init__(self, names: Sequence[str]) -> None:
        self.width = len(names)
        self.places = [names.index(name) for name in COLUMNS]

    def pair(self, text: str) -> Pair:
        cells = text.split("\t")
        if len(cells) != self.width:
            raise LineError("wrong column count", f"{len(cells)} columns, expected {self.width}")
        passage, question, answer = (cells[place] for place in self.places)
        return QuestionPair(_question(passage, question, [answer]))


def names_of(line: str) -> list[str] | None:
    """The names of the columns, if a first row has passage, question and answer among them."""
    names = [name.strip().strip('"').lower() for name in line.split("\t")]
    return names if set(COLUMNS) <= set(names) else None


class SquadRow(NamedTuple):
    """A question of SQuAD, or the error in it; an impossible one has neither."""

    number: int  # from 1
    pair: Pair | None
    error: LineError | None = None


def squad_rows(file: File) -> Iterator[SquadRow]:
    """The questions of a file in SQuAD's format."""
    articles = _loaded(file)
    number = 0
    for paragraph in (each for article in articles for each in _list(article, "paragraphs", file)):
        for entry in _list(paragraph, "qas", file):
            number += 1
            answers = _list(entry, "answers", file)
            if entry.get("is_impossible") is True or not answers:
                yield SquadRow(number, None)
                continue
            texts = list(dict.fromkeys(one.get("text") if isinstance(one, dict) else None for one in answers))
            named = {"passage": paragraph.get("context"), "question": entry.get("question")}
            record = {**named, "answers": texts, "answer_start": answers[0].get("answer_start")}
            try:
                yield SquadRow(number, QuestionPair(question_of(record)))
            except LineError as error:
                yield SquadRow(number, None, error)


def _loaded(file: File) -> list[Any]:
    expected = 'expected SQuAD\'s {"data": [{"paragraphs": […]}, …]}'
    remedy = "Give such a file, or JSON lines, .jsonl, with passage, question and answer."
    if file == "-":
        raise DataError("standard input: SQuAD's JSON is read from a file. Give its path.")
    assert isinstance(file, Path)
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise DataError(f"{file}: larger than {LARGEST_FILE:,} bytes. Give it as JSON lines, .jsonl.")
        found = json.loads(file.read_bytes())
    except OSError as error:
        raise DataError(unreadable(file, error, "Give the path of a file.")) from None
    except (ValueError, RecursionError):
        raise DataError(f"{file}: not valid JSON, {expected}. {remedy}") from None
    if not isinstance(found, dict) or not isinstance(found.get("data"), list):
        raise DataError(f"{file}: {expected}. {remedy}")
    return list(found["data"])


def _list(record: Any, key: str, file: File) -> list[Any]:
    found = record.get(key) if isinstance(record, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise DataError(f"{file}: no list of objects under {key!r}, expected SQuAD's format. Repair the file.")
    return found


def _question(passage: str, question: str, answers: Sequence[str]) -> Question:
    passage, question = tidy(passage), tidy(question)
    for name, text in (("passage", passage), ("question", question)):
        if not text:
            raise LineError(f"blank {name}", f"the {name} is blank")
    return Question(passage, question, tuple(map(tidy, answers)))


def _start(given: object, passage: str) -> int | None:
    """The same character in the passage with single spaces."""
    if given is None:
        return None
    if type(given) is not int or given < 0:
        raise LineError("answer_start", '"answer_start" must be a character of the passage, counted from 0')
    return len(tidy(passage[:given]))


def _supporting(given: object) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(type(number) is int and number >= 0 for number in given):
        raise LineError("supporting", '"supporting" must be a list of sentences, counted from 0')
    return tuple(given)
