"""The tokenizer chosen for a side, judged on made-up corpora of each sort."""

import random

import pytest

from regarde.errors import DataError
from regarde.text import infer


def kind(texts: list[str]) -> str:
    inference = infer(texts)
    assert inference.reason.startswith(inference.config.kind)
    assert "\n" not in inference.reason
    return inference.config.kind


def strings(count: int, letters: str, longest: int, words: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [
        " ".join("".join(draw.choices(letters, k=draw.randint(2, longest))) for _ in range(words)) for _ in range(count)
    ]


def test_a_closed_set_of_symbols_is_words() -> None:
    draw = random.Random(1)
    symbols = [f"P{i}" for i in range(60)]
    assert kind([" ".join(draw.choices(symbols, k=6)) for _ in range(300)]) == "words"
    assert kind(["yes", "no"] * 50) == "words"


def test_short_strings_are_characters() -> None:
    assert kind(strings(300, "abcdefgh", 9, 1, seed=2)) == "characters"
    assert kind([f"{day} March {year}" for day in range(1, 29) for year in range(1900, 2000)]) == "characters"


def test_sentences_are_sentencepiece_and_more_of_them_teach_more_pieces() -> None:
    texts = strings(6_000, "abcdefghijklmnop", 7, 8, seed=3)
    assert kind(texts) == "sentencepiece"
    few, many = infer(texts[:1_000]).config, infer(texts).config
    assert few.size < many.size


def test_long_texts_without_spaces_are_sentencepiece() -> None:
    assert kind(strings(300, "日本語中文字漢", 150, 1, seed=4)) == "sentencepiece"


def test_columns_are_fields() -> None:
    assert kind([f"{lemma}\tV;PST" for lemma in strings(50, "abcdef", 8, 1, seed=5)]) == "fields"


def test_a_handful_of_texts_is_no_closed_set() -> None:
    assert kind(["hello"]) == "characters"
    assert kind(["hello", "world"]) == "characters"


def test_names_that_each_occur_twice_are_no_closed_set() -> None:
    assert kind([f"name{number}" for number in range(40)] * 2) == "characters"


def test_the_reason_is_one_short_phrase() -> None:
    assert infer(["a b", "b a"] * 9).reason == "words: 2 space-separated symbols, no new ones in the second half"


def test_no_text_is_said_plainly() -> None:
    with pytest.raises(DataError, match="There is no text"):
        infer([])
