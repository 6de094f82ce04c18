"""A model that copies, from its training to its answers."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import regarde
from regarde.errors import UsageError
from regarde.folder.quantize import quantize
from regarde.native import library
from regarde.search import Sampling
from regarde.translate import Translator, ensemble

SMALL = ["model.hidden=64", "model.embedding=24", "model.maxout=24", "model.attention.score.size=32"]
UNSEEN = ["aXc", "Żabc", "dé漢éa", "ab漢"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned to copy words of six letters, and knows no others."""
    home, dice = tmp_path_factory.mktemp("copying"), random.Random(1)
    words = ["".join(dice.choices("abcdef", k=dice.randint(2, 6))) for _ in range(3000)]
    (home / "my.tsv").write_text("".join(f"{word}\t{word}\n" for word in dict.fromkeys(words)))
    settings = [*SMALL, "training.steps=400", "training.valid_every=400", "training.hide=0.3", "model.dropout=0"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        regarde.train("my.tsv", preset="copying-small", settings=settings, out="run")
    return home / "run"


ENGINES = ["torch", *(["native"] if library.available() else [])]


@pytest.fixture(params=ENGINES)
def model(run: Path, request: pytest.FixtureRequest) -> Translator:
    return regarde.load(run, engine=request.param)


def test_it_copies_symbols_that_it_has_never_seen(model: Translator) -> None:
    assert [found.text for found in model.translate(UNSEEN)] == UNSEEN
    assert [found.text for found in model.translate(UNSEEN, beam=3)] == UNSEEN


def test_an_answer_says_what_was_copied_from_where(model: Translator) -> None:
    found = model.translate("dé漢éa")
    assert found.copied == (0, 1, 2, 3, 4, 5)
    assert found.p_gen is not None
    assert len(found.p_gen) == len(found.tokens)
    assert all(0 <= p <= 0.5 for p in found.p_gen)
    assert found.tokens == ("d", "é", "漢", "é", "a", "</s>")
    assert found.source_tokens == found.tokens
    record = json.loads(json.dumps(found.as_json()))
    assert record["copied"] == list(found.copied)
    assert len(record["p_gen"]) == 6


def test_links_are_those_of_the_weights_that_copy(model: Translator) -> None:
    assert [tuple(link) for link in model.translate("ab漢").links()] == [(0, 0), (1, 1), (2, 2)]


def test_given_words_that_only_the_source_has_are_scored(model: Translator) -> None:
    right, wrong, elsewhere = model.score([("a漢b", "a漢b"), ("a漢b", "a漢漢"), ("a漢b", "aéb")])
    assert right.score > -2 > wrong.score
    assert right.text == "a漢b"
    assert elsewhere.tokens == ("a", "<unk>", "b", "</s>")


def test_a_prefix_may_hold_what_the_source_has(model: Translator) -> None:
    assert model.translate("ab漢c", prefix="漢").text.startswith("漢")
    with pytest.raises(UsageError, match="holds 'é', which is not in the vocabulary"):
        model.translate("ab漢c", prefix="é")


def test_a_trace_has_p_gen_and_origins(model: Translator) -> None:
    trace = model.trace("a漢", beam=2).as_json()
    best = trace["hypotheses"][0]
    assert best["tokens"] == ["a", "漢", "</s>"]
    assert best["copied"] == [0, 1, 2]
    assert all(0 <= branch["p_gen"] <= 1 for step in trace["steps"] for branch in step["branches"])
    own = best["ids"][1]
    assert own >= len(model.text.target)
    again = model.trace("a漢", target=best["ids"][:-1]).as_json()
    assert again["hypotheses"][0]["tokens"] == best["tokens"]
    with pytest.raises(UsageError, match=f"Token {own + 1}: the vocabulary has 0 to {own}"):
        model.trace("a漢", target=[own + 1])


def test_sampling_draws_from_the_mixture(model: Translator) -> None:
    found = model.translate("a漢", search=Sampling(n_best=4, seed=2))
    assert "a漢" in [each.text for each in (found, *found.alternatives)]


def test_both_engines_say_the_same(run: Path) -> None:
    if len(ENGINES) == 1:
        pytest.skip("the native library was not built")
    one, other = (regarde.load(run, engine=name).translate(UNSEEN) for name in ENGINES)
    for a, b in zip(one, other, strict=True):
        assert a.text == b.text
        assert a.score == pytest.approx(b.score, abs=1e-4)
        assert a.p_gen == pytest.approx(b.p_gen, abs=1e-4)


def test_bytes_copy_too(run: Path, tmp_path: Path) -> None:
    quantize(run, tmp_path / "int8")
    for engine in ENGINES:
        assert [found.text for found in regarde.load(tmp_path / "int8", engine=engine).translate(UNSEEN)] == UNSEEN


def test_an_ensemble_of_models_that_copy_copies(run: Path) -> None:
    for engine in ENGINES:
        both = ensemble([regarde.load(run, engine=engine)] * 2)
        found = both.translate("a漢")
        assert (found.text, found.copied) == ("a漢", (0, 1, 2))


def test_show_marks_what_was_copied(run: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "regarde", "show", run, "a漢"], check=True, capture_output=True, text=True
    ).stdout
    assert sum(line.endswith(" copied") for line in shown.splitlines()) == 3
