"""Every task through the same call: prompts, labels and tags in, answers with what their task says of them out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import regarde
from regarde.errors import DataError, UsageError
from regarde.native import library
from regarde.search import Beam, Rules
from regarde.text import SentencepieceConfig
from regarde.translate import Translator
from regarde.visualize import Heatmap
from tests.tasks import CLASSIFIER, LANGUAGE_MODELS, TAGGER, saved

ENGINES = ["native", "torch"] if library.available() else ["torch"]
engines = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture(params=[(kind, engine) for kind in LANGUAGE_MODELS for engine in ENGINES], ids=" ".join)
def language_model(request: pytest.FixtureRequest, tmp_path: Path) -> Translator:
    kind, engine = request.param
    return regarde.load(saved(tmp_path / "run", LANGUAGE_MODELS[kind]), engine=engine)


def test_a_language_model_continues_its_prompt(language_model: Translator) -> None:
    out = language_model.predict("the c")
    assert (out.source, out.task, out.prompt_tokens) == ("the c", "modeling", 5)
    assert out.text == f"the c{out.continuation}"
    assert out.tokens[:5] == ("t", "h", "e", "␣", "c")


def test_an_empty_prompt_is_continued_too(language_model: Translator) -> None:
    several = language_model.predict(["", "the", ""])
    assert several[0].tokens == several[2].tokens
    assert len(several[0].tokens) == 9 or several[0].finished
    assert (several[0].prompt_tokens, several[0].continuation) == (0, several[0].text)


def test_attention_of_a_language_model_is_over_its_own_words(language_model: Translator) -> None:
    out = language_model.predict("the cat")
    assert out.source_tokens == ("<s>", *out.tokens[:-1])
    assert len(out.source_words) == len(out.tokens)
    assert out.heads.shape[2:] == (len(out.tokens), len(out.tokens))
    if out.attention is not None:
        assert np.triu(out.attention, 1).max() == 0
        assert Heatmap.of(out).title == out.text
        assert all(0 < link.source <= link.target for link in out.links())
        assert out.word_links() is not None


def test_the_length_limit_counts_from_the_end_of_the_prompt(language_model: Translator) -> None:
    for prompt in ("", "the", "the cat sat on the mat"):
        out = language_model.generate(prompt, length=4)
        assert len(out.tokens) - out.prompt_tokens <= 4
        assert out.finished or len(out.tokens) - out.prompt_tokens == 4


def test_both_a_search_and_its_trace_start_from_the_prompt(language_model: Translator) -> None:
    for search in (None, Beam(size=3, n_best=2, rules=Rules(max_ratio=0.0, max_extra=4))):
        trace = language_model.trace("the", search=search)
        assert trace.texts[0] == language_model.predict("the", search=search).text
        assert trace.looks_back
        assert trace.source_tokens[:4] == ("<s>", "t", "h", "e")
    (first, *_) = language_model.trace("").steps
    assert first.branches[0].id == 2  # BOS


def test_samples_of_a_prompt_differ_and_come_again_with_their_seed(language_model: Translator) -> None:
    out = language_model.generate("the", length=8, count=6)
    texts = [each.text for each in (out, *out.alternatives)]
    assert len(texts) == 6
    assert len(set(texts)) > 1
    assert all(text.startswith("the") for text in texts)
    assert [each.text for each in language_model.generate("the", length=8, count=6).alternatives] == texts[1:]


def test_the_score_of_a_text_is_the_sum_over_its_tokens(language_model: Translator) -> None:
    (scored,) = language_model.score([("", "the cat")])
    assert (scored.text, len(scored.tokens)) == ("the cat", 8)
    assert scored.score == pytest.approx(sum(scored.token_scores), abs=1e-5)
    assert scored.source_tokens == ("<s>", *scored.tokens[:-1])
    assert len(scored.source_words) == len(scored.tokens)


def test_unknown_characters_of_a_prompt_stay_in_the_text(language_model: Translator) -> None:
    out = language_model.predict("the 中")
    assert out.text.startswith("the 中")
    assert out.tokens[4] == "<unk>"


def test_a_prompt_that_is_too_long_is_refused(language_model: Translator) -> None:
    with pytest.raises(DataError, match=r"A prompt of 1200 tokens: expected at most 1000\."):
        language_model.predict("the " * 300)


@engines
def test_a_prompt_of_subwords_that_ends_in_a_space_is_followed_by_a_new_word(engine: str, tmp_path: Path) -> None:
    tokenizer = SentencepieceConfig(size=40)
    model = regarde.load(saved(tmp_path / "run", LANGUAGE_MODELS["recurrent"], tokenizer), engine=engine)
    inside, after = model.tokens("the ca"), model.tokens("the cat ")
    assert not len(inside.prefix.barred)
    assert len(after.prefix.barred)
    assert after.prefix.ids == model.tokens("the cat").prefix.ids
    sampled = model.generate("the cat ", length=3, count=20)
    texts = {each.text for each in (sampled, *sampled.alternatives)}
    assert all(text == "the cat" or not text[7:8].isalpha() for text in texts)


@engines
def test_a_classifier_gives_the_probability_of_every_label(engine: str, tmp_path: Path) -> None:
    model = regarde.load(saved(tmp_path / "run", CLASSIFIER), engine=engine)
    out = model.predict("the cat")
    assert out.probabilities is not None
    assert sorted(out.probabilities) == ["animal", "place", "time"]
    assert sum(out.probabilities.values()) == pytest.approx(1, abs=1e-4)
    assert next(iter(out.probabilities)) == out.text
    assert list(out.probabilities.values()) == sorted(out.probabilities.values(), reverse=True)
    assert out.alternatives == ()
    scored = model.score(("the cat", label) for label in out.probabilities)
    assert [np.exp(one.score) for one in scored] == pytest.approx(list(out.probabilities.values()), abs=1e-4)
    (second,) = model.predict("the cat", n_best=2).alternatives
    assert second.text == list(out.probabilities)[1]
    assert model.predict("").probabilities is None


@engines
def test_a_tagger_gives_the_spans_that_its_tags_mark(engine: str, tmp_path: Path) -> None:
    model = regarde.load(saved(tmp_path / "run", TAGGER), engine=engine)
    found = [span for out in model.predict(["the cat sat", "on the mat", "cat cat mat"]) for span in out.spans or ()]
    assert found
    out = model.predict("cat on mat")
    tags = out.text.split(" ")
    assert out.spans is not None
    assert {span.start for span in out.spans} <= {i for i, tag in enumerate(tags) if tag != "O"}
    assert all(span.text == " ".join(["cat", "on", "mat"][span.start : span.end]) for span in out.spans)
    assert out.as_json()["spans"] == [vars(span) for span in out.spans]


def test_json_of_an_answer_names_its_task(tmp_path: Path) -> None:
    label = regarde.load(saved(tmp_path / "run", CLASSIFIER)).predict("the cat", n_best=2).as_json()
    assert label["task"] == "classification"
    assert label["probabilities"][label["text"]] == pytest.approx(np.exp(label["score"]), abs=1e-5)
    assert [other["task"] for other in label["alternatives"]] == ["classification"]
    text = regarde.load(saved(tmp_path / "lm", LANGUAGE_MODELS["attentive"])).predict("the").as_json()
    assert (text["task"], text["prompt_tokens"]) == ("modeling", 3)
    assert "probabilities" not in text


def test_only_a_language_model_generates(tmp_path: Path) -> None:
    model = regarde.load(saved(tmp_path / "run", CLASSIFIER))
    with pytest.raises(UsageError, match=r"generate needs a language model: this model is a classifier\. Use predict"):
        model.generate("the")


@engines
def test_a_text_ends_with_the_context_of_a_model_with_positions(engine: str, tmp_path: Path) -> None:
    model = regarde.load(saved(tmp_path / "run", LANGUAGE_MODELS["transformer"]), engine=engine)
    rules = replace(model.search.rules, context=6, max_ratio=0.0, max_extra=50, min_length=40)
    short = replace(model, search=replace(model.search, rules=rules))
    assert (len(short.predict("the").tokens), len(short.predict("").tokens)) == (6, 6)
    sampled = short.generate("the c", length=3)
    assert (sampled.prompt_tokens, len(sampled.tokens), sampled.finished) == (5, 6, False)
    with pytest.raises(DataError, match="A prompt of 7 tokens: expected at most 5"):
        short.generate("the cat")
    assert (
        len(model.predict("the cat sat", search=replace(model.search, rules=replace(rules, context=30))).tokens) == 30
    )
