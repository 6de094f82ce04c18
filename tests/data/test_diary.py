"""The lines for a language model: that their dates agree, and that no date is in two splits."""

from __future__ import annotations

import datetime
import math
import re
import subprocess
import sys
from statistics import mean

import pytest

from regarde.data import diary
from regarde.data.datasets import DATASETS, SPLITS, digest
from regarde.data.formats import Example

DISTANCES = {
    "Today is": 0,
    "Yesterday was": -1,
    "Two days ago it was": -2,
    "Three days ago it was": -3,
    "A week ago it was": -7,
    "Tomorrow is": 1,
    "In two days it is": 2,
    "In three days it is": 3,
    "In a week it is": 7,
}
SENTENCE = re.compile(r"(\D+) (\w+day, \d+ \w+ \d{4})\. ?")


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Example]]:
    return {split: list(diary.examples(split)) for split in SPLITS}


def test_every_split_is_the_one_on_record(splits):
    assert {split: len(examples) for split, examples in splits.items()} == DATASETS["diary"].sizes
    assert {split: digest(examples) for split, examples in splits.items()} == DATASETS["diary"].digests


def test_the_order_of_hashes_changes_nothing():
    code = "from regarde.data.datasets import DATASETS; DATASETS['diary'].check('valid')"
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}, check=True
        )


def test_an_example_is_a_target_without_source_and_links(splits):
    for examples in splits.values():
        for example in examples:
            assert example == (("", example.target), ())
            assert example.line(links=True) == example.target
            assert example.target.isascii()
            assert example.target.isprintable()


def test_no_line_occurs_twice(splits):
    lines = [example.target for examples in splits.values() for example in examples]
    assert len(set(lines)) == len(lines) == 4_600


def test_all_dates_of_a_line_agree(splits):
    for examples in splits.values():
        for example in examples:
            sentences = _sentences(example.target)
            today = sentences["Today is"]
            assert len(sentences) == 4
            assert next(iter(sentences)) == "Today is"
            for beginning, day in sentences.items():
                assert (day - today).days == DISTANCES[beginning]


def test_every_sentence_occurs_equally_often(splits):
    beginnings = [beginning for example in splits["train"] for beginning in list(_sentences(example.target))[1:]]
    counts = [beginnings.count(beginning) for beginning in DISTANCES if beginning != "Today is"]
    assert min(counts) > 0.9 * 4_000 * 3 / 8


def test_no_year_occurs_in_two_splits(splits):
    train, valid, test = (
        {day.year for example in splits[split] for day in _sentences(example.target).values()} for split in SPLITS
    )
    assert (len(train), len(valid), len(test)) == (168, 12, 20)
    assert len(train | valid | test) == 200


def test_lines_cross_the_end_of_a_year_in_every_split(splits):
    for examples in splits.values():
        assert any(len({day.year for day in _sentences(example.target).values()}) == 2 for example in examples)


def test_the_uncertainty_is_the_one_stated(splits):
    days = sum(366 if year % 4 == 0 and year != 1900 else 365 for year in diary.years("train"))
    least = math.log(days) + math.log(8 * 7 * 6)  # nats: today, and three beginnings in order
    length = mean(len(example.target) + 1 for example in splits["train"])  # with the line's end
    stated = diary.__doc__
    assert stated is not None
    assert f"one of {days:,} in train" in stated
    assert f"{least:.1f} nats, or {least / length:.2f} nats a character" in stated
    assert f"{math.log(days):.0f} nats more for each later date: {(least + 3 * math.log(days)) / length:.2f}" in stated


def test_the_samples_are_true():
    assert diary.__doc__ is not None
    (line,) = re.findall(r'"(Today is .*\.) …"', diary.__doc__)
    for text in (line, DATASETS["diary"].sample.target):
        sentences = _sentences(text)
        for beginning, day in sentences.items():
            assert (day - sentences["Today is"]).days == DISTANCES[beginning]


def _sentences(line: str) -> dict[str, datetime.date]:
    """The date of each sentence by its beginning; a weekday that is not the date's is an error."""
    assert "".join(match[0] for match in SENTENCE.finditer(line)) == line
    found = {}
    for match in SENTENCE.finditer(line):
        day = datetime.datetime.strptime(match[2], "%A, %d %B %Y").replace(tzinfo=datetime.UTC).date()
        assert f"{day:%A}, {day.day} {day:%B} {day.year}" == match[2]
        found[match[1]] = day
    return found
