"""Ids of one source alone: the extended vocabulary of a model that copies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regarde.errors import ConfigError
from regarde.text import EOS, PAD, UNK, Text, TextConfig
from regarde.text.sentencepieces import SentencepieceConfig
from regarde.text.tokenizers import CharactersConfig, FieldsConfig, WordsConfig


def trained(kind: type, pairs: list[tuple[str, str]], target: type | None = None, **sizes: int) -> Text:
    config = TextConfig(source=kind(**sizes), target=(target or kind)(**sizes))
    return replace(config.train(pairs), copies=True)


CHARACTERS = trained(CharactersConfig, [("abc", "bcd")])  # a lacks in the target, d in the source
S, V = len(CHARACTERS.source), len(CHARACTERS.target)


def test_a_known_symbol_keeps_its_id() -> None:
    assert CHARACTERS.source_ids("cab") == CHARACTERS.source.encode("cab")
    assert CHARACTERS.target_ids("bcd", "abc") == CHARACTERS.target.encode("bcd")


def test_a_symbol_that_only_the_target_knows_is_named_by_it() -> None:
    assert CHARACTERS.source_ids("d") == [S + CHARACTERS.target.encode("d")[0]]


def test_symbols_that_nobody_knows_are_counted_as_they_appear() -> None:
    assert CHARACTERS.source_ids("xayx") == [S + V, CHARACTERS.source.encode("a")[0], S + V + 1, S + V]


def test_a_target_has_ids_for_what_its_source_has_and_it_lacks() -> None:
    assert CHARACTERS.target_ids("yaxz", "xayx") == [V + 2, V + 1, V, UNK]
    assert CHARACTERS.target_ids("a", "b") == [UNK]


def test_columns_are_the_target_ids_of_the_source() -> None:
    b, d = CHARACTERS.target.encode("bd")
    assert CHARACTERS.extended.columns("xbdax") == [V, b, d, V + 1, V, EOS]


def test_the_table_maps_the_source_vocabulary() -> None:
    same = CHARACTERS.extended.same()
    a, b, c = CHARACTERS.source.encode("abc")
    assert [same[i] for i in (PAD, UNK, EOS)] == [PAD, UNK, EOS]
    assert [same[i] for i in (a, b, c)] == [V, *CHARACTERS.target.encode("bc")]


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        (CHARACTERS, "xaéb", "éaxbé"),
        (trained(WordsConfig, [("the cat sat", "le chat sat")]), "the Zebra sat", "Zebra le the Zebra"),
        (
            trained(FieldsConfig, [("gehen\tV;PST", "ging")], CharactersConfig),
            "hüpfen\tV;PST",
            "hüpfging",
        ),
        (
            trained(SentencepieceConfig, [("the cat sat here", "le chat est là")] * 30, size=40),
            "the cat 漢",
            "le 漢 chat",
        ),
    ],
    ids=["characters", "words", "fields", "sentencepiece"],
)
def test_ids_are_said_as_they_were_written(text: Text, source: str, target: str) -> None:
    ids = text.target_ids(target, source)
    assert UNK not in ids
    assert any(i >= len(text.target) for i in ids)
    assert text.target_text(ids, source) == target
    assert len(text.target_pieces(ids, source)) == len(ids) == len(text.target_words(ids, source))


def test_a_feature_of_a_table_cannot_be_said_by_characters() -> None:
    text = trained(FieldsConfig, [("gehen\tV;PST", "ging")], CharactersConfig)
    *letters, known, unknown = text.source_ids("gx\tV;FUT")
    assert [text.extended.same()[known], unknown] == [UNK, UNK]
    assert text.extended.lacking("gx\tV;FUT") == ["x"]
    assert len(letters) == 2


def test_unknown_words_are_printed_as_they_are() -> None:
    text = trained(WordsConfig, [("the cat", "le chat")])
    assert text.source_pieces([*text.source_ids("the Zebra"), EOS], "the Zebra") == ["the", "Zebra", "</s>"]
    assert text.target_pieces(text.target_ids("le Zebra x", "the Zebra"), "the Zebra") == ["le", "Zebra", "<unk>"]


def test_a_model_that_copies_nothing_has_no_ids_beyond_its_vocabulary() -> None:
    plain = replace(CHARACTERS, copies=False)
    assert plain.source_ids("xay") == plain.source.encode("xay")
    assert plain.target_ids("xay", "xay") == plain.target.encode("xay")


def test_tokens_of_other_kinds_cannot_be_copied() -> None:
    with pytest.raises(ConfigError, match=r"source has words, the target characters\. Make both"):
        TextConfig(source=WordsConfig(), target=CharactersConfig()).check_copying()
