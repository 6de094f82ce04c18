"""Words with their characters: positions are words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde.errors import DataError
from regarde.scribe import Scribe
from regarde.search import Greedy
from regarde.text import BOS, EOS, PAD, UNK, UNKNOWN, TextConfig
from regarde.text.spelled import LONGEST_SPELLING, MOST_LETTERS, SpelledConfig

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \n\t"), min_size=1, max_size=9)


def test_each_word_is_followed_by_its_characters() -> None:
    tokenizer = SpelledConfig(least=2).train(["aba ba aba", "ba c"])
    a, b, c = tokenizer.encode("x abc")[-3:]
    assert tokenizer.encode("aba  cab") == [BOS, tokenizer.encode("aba")[1], a, b, a, BOS, UNK, c, a, b]
    assert tokenizer.encode("x") == [BOS, UNK, UNK]
    assert len({a, b, c, *(tokenizer.encode(word)[1] for word in ("aba", "ba"))}) == 5


def test_a_letter_is_not_a_word_of_one_letter() -> None:
    tokenizer = SpelledConfig().train(["a"])
    _, word, letter = tokenizer.encode("a")
    assert letter < word
    assert tokenizer.encode("\ta")[:2] == [BOS, UNK]


def test_pieces_and_words_are_words() -> None:
    tokenizer = SpelledConfig(least=2).train(["aba aba bab"])
    ids = [*tokenizer.encode("aba bab xa"), EOS, PAD]
    assert tokenizer.pieces(ids) == ["aba", "bab", f"{UNKNOWN}a", "</s>", "<pad>"]
    assert tokenizer.words(ids) == [0, 1, 2, -1, -1]
    assert tokenizer.decode(ids) == f"aba {UNKNOWN} {UNKNOWN}"
    assert tokenizer.unknown("aba bab xa") == ["bab", "xa"]
    assert tokenizer.decode(ids, tokenizer.unknown("aba bab xa")) == "aba bab xa"


@given(st.lists(WORDS, min_size=1, max_size=5))
def test_known_words_come_back(words: list[str]) -> None:
    tokenizer = SpelledConfig().train([" ".join(words)])
    ids = tokenizer.encode("  ".join(words))
    assert tokenizer.decode(ids) == " ".join(words)
    assert len(tokenizer.pieces(ids)) == len(tokenizer.words(ids)) == len(words)


def test_a_long_word_is_spelled_by_its_beginning() -> None:
    word = "ab" * LONGEST_SPELLING
    tokenizer = SpelledConfig().train([word])
    assert len(tokenizer.encode(word)) == 2 + LONGEST_SPELLING
    assert tokenizer.decode(tokenizer.encode(word)) == word


def test_letters_have_the_first_ids_and_there_are_not_too_many() -> None:
    text = " ".join(chr(0x4E00 + i) for i in range(MOST_LETTERS + 5))
    tokenizer = SpelledConfig().train([text])
    ids = tokenizer.encode(text)
    assert max(ids[2::3]) == 3 + MOST_LETTERS
    assert ids[2::3].count(UNK) == 5
    assert min(ids[1::3]) == 4 + MOST_LETTERS


def test_loading_gives_the_same_tokens(tmp_path: Path) -> None:
    config = SpelledConfig()
    tokenizer = config.train(["Ünïcode # </s> x"])
    assert tokenizer.save(tmp_path / "source").name == config.filename("source")
    loaded = config.load(tmp_path / "source")
    assert loaded == tokenizer
    assert loaded.encode("x # Ü </s>") == tokenizer.encode("x # Ü </s>")
    assert len(loaded.symbols()) == len(loaded)


def test_the_longest_sentence_is_counted_in_words() -> None:
    """The 33 ids of these three words are within a limit of 3, and a fourth word is not."""
    text = TextConfig(source=SpelledConfig()).train([("extraordinary", "x")])
    scribe = Scribe(text=text, search=Greedy(), offset=0, longest=3)
    sentence = scribe.tokens("extraordinary x extraordinary")
    assert (sentence.size, len(sentence.ids)) == (3, 2 * 15 + 3)
    assert scribe.attended(sentence, [EOS]).tokens == ("extraordinary", "x", "extraordinary", "</s>")
    with pytest.raises(DataError, match="A sentence of 4 tokens: expected at most 3"):
        scribe.tokens("a b c d")
