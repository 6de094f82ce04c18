"""Learned subwords: nothing lost, nothing leaked, nothing trusted."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regarde.errors import ConfigError, DataError, FolderError
from regarde.text import BOS, EOS, PAD, UNK, UNKNOWN, SentencepieceConfig, Tokenizer

CORPUS = [
    "the cat sat on the mat </s>",
    "  the  dog\tsat\ron the log ▁▅ ",
    "le chat <unk> <s> <pad>\u2028\u0085\v\f\x1c\x00",
    "<0x41> é e\u0301 👩‍👩‍👧 مرحبا",
] * 5


@pytest.fixture(scope="module", params=product(["unigram", "bpe"], [False, True]), ids=str)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    model, byte_fallback = request.param
    return SentencepieceConfig(size=400, model=model, byte_fallback=byte_fallback).train(CORPUS)


def test_nothing_is_lost(tokenizer: Tokenizer) -> None:
    assert [tokenizer.decode(tokenizer.encode(text)) for text in CORPUS] == CORPUS
    assert tokenizer.encode("") == []


def test_typed_controls_are_text(tokenizer: Tokenizer) -> None:
    assert not {PAD, UNK, BOS, EOS} & {i for text in CORPUS for i in tokenizer.encode(text)}


def test_decoding_passes_over_silent_controls(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("the cat")
    assert tokenizer.decode([BOS, PAD, *ids, EOS, PAD]) == "the cat"


def test_a_text_never_decodes_to_two_lines(tokenizer: Tokenizer) -> None:
    assert "\n" not in tokenizer.decode(range(len(tokenizer)))


def test_a_word_begins_at_a_space(tokenizer: Tokenizer) -> None:
    ids = [BOS, *tokenizer.encode("the  cat sat"), EOS]
    words = tokenizer.words(ids)
    spelled = [tokenizer.decode([i for i, word in zip(ids, words, strict=True) if word == n]) for n in range(3)]
    assert [text.strip() for text in spelled] == ["the", "cat", "sat"]
    assert words[0] == words[-1] == -1
    assert max(words) == 2


def test_spaces_at_the_end_begin_no_word(tokenizer: Tokenizer) -> None:
    assert max(tokenizer.words(tokenizer.encode("the cat  "))) == 1
    assert set(tokenizer.words(tokenizer.encode("  "))) == {-1}


def test_pieces_show_one_symbol_per_id(tokenizer: Tokenizer) -> None:
    ids = [BOS, *tokenizer.encode(CORPUS[1]), EOS]
    pieces = tokenizer.pieces(ids)
    assert len(pieces) == len(ids)
    assert pieces[0] == "<s>"
    assert all(piece.isprintable() and piece for piece in pieces)


def test_the_unknown_is_shown_or_spelled_in_bytes() -> None:
    plain = SentencepieceConfig(size=400).train(CORPUS)
    assert plain.decode(plain.encode("the Жcat")) == f"the {UNKNOWN}cat"
    assert set(plain.words(plain.encode("Ж"))) == {0}
    spelled = SentencepieceConfig(size=400, byte_fallback=True).train(CORPUS)
    assert spelled.decode(spelled.encode("the Жcat")) == "the Жcat"


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_with_bytes_any_text_comes_back(text: str) -> None:
    assert BYTES.decode(BYTES.encode(text)) == text


BYTES = SentencepieceConfig(size=400, model="bpe", byte_fallback=True).train(CORPUS)


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_training_twice_gives_the_same_bytes(model: str, tmp_path: Path) -> None:
    config = SentencepieceConfig(size=60, model=model)  # type: ignore[arg-type]
    first, second = (config.train(CORPUS).save(tmp_path / name).read_bytes() for name in "ab")
    assert first == second


@pytest.mark.parametrize("model", ["unigram", "bpe"])
@pytest.mark.parametrize("texts", [["a"], ["  a", "b "], ["x" * 5000], [chr(0x4E00 + i) for i in range(300)]])
def test_any_corpus_fits_any_size_and_nothing_is_printed(
    model: str, texts: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    for size in (6, 20, 8000):
        tokenizer = SentencepieceConfig(size=size, model=model).train(texts)  # type: ignore[arg-type]
        assert len(tokenizer) <= size
        assert tokenizer.decode(tokenizer.encode(texts[0]))
    assert capfd.readouterr() == ("", "")


def test_no_text_makes_no_vocabulary() -> None:
    for texts in ([], [""], ["   "]):
        with pytest.raises(DataError, match="no symbol"):
            SentencepieceConfig().train(texts)


def test_a_size_without_room_for_bytes_is_refused() -> None:
    with pytest.raises(ConfigError, match="size = 100: expected at least 262"):
        SentencepieceConfig(size=100, byte_fallback=True)


def test_saving_and_loading_changes_nothing(tokenizer: Tokenizer, tmp_path: Path) -> None:
    assert tokenizer.save(tmp_path / "source") == tmp_path / SentencepieceConfig().filename("source")
    loaded = SentencepieceConfig().load(tmp_path / "source")
    assert [loaded.encode(text) for text in CORPUS] == [tokenizer.encode(text) for text in CORPUS]


def test_a_damaged_model_is_refused(tokenizer: Tokenizer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    good = tokenizer.save(tmp_path / "source").read_bytes()
    for damaged in (b"", b"garbage", bytes(50), good[: len(good) // 2 + 1], good.replace("▅pad".encode(), b"<pad>.")):
        (tmp_path / "source.model").write_bytes(damaged)
        with pytest.raises(FolderError, match=r"source\.model"):
            SentencepieceConfig().load(tmp_path / "source")
    assert capfd.readouterr().err == ""


def test_a_missing_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="not readable"):
        SentencepieceConfig().load(tmp_path / "source")


def test_only_pieces_within_a_word_would_make_it_longer(tokenizer: Tokenizer) -> None:
    lengthening = set(tokenizer.lengthening("the cat"))
    assert lengthening
    for i in range(4, len(tokenizer)):
        text = tokenizer.decode([*tokenizer.encode("the cat"), i])
        letter = text[7:8]
        assert (i in lengthening) == (letter.isalnum() or letter == "\u0301") or not letter
    assert not tokenizer.lengthening("the cat!")
    assert not tokenizer.lengthening("")
    assert not tokenizer.lengthening("猫")
