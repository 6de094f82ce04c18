"""The dates of which the language is to be told: that it can be, from the words that the gold links name."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from collections import Counter

import pytest

from regarde.data import dates, languages
from regarde.data.datasets import DATASETS, SPLITS, digest
from regarde.data.formats import Example


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Example]]:
    return {split: list(languages.examples(split)) for split in SPLITS}


def test_every_split_is_the_one_on_record(splits):
    assert {split: len(examples) for split, examples in splits.items()} == DATASETS["languages"].sizes
    assert {split: digest(examples) for split, examples in splits.items()} == DATASETS["languages"].digests


def test_the_order_of_hashes_changes_nothing():
    code = "from regarde.data.datasets import DATASETS; DATASETS['languages'].check('valid')"
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}, check=True
        )


def test_no_text_occurs_twice(splits):
    sources = [example.source for examples in splits.values() for example in examples]
    assert len(set(sources)) == len(sources) == 31 * 460


def test_every_language_has_equally_many_examples(splits):
    known = {locale.split("_")[0] for locale in dates.LOCALES}
    for split, each in {"train": 400, "valid": 20, "test": 40}.items():
        assert Counter(example.target for example in splits[split]) == dict.fromkeys(known, each)


def test_a_date_of_the_data_is_written_in_one_language():
    written: dict[str, set[str]] = {}  # by the text without its case: the languages that write a date so
    taken: dict[str, str] = {}
    for day in (datetime.date(2004, 1, 1) + datetime.timedelta(days) for days in range(366)):
        for style in dates.styles():
            text, language = style.write(day).text, style.locale.split("_")[0]
            written.setdefault(text.casefold(), set()).add(language)
            if languages.telling(style, day):
                taken[text] = language
    assert all(written[text.casefold()] == {language} for text, language in taken.items())
    assert "7 mars 2004" in written
    assert "7 mars 2004" not in taken
    assert taken["mardi 2 mars 2004"] == "fr"


def test_a_linked_word_occurs_in_no_date_of_another_language(splits):
    words = {
        (example.target, word)
        for example in splits["train"]
        for word in re.split(r"[\d\s.,،॰׳-]+", example.source.casefold())
    }
    labels = {example.target for example in splits["train"]}
    for (source, target), links in splits["test"]:
        linked = {i for i, _ in links}
        telling = "".join(character if i in linked else " " for i, character in enumerate(source)).casefold().split()
        assert telling
        assert not any((label, word) in words for label in labels - {target} for word in telling), (source, telling)


def test_no_linked_character_is_a_number_a_space_or_punctuation(splits):
    for (source, _), links in splits["test"]:
        assert not any(source[i].isdecimal() or source[i] in " .,-،" for i, _ in links)


def test_each_character_of_the_label_has_the_same_links(splits):
    for example in splits["valid"]:
        assert len(example.target) == 2
        assert [i for i, j in example.links if j == 0] == [i for i, j in example.links if j == 1]


def test_the_links_name_the_telling_words():
    linked = {}
    for example in DATASETS["languages"].split("test"):
        linked[example.source] = "".join(example.source[i] for i, j in example.links if j == 0)
    assert linked["quinta-feira, 28 de agosto de 2053"] == "quintafeira"  # agosto is Spanish and Italian too
    assert linked["Samstag, 14. Juni 1969"] == "Samstag"  # juni is Dutch, Swedish and Danish too
    assert linked["1955年6月10日星期五"] == "星期五"  # 年, 月 and 日 are Japanese too


def test_marks_belong_to_words():
    assert list(languages.words("4 अग॰ 1994")) == [(2, "अग")]
    assert list(languages.words("७ फेब्रुवारी, २०२३")) == [(2, "फेब्रुवारी")]
    assert list(languages.words("terça-feira")) == [(0, "terça"), (6, "feira")]


def test_the_sample_is_true():
    sample = DATASETS["languages"].sample
    (style,) = (style for style in dates.styles() if style.locale == "de" and style.format == "full")
    day = datetime.date(2023, 3, 7)
    assert (style.write(day).text, sample.target) == (sample.source, "de")
    assert languages.telling(style, day)
