"""Characters, words and fields."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde.errors import DataError
from regarde.text import BOS, CONTROLS, EOS, PAD, UNK, UNKNOWN, CharactersConfig, FieldsConfig, WordsConfig
from regarde.text.spelled import SpelledConfig
from regarde.text.tokenizers import MarkedWords


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1), min_size=1))
def test_characters_lose_nothing_they_know(texts: list[str]) -> None:
    tokenizer = CharactersConfig().train(texts)
    assert [tokenizer.decode(tokenizer.encode(text)) for text in texts] == texts


def test_typed_controls_are_text() -> None:
    for config in (CharactersConfig(), WordsConfig(), FieldsConfig()):
        tokenizer = config.train(["a </s> b <pad> <unk> <s>"])
        ids = tokenizer.encode("</s> <pad>")
        assert not set(ids) & {PAD, UNK, BOS, EOS}
        assert tokenizer.decode(ids) == "</s> <pad>"


def test_decoding_passes_over_silent_controls_and_shows_the_unknown() -> None:
    tokenizer = CharactersConfig().train(["ab"])
    a, b = tokenizer.encode("ab")
    assert tokenizer.encode("x") == [UNK]
    assert tokenizer.decode([BOS, a, PAD, UNK, EOS, b]) == f"a{UNKNOWN}b"


def test_pieces_can_be_seen() -> None:
    tokenizer = CharactersConfig().train(["a \u2028"])
    assert tokenizer.pieces([BOS, *tokenizer.encode("a \u2028?"), EOS]) == ["<s>", "a", "␣", "U+2028", "<unk>", "</s>"]
    assert tokenizer.pieces(range(4)) == list(CONTROLS)


def test_a_space_between_characters_is_part_of_no_word() -> None:
    tokenizer = CharactersConfig().train(["abc "])
    ids = [BOS, *tokenizer.encode(" ab  c?"), EOS]
    assert tokenizer.words(ids) == [-1, -1, 0, 0, -1, -1, 1, 1, -1]


def test_size_counts_the_controls() -> None:
    tokenizer = CharactersConfig(size=6).train(["aabbc"])
    assert len(tokenizer) == 6
    assert tokenizer.encode("abc") == [4, 5, UNK]


def test_words_stand_between_runs_of_spaces() -> None:
    tokenizer = WordsConfig().train(["K AE1  T\u00a0S"])
    ids = tokenizer.encode(" T\u00a0S   K ")
    assert tokenizer.decode(ids) == "T\u00a0S K"
    assert tokenizer.words([*ids, EOS]) == [0, 1, -1]


def test_a_feature_is_not_a_letter() -> None:
    tokenizer = FieldsConfig().train(["Vu V\tV;PST;3"])
    letters, feature = tokenizer.encode("V"), tokenizer.encode("\tV")
    assert len(letters) == len(feature) == 1
    assert letters != feature
    assert tokenizer.pieces([*letters, *feature]) == ["V", "V"]


def test_fields_come_back_and_each_feature_is_a_word() -> None:
    tokenizer = FieldsConfig().train(["go on\tV;PST NOM(1,SG)\tX"])
    ids = tokenizer.encode("go on\tV;PST NOM(1,SG)\tX")
    assert tokenizer.decode(ids) == "go on\tV;PST;NOM(1,SG);X"
    assert tokenizer.words(ids) == [0, 0, -1, 1, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("config", [CharactersConfig(), WordsConfig(), FieldsConfig()])
def test_saving_and_loading_changes_nothing(
    config: CharactersConfig | WordsConfig | FieldsConfig, tmp_path: Path
) -> None:
    tokenizer = config.train(["a b.c\tX Y"])
    path = tokenizer.save(tmp_path / "source.v1")  # a dot in the stem is no ending
    assert path == tmp_path / config.filename("source.v1")
    loaded = config.load(tmp_path / "source.v1")
    assert loaded.encode("a b\tX") == tokenizer.encode("a b\tX")
    assert len(loaded) == len(tokenizer)


def test_no_text_makes_no_vocabulary() -> None:
    with pytest.raises(DataError, match="no symbol"):
        WordsConfig().train(["   "])


def test_marks_are_tokens_and_spaces_come_back():
    scheme = MarkedWords()
    text = "“Yes,” said Mary-Ann: it's 3.5 (or so)."
    assert [scheme.show(symbol) for symbol in scheme.split(text)] == [
        *(
            "“",
            "Yes",
            ",",
            "”",
            "said",
            "Mary",
            "-",
            "Ann",
            ":",
            "it",
            "'",
            "s",
            "3",
            ".",
            "5",
            "(",
            "or",
            "so",
            ")",
            ".",
        )
    ]
    assert scheme.join(scheme.split(text)) == text


@given(st.text(alphabet="ab ,.\u2060\u0301\t\n"))
def test_marked_words_lose_nothing_but_repeated_spaces(text):
    once = re.sub(" *([\t\n]) *", r"\1", re.sub(" +", " ", text)).strip(" ")
    assert MarkedWords().join(MarkedWords().split(text)) == once


def test_a_mark_belongs_to_the_word_that_it_is_written_with():
    scheme = MarkedWords()
    assert scheme.words(scheme.split("Go on, Ada.\tWho?")) == [0, 1, 1, 2, 2, -1, 3, 3]


def test_marked_words_are_spelled_without_what_joins_them():
    tokenizer = SpelledConfig(marks=True).train(["Go on, Ada.\tWho goes?"])
    assert tokenizer.pieces(tokenizer.encode("Ada, oh?")) == ["Ada", ",", "oh", "?"]
    assert tokenizer.decode(tokenizer.encode("Go on.\tWho?")) == "Go on.\tWho?"
