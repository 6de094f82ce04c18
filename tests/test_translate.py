"""The whole way: text in, text and attention out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import regarde
from regarde.alignment.links import Link
from regarde.errors import DataError
from regarde.translate import Translation, Translator


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    settings = ["model.embedding=16", "model.hidden=24", "model.maxout=16", "model.attention.score.size=16"]
    steps = ["training.steps=30", "training.valid_every=30", "training.valid_pairs=10"]
    out: Path = tmp_path_factory.mktemp("runs") / "copy"
    return regarde.train("copy", out=out, settings=[*settings, *steps]).load()


def test_a_string_gives_a_translation_and_a_list_gives_a_list(model: Translator) -> None:
    one = model.translate("abc")
    assert isinstance(one, Translation)
    assert [t.text for t in model.translate(["abc", "abc"])] == [one.text, one.text]


def test_attention_has_a_row_for_each_token_and_a_column_for_each_source_token(model: Translator) -> None:
    out = model.translate("abcde")
    assert out.source_tokens == ("a", "b", "c", "d", "e", "</s>")
    assert out.attention is not None
    assert out.attention.shape == (len(out.tokens), 6)
    assert out.heads.shape == (1, 1, len(out.tokens), 6)
    np.testing.assert_allclose(out.attention.sum(axis=1), 1, atol=1e-5)


def test_an_empty_sentence_gives_an_empty_translation_in_its_place(model: Translator) -> None:
    first, empty, last = model.translate(["abc", "", "cba"])
    assert empty.text == ""
    assert empty.attention is None
    assert (first.text, last.text) == (model.translate("abc").text, model.translate("cba").text)


def test_n_best_answers_come_as_alternatives(model: Translator) -> None:
    out = model.translate("abc", beam=4, n_best=3)
    assert len(out.alternatives) == 2
    assert out.score >= out.alternatives[0].score >= out.alternatives[1].score


def test_many_sentences_keep_their_order(model: Translator) -> None:
    sentences = ["abcdefghijkl"[: 1 + n % 12] for n in range(600)]
    together = model.translate(sentences)
    assert [t.source for t in together] == sentences
    by_sentence = {s: model.translate(s).text for s in set(sentences)}
    assert [t.text for t in together] == [by_sentence[s] for s in sentences]


def test_nfd_and_nfc_are_the_same_sentence(model: Translator) -> None:
    assert model.translate("cafe\u0301").source == "caf\u00e9"


def test_a_sentence_that_is_too_long_is_refused(model: Translator) -> None:
    with pytest.raises(DataError, match="1001 tokens: expected at most 1000"):
        model.translate("a" * 1001)


def test_control_symbols_that_are_typed_are_text(model: Translator) -> None:
    assert model.translate("a</s>b").source_tokens[:-1] == ("a", "<unk>", "<unk>", "s", "<unk>", "b")


def example(**changes: object) -> Translation:
    weights = np.array([[0.1, 0.9, 0.0], [0.8, 0.1, 0.1], [0.2, 0.2, 0.6]])
    fields = {
        "source": "x y",
        "text": "Y X",
        "score": -1.0,
        "source_tokens": ("x", "y", "</s>"),
        "tokens": ("Y", "X", "</s>"),
        "token_scores": (-0.5, -0.5, 0.0),
        "heads": weights[None, None],
        "offset": 0,
        "source_words": (0, 1, -1),
        "words": (0, 1, -1),
    }
    return Translation(**{**fields, **changes})  # type: ignore[arg-type]


def test_links_take_the_strongest_weight_and_leave_out_eos() -> None:
    assert example().links() == [Link(1, 0), Link(0, 1)]
    assert example().links(threshold=0.85) == [Link(1, 0)]


def test_an_offset_moves_links_to_the_word_before() -> None:
    assert example(offset=1).links() == [Link(0, 0)]


def test_word_links_merge_the_pieces_of_a_word() -> None:
    joined = example(source_words=(0, 0, -1), words=(0, 0, -1))
    assert joined.word_links() == [Link(0, 0)]


def test_a_notebook_draws_a_translation() -> None:
    assert "<svg" in example()._repr_html_()


def test_a_model_without_attention_has_none_to_show() -> None:
    plain = example(heads=np.zeros((0, 0, 3, 3)))
    assert plain.attention is None
    assert plain.links() == []
    assert plain.word_links() == []
    assert "Y X" in plain._repr_html_()
