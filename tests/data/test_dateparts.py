"""The dates of which each character is tagged: as many tags as characters, and that they spell the date."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import unicodedata
from itertools import islice

import pytest

from regarde.data import dateparts, dates
from regarde.data.datasets import DATASETS, SPLITS, digest
from regarde.data.formats import Example


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Example]]:
    return {split: list(dateparts.examples(split)) for split in SPLITS}


def test_every_split_is_the_one_on_record(splits):
    assert {split: len(examples) for split, examples in splits.items()} == DATASETS["date-parts"].sizes
    assert {split: digest(examples) for split, examples in splits.items()} == DATASETS["date-parts"].digests


def test_the_order_of_hashes_changes_nothing():
    code = "from regarde.data.datasets import DATASETS; DATASETS['date-parts'].check('valid')"
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}, check=True
        )


def test_no_text_occurs_twice(splits):
    sources = [example.source for examples in splits.values() for example in examples]
    assert len(set(sources)) == len(sources) == 11_500


def test_a_calendar_date_belongs_to_one_split():
    train, valid, test = ({date for _, date in _pairs(split)} for split in SPLITS)
    assert not train & valid
    assert not train & test
    assert not valid & test


def test_there_is_one_known_tag_for_each_character(splits):
    for examples in splits.values():
        for (source, target), links in examples:
            assert unicodedata.is_normalized("NFC", source)
            assert len(target.split(" ")) == len(source)
            assert set(target.split(" ")) <= set(dateparts.TAGS)
            assert links == ()


def test_the_numbers_of_a_date_spell_it(splits):
    days = {style.write(day).text: day for style, day in _pairs("test")}
    for (source, target), _ in splits["test"]:
        day = days[source]
        assert int(_tagged(source, target, "year")) == day.year  # int() reads any script
        assert int(_tagged(source, target, "day")) == day.day
        month = _tagged(source, target, "month")
        assert int(month) == day.month if month.isdecimal() else not any(map(str.isdecimal, month))


def test_a_name_is_tagged_as_a_whole():
    tagged = {}
    for style in dates.styles():
        day = datetime.date(2023, 3, 7)
        text, tags = style.write(day).text, " ".join(dateparts.tags(style, day))
        tagged[style.locale, style.format] = (_tagged(text, tags, "weekday"), _tagged(text, tags, "month"))
    assert tagged["de", "full"] == ("Dienstag", "März")
    assert tagged["pt", "medium"] == ("", "mar.")
    assert tagged["vi", "full"] == ("Thứ Ba", "3")  # of "tháng 3", the number
    assert tagged["ko", "full"] == ("화요일", "3")  # of "3월", the number
    assert tagged["he", "long"] == ("", "מרץ")  # without its preposition


def test_a_text_has_one_tagging():
    found: dict[str, str] = {}
    for day in (datetime.date(2004, 1, 1) + datetime.timedelta(days) for days in range(366)):
        for style in dates.styles():
            tags = " ".join(dateparts.tags(style, day))
            text = style.write(day).text
            assert found.setdefault(re.sub(r"\d", "0", text), tags) == tags, text


def test_the_sample_is_true():
    day = datetime.date(2023, 3, 7)
    found = {style.write(day).text: " ".join(dateparts.tags(style, day)) for style in dates.styles()}
    sample = DATASETS["date-parts"].sample
    assert found[sample.source] == sample.target


def test_the_example_of_the_module_is_true():
    german = dates.style("de", "long")
    assert dateparts.__doc__ is not None
    assert " ".join(dateparts.tags(german, datetime.date(2023, 3, 7))[:7]) in dateparts.__doc__


def _tagged(source: str, target: str, tag: str) -> str:
    return "".join(character for character, own in zip(source, target.split(), strict=True) if own == tag)


def _pairs(split: dates.Split) -> list[tuple[dates.DateStyle, datetime.date]]:
    return list(islice(dates.pairs(split, "regarde date-parts"), dateparts.SIZES[split]))
