"""The whole way: text in, text and attention out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regarde
from regarde.alignment.links import Link
from regarde.engines.reference import TorchEngine
from regarde.errors import DataError, UsageError
from regarde.models import BahdanauConfig, LuongConfig, SutskeverConfig
from regarde.native import library
from regarde.search import Beam, Greedy, Rules
from regarde.text import UNK, CharactersConfig, Text, TextConfig, TokenizerConfig, WordsConfig
from regarde.training.step import seeded
from regarde.translate import Translator, ensemble, first_difference
from regarde.translation import Translation


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
    assert out.source_words == (0, 0, 0, 0, 0, -1)  # the end belongs to no word
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


def test_the_best_of_several_answers_is_the_one_best_and_what_was_cut_short_comes_last(model: Translator) -> None:
    rules = Rules(max_ratio=1.0, max_extra=1)
    for sentence in ("a", "abc", "hgfedcba", "bbbb", "cdab", "ee"):
        several = model.translate(sentence, search=Beam(size=5, n_best=5, rules=rules))
        assert several.text == model.translate(sentence, search=Beam(size=5, rules=rules)).text
        ended = [answer.finished for answer in (several, *several.alternatives)]
        assert len(ended) == 5
        assert ended == sorted(ended, reverse=True)


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a", None], "Sentence 2 of 2 is None, expected a string."),
        ([b"a"], "Sentence 1 of 1 is something of type bytes, expected a string."),
        (None, "translate was given None. Give a string, or a list of strings."),
        (b"a", "translate was given something of type bytes. Give a string, or a list of strings."),
    ],
)
def test_what_is_no_sentence_is_named(model: Translator, given: Any, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        model.translate(given)
    assert str(refused.value) == message


def test_scoring_its_own_words_gives_a_translation_its_score_and_attention_again(model: Translator) -> None:
    sources = ["abc", "hgfedcba", "a"]
    said = model.translate(sources)
    for out, again in zip(said, model.score(zip(sources, [out.text for out in said], strict=True)), strict=True):
        assert (again.source, again.text, again.tokens) == (out.source, out.text, out.tokens)
        assert again.score == pytest.approx(sum(out.token_scores), abs=1e-3)
        np.testing.assert_allclose(again.heads, out.heads, atol=1e-4)


@pytest.mark.skipif(not library.available(), reason="the native library was not built")
def test_both_engines_score_alike_whatever_is_empty_or_unknown(tiny: Path) -> None:
    pairs = [
        ("abc", "abc"),
        ("aé", "é é"),
        ("b", " "),
        (" ", "b"),
        *[("ab" * n, "ba" * n) for n in (1, 5, 20, 60, 7, 300)],
    ]
    native, torch = (list(regarde.load(tiny, engine=engine).score(pairs)) for engine in ("native", "torch"))
    assert [out.text for out in native] == [target for _, target in pairs]
    for one, other in zip(native, torch, strict=True):
        assert one.score == pytest.approx(other.score, rel=1e-4, abs=1e-3)
        np.testing.assert_allclose(one.heads, other.heads, atol=1e-4)


def test_a_space_that_is_unknown_still_separates_the_words_of_a_scored_pair(tiny: Path) -> None:
    (out,) = regarde.load(tiny).score([("ab c", "c ab")])
    assert out.source_tokens[2] == out.tokens[1] == "<unk>"
    assert (out.source_words, out.words) == ((0, 0, -1, 1, -1), (0, -1, 1, 1, -1))


def test_a_given_target_that_is_too_long_is_refused(model: Translator) -> None:
    with pytest.raises(DataError, match="1001 tokens: expected at most 1000"):
        list(model.score([("a", "a" * 1001)]))


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


def pointing(config: LuongConfig | BahdanauConfig | SutskeverConfig, seed: int = 1, cased: bool = False) -> Translator:
    """A model of words that says little else than UNK."""
    corpus = ["the cat sat", "the mat"]
    text = TextConfig(source=WordsConfig(), target=WordsConfig()).train(
        [(line, line.title() if cased else line) for line in corpus]
    )
    with seeded(seed):
        model = config.build(len(text.source), len(text.target))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.add_(torch.randn_like(parameter) * 0.8)
                if name in ("decoder.W_o.bias", "decoder.W_s.bias", "decoder.W.bias"):
                    parameter[UNK] += 8
    search = Greedy(rules=Rules(max_ratio=0.0, max_extra=5, min_length=5))
    return Translator(text=text, engine=TorchEngine(model), search=search, offset=model.decoder.offset)


BAHDANAU = BahdanauConfig(embedding=4, hidden=5, maxout=3, init="torch")
LUONG = LuongConfig(embedding=4, hidden=5, layers=1, init="torch")
SUTSKEVER = SutskeverConfig(embedding=4, hidden=5, layers=1, init="torch")


@pytest.mark.parametrize("config", [BAHDANAU, LUONG], ids=["bahdanau", "luong"])
def test_unknown_words_are_replaced_by_what_they_look_at(config: BahdanauConfig | LuongConfig) -> None:
    words = ["Kowalski", "cat", "Nowak", "sat"]
    translator = pointing(config)
    (out,) = translator.translate([" ".join(words)], replace_unknown=True)
    assert out.attention is not None
    assert out.tokens.count("<unk>") >= 2
    expected = []
    for t, token in enumerate(out.tokens):
        row = t + out.offset  # Luong's weights of the next step speak of this word
        known = token != "<unk>"
        looked = words[int(out.attention[row, :-1].argmax())] if row < len(out.tokens) else "⁇"
        expected.append(token if known else looked)
    assert out.text == " ".join(expected)
    assert "⁇" in translator.translate(" ".join(words)).text
    assert translator.translate("", replace_unknown=True).text == ""


def test_replacing_unknown_words_needs_attention() -> None:
    with pytest.raises(UsageError, match=r"this model has none\. Leave out replace_unknown"):
        pointing(SUTSKEVER).translate("the cat", replace_unknown=True)


def test_an_ensemble_translates_and_one_model_alone_is_itself() -> None:
    models = [pointing(BAHDANAU), pointing(SUTSKEVER, seed=2), pointing(LUONG, seed=3)]
    together = ensemble(models)
    assert together.offset == 1
    assert "Nowak" in together.translate("the Nowak", replace_unknown=True, beam=2).text
    assert ensemble(models[:1]) is models[0]
    twice, once = (translator.translate("the cat") for translator in (ensemble(models[:1] * 2), models[0]))
    assert (twice.text, twice.score) == (once.text, pytest.approx(once.score, abs=1e-5))


def test_an_ensemble_of_other_words_is_refused_and_names_the_first() -> None:
    with pytest.raises(UsageError, match=r"Model 2 of the ensemble: target token 4 is 'The', expected 'the'\. Use"):
        ensemble([pointing(BAHDANAU), pointing(BAHDANAU, cased=True)])
    one = pointing(BAHDANAU)
    other = replace(one, text=replace(one.text, normalize="NFKC"))
    with pytest.raises(UsageError, match="Model 3 of the ensemble: text is normalized as NFKC, expected NFC"):
        ensemble([one, one, other])
    with pytest.raises(UsageError, match="no models"):
        ensemble([])


def test_the_first_difference_between_texts_is_a_length_or_a_way_of_cutting_where_no_symbol_differs() -> None:
    def text(config: TokenizerConfig, lines: list[str]) -> Text:
        return TextConfig(source=config, target=CharactersConfig()).train([(line, "x") for line in lines])

    letters = text(CharactersConfig(), ["a b"])
    assert first_difference(letters, text(CharactersConfig(), ["a b"])) == ""
    assert first_difference(letters, text(CharactersConfig(), ["a b", "c"])) == "the source has 8 tokens, expected 7."
    same_symbols = first_difference(text(CharactersConfig(), ["ab"]), text(WordsConfig(), ["a b"]))
    assert same_symbols == "the source text is split into tokens in another way."
