"""Byte-level byte-pair encoding, against Hugging Face's tokenizers on many scripts."""

from __future__ import annotations

import json
import random

import pytest

from regarde.text.bytepairs import BytePairsTokenizer, runs
from regarde.text.pieces import TokenTable

TEXTS = [
    "It's what they'll say, we've said, I'd say; 'tis 'S.",
    "Ünïcödé, Ελληνικά, русский язык, 日本語のテキスト, العربية, हिन्दी भाषा, ไทย, 한국어",
    "“quotes” — ½ Ⅷ ٣ 1,000.00  two  spaces\t\ttabs \n\n lines   ",
    "😀👩‍👩‍👧 e\u0301\u0301 \u00a0\u2003\u3000\u0085\x1c",
]
ALPHABET = "abc' \t\n éßλжשعहกあ漢한1٣½Ⅷ.,!?😀\u0301\u200d\u00a0\u2003\u3000\u1680\u0085\x1c\u00ad\ufeff"


def test_a_text_has_the_tokens_of_the_other_library() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    theirs.train_from_iterator(TEXTS * 3, trainer)
    model = json.loads(theirs.to_str())["model"]
    merges = "\n".join(" ".join(merge) for merge in model["merges"])
    ours = BytePairsTokenizer(TokenTable(sorted(model["vocab"], key=model["vocab"].get)), merges.encode())
    draw = random.Random(1)
    drawn = ["".join(draw.choices(ALPHABET, k=draw.randrange(40))) for _ in range(1000)]
    assert len(ours.ranks) > 100
    for text in [*TEXTS, *drawn]:
        ids = ours.encode(text)
        assert [i - 4 for i in ids] == theirs.encode(text).ids, text
        assert ours.decode(ids) == text


def test_the_merge_that_was_learned_first_comes_first() -> None:
    tokens = ["a", "b", "c", "ab", "bc", "abc", "Ġ"]
    ours = BytePairsTokenizer(TokenTable(tokens), b"#version: 0.2\nb c\na b\na bc\n")
    assert ours.tokens("abc ab") == ["abc", "Ġ", "ab"]
    assert ours.tokens("aabb") == ["a", "ab", "b"]


def test_a_long_word_takes_no_quadratic_time() -> None:
    tokens = ["a", "b", "ab", "abab"]
    ours = BytePairsTokenizer(TokenTable(tokens), b"a b\nab ab\n")
    assert ours.tokens("ab" * 30_000) == ["abab"] * 15_000


def test_runs_lie_one_after_the_other() -> None:
    assert runs("It's  1st!? ok \n") == ["It", "'s", " ", " 1", "st", "!?", " ok", " \n"]
    assert "".join(runs(ALPHABET)) == ALPHABET


def test_a_damaged_merge_is_an_error() -> None:
    with pytest.raises(ValueError, match="merge 2 is not two tokens"):
        BytePairsTokenizer(TokenTable(["a"]), b"a b\nabc\n")
    with pytest.raises(ValueError, match="no token '<s>'"):
        BytePairsTokenizer(TokenTable(["a"]), b"a b\n", before="<s>")
