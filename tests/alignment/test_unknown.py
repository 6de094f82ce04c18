"""An unknown word is said by pointing at the source."""

from __future__ import annotations

import numpy as np
import pytest

from regarde.alignment.unknown import replacements
from regarde.text import EOS, UNK, UNKNOWN, CharactersConfig, FieldsConfig, SentencepieceConfig, Tokenizer, WordsConfig

ENGLISH = ["the cat sat on the mat", "a cat is here", "on the mat"] * 5


def said(source: Tokenizer, text: str, target: Tokenizer, ids: list[int], looks: list[int]) -> str:
    """What is said when token t looks at column looks[t]."""
    columns = len(source.encode(text)) + 1
    attention = np.full((len(ids), columns), 0.1 / columns)
    attention[range(len(ids)), looks] = 0.9
    return target.decode(ids, replacements(attention, source, text, target, ids))


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return WordsConfig().train(ENGLISH)


@pytest.fixture(scope="module")
def characters() -> Tokenizer:
    return CharactersConfig().train(ENGLISH)


@pytest.fixture(scope="module")
def subwords() -> Tokenizer:
    return SentencepieceConfig(size=60).train(ENGLISH)


def test_a_word_takes_the_word_it_looks_at_known_or_not(words: Tokenizer) -> None:
    the = words.encode("the")
    assert said(words, "Kowalski cat sat", words, [*the, UNK, UNK, EOS], [3, 0, 2, 3]) == "the Kowalski sat"


def test_a_character_inside_a_word_takes_one_character(characters: Tokenizer) -> None:
    text = "a żet"
    ids = [*characters.encode("tea"), UNK, EOS]
    assert said(characters, text, characters, ids, [4, 3, 0, 2, 5]) == "teaż"


def test_a_word_takes_all_characters_of_the_word_it_looks_at(characters: Tokenizer, words: Tokenizer) -> None:
    ids = [*words.encode("the"), UNK, EOS]
    assert said(characters, "on żółw", words, ids, [0, 5, 7]) == "the żółw"


def test_a_word_takes_all_subwords_of_the_word_it_looks_at(subwords: Tokenizer, words: Tokenizer) -> None:
    text = "the żółwcat sat"
    unknown = subwords.encode(text).index(UNK)
    ids = [*words.encode("the"), UNK, *words.encode("sat"), EOS]
    for column in (unknown, unknown + 1):
        assert said(subwords, text, words, ids, [0, column, 0, 0]) == "the żółwcat sat"


def test_a_word_takes_a_word_that_was_spelled_in_bytes(words: Tokenizer) -> None:
    spelled = SentencepieceConfig(size=310, byte_fallback=True).train(ENGLISH)
    column = spelled.pieces(spelled.encode("the żółwcat sat")).index("<0xC5>")
    assert said(spelled, "the żółwcat sat", words, [UNK, EOS], [column, 0]) == "żółwcat"


def test_a_subword_takes_what_it_stands_for(subwords: Tokenizer) -> None:
    text = "the żółt cat"
    ids = subwords.encode("on żó the")
    assert UNK in ids
    unknown = subwords.encode(text).index(UNK)
    assert said(subwords, text, subwords, [*ids, EOS], [unknown] * (len(ids) + 1)) == "on żółt the"
    inside = subwords.encode("on caż the")
    assert said(subwords, text, subwords, [*inside, EOS], [unknown] * (len(inside) + 1)) == "on cażół the"


def test_a_feature_is_written_without_its_tab(characters: Tokenizer) -> None:
    fields = FieldsConfig().train(["cat\tV;PST"])
    ids = [*characters.encode("a "), UNK, EOS]
    assert said(fields, "cat\tNEW", characters, ids, [0, 0, 3, 4]) == "a NEW"


def test_eos_and_spaces_are_never_pointed_at(characters: Tokenizer) -> None:
    ids = [*characters.encode("a"), UNK, EOS]
    attention = np.array([[0.0, 0.0, 0.0, 1.0], [0.0, 0.6, 0.1, 0.3], [0.0, 0.0, 0.0, 1.0]])
    assert replacements(attention, characters, "a é", characters, ids) == ["é"]


def test_where_attention_points_to_nothing_the_mark_of_the_unknown_stays(words: Tokenizer) -> None:
    attention = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert replacements(attention, words, "cat Kowalski", words, [UNK, UNK, EOS]) == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize("kind", ["words", "characters", "subwords"])
def test_decoding_with_the_text_behind_each_unknown_loses_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(kind)
    for text in ("żółw cat ⁇ sat", "the ⁇żó⁇", "żó", "cat", ""):
        assert tokenizer.decode(tokenizer.encode(text), tokenizer.unknown(text)) == text
