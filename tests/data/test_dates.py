"""The written dates: what they are, that each means one date, and that the gold links point at its fields."""

from __future__ import annotations

import datetime
import logging
import subprocess
import sys
import unicodedata

import babel
import pytest
from babel import Locale, localedata
from babel.dates import format_date

from regarde.data import dates
from regarde.data.datasets import DATASETS, SPLITS, digest
from regarde.data.formats import Example
from regarde.errors import RegardeError, UsageError

DAYS = [datetime.date(year, month, 28 - month) for year in (1900, 1987, 2023, 2099) for month in range(1, 13)]


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Example]]:
    return {split: list(dates.examples(split)) for split in SPLITS}


def test_every_split_has_its_size(splits):
    assert {split: len(examples) for split, examples in splits.items()} == {
        "train": 40_000,
        "valid": 1_000,
        "test": 2_000,
    }


def test_every_split_is_the_one_on_record(splits):
    for split, examples in splits.items():
        assert digest(examples) == DATASETS["dates"].digests[split]


def test_the_order_of_hashes_changes_nothing():
    code = "from regarde.data.datasets import DATASETS; DATASETS['dates'].check('valid')"
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}, check=True
        )


def test_dates_in_chosen_languages_are_in_these_and_in_the_same_splits(splits):
    texts = {
        split: [e for e, _ in zip(dates.examples(split, ["fi", "el"]), range(200), strict=False)] for split in SPLITS
    }
    days = {split: {example.target for example in found} for split, found in splits.items()}
    assert all(
        {example.target for example in found}.isdisjoint(days["test"]) for found in (texts["train"], texts["valid"])
    )
    assert {example.target for example in texts["test"]}.isdisjoint(days["train"])
    words = "".join(example.source for example in texts["train"])
    assert "kuuta" in words
    assert any("GREEK" in unicodedata.name(character) for character in words)
    assert not any(name in words for name in ("January", "janvier", "1月"))
    with pytest.raises(UsageError, match=r"fin: unknown language of dates. Did you mean \"fi\"\?"):
        next(dates.examples("test", ["fin"]))


def test_a_calendar_date_belongs_to_one_split(splits):
    train, valid, test = ({example.target for example in splits[split]} for split in SPLITS)
    assert not train & valid
    assert not train & test
    assert not valid & test


def test_no_source_occurs_twice(splits):
    sources = [example.source for examples in splits.values() for example in examples]
    assert len(set(sources)) == len(sources)


def test_a_target_is_an_iso_date_from_1900_to_2099(splits):
    for example in splits["test"]:
        assert datetime.date.fromisoformat(example.target).isoformat() == example.target
        assert 1900 <= int(example.target[:4]) <= 2099
        assert example.target.isascii()


def test_a_source_is_composed_and_one_line(splits):
    for examples in splits.values():
        for example in examples:
            assert unicodedata.is_normalized("NFC", example.source)
            assert example.source.isprintable()
            assert example.source == example.source.strip()


def test_there_are_many_locales_and_scripts():
    assert len({style.locale for style in dates.styles()}) == len(dates.LOCALES) >= 28
    letters = {char for style in dates.styles() for char in style.write(DAYS[0]).text if char.isalpha()}
    assert len({unicodedata.name(letter).split()[0] for letter in letters}) >= 8


def test_every_locale_is_in_the_smallest_split(splits):
    found = set()
    for example in splits["valid"]:
        day = datetime.date.fromisoformat(example.target)
        found |= {style.locale for style in dates.styles() if style.write(day).text == example.source}
    assert found == set(dates.LOCALES)


def test_a_written_date_is_what_babel_writes():
    for style in dates.styles():
        own = dates.digits(style.locale)
        for day in DAYS:
            wanted = dates.typed(format_date(day, style.format, locale=style.locale)).translate(own)
            assert style.write(day).text == wanted


def test_a_string_means_one_date():
    meaning: dict[str, datetime.date] = {}
    days = [datetime.date(2001, 1, 1) + datetime.timedelta(days) for days in range(365)]
    for day in days:
        for style in dates.styles():
            assert meaning.setdefault(style.write(day).text, day) == day


