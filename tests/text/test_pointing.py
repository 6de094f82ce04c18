"""Targets as positions of their source, and back."""

from __future__ import annotations

import pytest

from regarde.errors import ConfigError
from regarde.text import UNK, CharactersConfig, Text, TextConfig, TokenizerConfig
from regarde.text.pointing import PositionsConfig
from regarde.text.sentencepieces import SentencepieceConfig
from regarde.text.spelled import SpelledConfig
from regarde.text.tokenizers import CONTROLS, EOS, WordsConfig

FIRST = len(CONTROLS)


def text(source: TokenizerConfig, texts: list[str], *, spans: bool = False) -> Text:
    config = TextConfig(source=source, target=PositionsConfig(spans=spans))
    return config.train([(each, "x") for each in texts])


def at(*places: int) -> list[int]:
    return [FIRST + place for place in places]


def test_each_token_is_the_first_equal_one_that_is_not_used() -> None:
    found = text(CharactersConfig(), ["abcde"])
    assert found.target_ids("aabb", "bazab") == at(1, 3, 0, 4)
    assert found.target_text(at(1, 3, 0, 4), "bazab") == "aabb"
    assert found.target_pieces([*at(2), EOS], "bazab") == ["z", "</s>"]  # z is unknown to the vocabulary


@pytest.mark.parametrize("source", ["abcab", "xaay", "xyaa", "aaxy", "abca", "abcacb"])
def test_the_nearest_of_equal_tokens_makes_a_string_backwards_the_positions_backwards(source: str) -> None:
    config = TextConfig(source=CharactersConfig(), target=PositionsConfig(nearest=True))
    found = config.train([("abcxy", "x")])
    places = range(len(source))
    assert found.target_ids(source, source) == at(*places)
    assert found.target_ids(source[::-1], source) == at(*reversed(places))
    assert found.target_ids("az", "bab") == [*at(1), UNK]


def test_a_token_that_the_source_lacks_is_unknown() -> None:
    assert text(CharactersConfig(), ["ab"]).target_ids("bab", "ab") == [*at(1, 0), UNK]


@pytest.mark.parametrize("config", [WordsConfig(), SpelledConfig()])
def test_words_are_pointed_to_as_wholes(config: TokenizerConfig) -> None:
    found = text(config, ["0.1,0.2 0.3,0.4"])
    assert found.target_ids("0.9,0.9 0.1,0.2", "0.1,0.2 0.3,0.4 0.9,0.9") == at(2, 0)
    assert found.target_text(at(2, 0), "0.1,0.2 0.3,0.4 0.9,0.9") == "0.9,0.9 0.1,0.2"


SOURCE = "Ada (born 1815) knew Mary. She knew Ada's map.\tWho knew Mary?"


@pytest.mark.parametrize(
    "config", [WordsConfig(marks=True), SpelledConfig(marks=True), SentencepieceConfig(size=60), CharactersConfig()]
)
@pytest.mark.parametrize("answer", ["Ada", "1815", "Mary", "She knew Ada's map", "(born 1815)"])
def test_a_span_comes_back_as_it_was_written(config: TokenizerConfig, answer: str) -> None:
    found = text(config, [SOURCE, "knew knew Ada Mary She map born 1815"] * 3, spans=True)
    ids = found.target_ids(answer, SOURCE)
    assert len(ids) == 2
    assert UNK not in ids
    assert found.target_text([*ids, EOS], SOURCE) == answer


def test_a_span_of_the_question_alone_is_no_answer() -> None:
    found = text(WordsConfig(marks=True), [SOURCE], spans=True)
    assert found.target_ids("Who", SOURCE) == [UNK, UNK]


@pytest.mark.parametrize(("start", "place"), [(0, 1), (3, 1), (22, 5), (23, 5), (99, 5)])
def test_of_several_equal_spans_the_one_nearest_to_its_start_is_meant(start: int, place: int) -> None:
    source = "In 1889 they built. By 1889 it stood.\tWhen?"
    assert text(WordsConfig(), [source], spans=True).target_ids("1889", source, start) == at(place, place)


def test_the_passage_ends_with_eos_and_the_question_follows() -> None:
    found = text(WordsConfig(marks=True), ["a b.\tc"], spans=True)
    a, b, mark, c = (found.source.encode(each)[-1] for each in ("a", "b", "b.", "c"))
    assert found.source_ids("a b.\tc") == [a, b, mark, EOS, c]


def test_positions_beyond_the_source_are_unknown_text() -> None:
    found = text(CharactersConfig(), ["ab"])
    assert found.target_text(at(0, 7), "ab") == "a⁇"


@pytest.mark.parametrize(
    ("target", "model", "said"),
    [
        (CharactersConfig(), "pointer", "Set text.target.kind=positions"),
        (PositionsConfig(), "bahdanau", "Set model.kind=pointer"),
        (PositionsConfig(), "span", "needs text.target.spans = true, got false"),
        (PositionsConfig(spans=True), "pointer", "needs text.target.spans = false, got true"),
    ],
)
def test_a_model_that_points_has_positions_and_no_other_has(target: TokenizerConfig, model: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        TextConfig(target=target).check_pointing(model)