def test_a_shape_with_two_readings_is_found():
    day_first = dates.DateStyle(
        "x", "short", (_numbers("day"), _fixed("."), _numbers("month"), _fixed("."), _numbers("year"))
    )
    month_first = dates.DateStyle(
        "y", "short", (_numbers("month"), _fixed("."), _numbers("day"), _fixed("."), _numbers("year"))
    )
    year_first = dates.DateStyle(
        "z", "short", (_numbers("year"), _fixed("."), _numbers("month"), _fixed("."), _numbers("day"))
    )
    assert dates._ambiguous((day_first, month_first)) == {"#.#.Y"}
    assert not dates._ambiguous((day_first, year_first))


def test_a_name_for_two_months_is_found():
    def named(shift: int) -> dates.DateStyle:
        names = tuple(chr(ord("a") + shift + month) for month in range(12))
        return dates.DateStyle(
            "x", "long", (_numbers("day"), _fixed(" "), dates.Piece("month", names), _fixed(" "), _numbers("year"))
        )

    assert not dates._ambiguous((named(0), named(12)))
    assert dates._ambiguous((named(0), named(11))) == {"# l Y"}


def test_a_number_for_the_month_is_read_alike_in_all_of_cldr():
    for name in localedata.locale_identifiers():
        if "_" in name:
            continue
        for pattern in (format_.pattern for format_ in Locale.parse(name).date_formats.values()):
            if dates._reads_alike(pattern) and not any(names in pattern for names in ("MMM", "LLL")):
                order = "".join(letter for letter, _ in dates._fields(pattern) if letter in ("y", "M", "d"))
                assert order == ("yMd" if pattern.startswith("y") else "dMy"), (name, pattern)


def test_slashes_and_short_years_are_not_taken():
    for pattern in ("M/d/y", "dd/MM/y", "dd.MM.yy", "d-M-y"):
        assert not dates._reads_alike(pattern)
    for pattern in ("y/MM/dd", "dd.MM.y", "d. M. y", "d MMM y", "EEEE, d MMMM yyyy"):
        assert dates._reads_alike(pattern)


def test_the_sample_is_true():
    sample = DATASETS["dates"].sample
    day = datetime.date.fromisoformat(sample.target)
    assert sample.source in {style.write(day).text for style in dates.styles()}


def test_a_thai_year_comes_with_its_era():
    texts = [style.write(DAYS[0]).text for style in dates.styles() if style.locale == "th"]
    assert texts
    assert all("ค.ศ." in text for text in texts)


def test_the_links_of_the_year_and_the_day_spell_them(splits):
    for split in ("valid", "test"):
        for example in splits[split]:
            for digits in (range(4), range(8, 10)):
                for j in digits:
                    linked = "".join(example.source[i] for i, k in example.links if k == j)
                    assert int(linked) == int("".join(example.target[k] for k in digits))  # int() reads any script


def test_the_links_of_the_month_are_its_name_or_number(splits):
    names = {
        (month, piece.texts[month - 1])
        for style in dates.styles()
        for piece in style.pieces
        if piece.field == "month"
        for month in range(1, 13)
    }
    for example in splits["test"]:
        for j in (5, 6):
            linked = "".join(example.source[i] for i, k in example.links if k == j)
            assert (int(example.target[5:7]), linked) in names


def test_the_hyphens_have_no_links(splits):
    assert not any(j in (4, 7) for example in splits["test"] for _, j in example.links)


def test_native_digits_are_written_where_cldr_has_them():
    written = {
        style.locale: style.write(datetime.date(2023, 3, 7)).text for style in dates.styles() if style.format == "long"
    }
    assert written["ar_EG"].endswith("٢٠٢٣")
    assert written["mr"].startswith("७")
    assert written["bn"].startswith("৭")


def test_another_babel_is_said(monkeypatch, caplog):
    monkeypatch.setattr(babel, "__version__", "2.0")
    with caplog.at_level(logging.WARNING):
        dates._check_babel.__wrapped__()
    assert caplog.messages == ["Babel 2.0 is installed: the dates may differ from those of Babel 2.18.0."]


def test_a_missing_babel_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(RegardeError, match=r"pip install 'regarde\[train\]'"):
        dates._check_babel.__wrapped__()


def _numbers(field: dates.Field) -> dates.Piece:
    first, last = {"year": (1900, 2099), "month": (1, 12), "day": (1, 31)}[field]
    return dates.Piece(field, tuple(str(number) for number in range(first, last + 1)))


def _fixed(text: str) -> dates.Piece:
    return dates.Piece("fixed", (text,))
