"""Questions that come while others are answered: each gets the answer that it would get alone."""

from __future__ import annotations

import itertools
import random
import select
import time
from collections.abc import Iterator

import numpy as np
import pytest

from regarde import config as configs
from regarde.engines.continuous import Completed, PartialHypothesis
from regarde.engines.native import NativeEngine
from regarde.engines.records import read, written
from regarde.engines.reference import TorchEngine
from regarde.models import BahdanauConfig, ModelConfig, TransformerConfig
from regarde.native import library
from regarde.native.settings import flattened
from regarde.search import Beam, Greedy, Hypothesis, Rules, Sampling, Search
from regarde.search.settings import NO_PREFIX, Prefix
from regarde.training.step import seeded
from regarde.translate import Engine, Serving

SIZES = {"source": 9, "target": 11}
MODELS: dict[str, ModelConfig] = {
    "bahdanau": BahdanauConfig(embedding=5, hidden=6, maxout=4),
    "transformer": TransformerConfig(size=8, layers=2, heads=2, feed_forward=10, tying="two-way"),
}
RULES = Rules(max_ratio=2.0, max_extra=8)
SEARCHES: list[Search] = [
    Greedy(rules=RULES),
    Beam(size=3, n_best=2, rules=RULES),
    Beam(size=70, rules=RULES),  # more than there are rows
    Sampling(n_best=2, rules=RULES),
]


@pytest.fixture(params=itertools.product(MODELS, ("native", "torch")), ids=" by ".join)
def engine(request: pytest.FixtureRequest) -> Engine:
    name, kind = request.param
    config = MODELS[name]
    with seeded(3):
        model = config.build(*SIZES.values())
    if kind == "torch":
        return TorchEngine(model)
    if not library.available():
        pytest.skip("the native library was not built")
    settings = flattened({"model": configs.as_table(config), "vocabulary": SIZES})
    return NativeEngine(settings, {key: tensor.numpy() for key, tensor in model.state_dict().items()})


def collected(continuous: Serving, wanted: int) -> Iterator[PartialHypothesis | Completed]:
    """Everything up to so many answers."""
    limit = time.monotonic() + 60
    while wanted:
        assert select.select([continuous.read_end], [], [], limit - time.monotonic())[0], "no answer"
        for event in continuous.collect():
            yield event
            wanted -= isinstance(event, Completed)


def same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    assert [[h.ids for h in hypotheses] for hypotheses in found] == [[h.ids for h in hs] for hs in expected]
    for one, other in zip(found, expected, strict=True):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_allclose(mine.heads, theirs.heads, atol=1e-5)
            assert mine.score == pytest.approx(theirs.score, abs=1e-5)


@pytest.mark.parametrize("threads", [1, 3])
def test_questions_of_all_kinds_side_by_side_get_their_own_answers(engine: Engine, threads: int) -> None:
    draw = random.Random(1)
    asked, found = {}, {}
    continuous = engine.continuous(threads=threads)
    for _ in range(60 if engine.name == "native" else 8):  # a beam of 70 takes torch a while
        sources = [[draw.randrange(4, 9) for _ in range(draw.randrange(1, 9))] for _ in range(draw.randrange(1, 5))]
        search, prefix = draw.choice(SEARCHES), draw.choice([NO_PREFIX, Prefix((5, 6))])
        number = continuous.ask(sources, search, [prefix] * len(sources))
        asked[number] = sources, search, prefix
        if draw.random() < 0.3:
            found |= {event.number: event for event in continuous.collect()}
    found |= {event.number: event for event in collected(continuous, len(asked) - len(found))}
    continuous.close()
    assert found.keys() == asked.keys()
    for number, (sources, search, prefix) in asked.items():
        event = found[number]
        assert isinstance(event, Completed)
        same(hypotheses(engine, event), list(engine.decode(sources, search, [prefix] * len(sources))))


def hypotheses(engine: Engine, done: Completed) -> list[list[Hypothesis]]:
    return read(done.streams, done.count, engine.layers, engine.heads)


def test_a_long_question_does_not_hold_up_a_short_one(engine: Engine) -> None:
    continuous = engine.continuous()
    search = Greedy(rules=Rules(min_length=30, max_ratio=1.0, max_extra=40))
    long = continuous.ask([[4, 5, 6]] * 500, search, [NO_PREFIX] * 500)
    short = continuous.ask([[4]], Greedy(rules=RULES), [NO_PREFIX])
    order = [event.number for event in collected(continuous, 2)]
    continuous.close()
    assert order == [short, long]


def test_a_question_that_nobody_waits_for_leaves(engine: Engine) -> None:
    continuous = engine.continuous()
    endless = Beam(size=5, rules=Rules(min_length=10**6, max_ratio=1.0, max_extra=60_000))
    alone, several = (continuous.ask([[4, 5]] * count, endless, [NO_PREFIX] * count) for count in (1, 500))
    for number in (alone, several, 10**9):
        continuous.cancel(number)
    given_up = {event.number: event for event in collected(continuous, 2)}
    assert {
        number: hypotheses(engine, event) for number, event in given_up.items() if isinstance(event, Completed)
    } == {
        alone: [],
        several: [],
    }
    after = continuous.ask([[4]], Greedy(rules=RULES), [NO_PREFIX])
    assert [event.number for event in collected(continuous, 1)] == [after]
    continuous.close()


def test_who_follows_hears_every_word_of_a_greedy_answer(engine: Engine) -> None:
    continuous = engine.continuous()
    continuous.ask([[4, 5, 6], [7]], Greedy(rules=Rules(min_length=3, max_extra=8)), [NO_PREFIX] * 2, followed=True)
    *parts, done = collected(continuous, 1)
    continuous.close()
    assert isinstance(done, Completed)
    for sentence, (hypothesis,) in enumerate(hypotheses(engine, done)):
        told = [part.ids for part in parts if isinstance(part, PartialHypothesis) and part.sentence == sentence]
        assert told == [hypothesis.ids[:length] for length in range(1, len(hypothesis.ids))]


def test_closing_waits_for_nobody(engine: Engine) -> None:
    continuous = engine.continuous(threads=2)
    endless = Greedy(rules=Rules(min_length=10**6, max_ratio=1.0, max_extra=60_000))
    for _ in range(10):
        continuous.ask([[4, 5]] * 20, endless, [NO_PREFIX] * 20)
    began = time.monotonic()
    continuous.close()
    assert time.monotonic() - began < 20


def test_a_model_that_fails_answers_every_request_and_takes_the_next(engine: Engine) -> None:
    continuous = engine.continuous()
    answers = []
    for words in ([[999], [4]], [[4]]):
        continuous.ask(words, Greedy(rules=RULES), [NO_PREFIX] * len(words))
        answers += list(collected(continuous, 1))
    continuous.close()
    assert [(bool(answer.problem), answer.count) for answer in answers] == [(True, 0), (False, 1)]


def test_a_trace_sees_none_of_the_steps_of_a_request_in_flight() -> None:
    with seeded(3):
        engine = TorchEngine(MODELS["bahdanau"].build(*SIZES.values()))
    search = Beam(size=2, rules=RULES)
    expected, _ = engine.trace([4, 5, 6], search, 3)
    continuous = engine.continuous()
    continuous.ask([[7, 8]] * 200, search, [NO_PREFIX] * 200)
    for _ in range(5):
        steps, _ = engine.trace([4, 5, 6], search, 3)
        for one, other in zip(steps, expected, strict=True):
            for mine, theirs in zip(one.branches, other.branches, strict=True):
                np.testing.assert_array_equal(mine.energies, theirs.energies)
    continuous.close()


def test_what_is_written_is_read_again() -> None:
    with seeded(3):
        engine = TorchEngine(MODELS["transformer"].build(*SIZES.values()))
    found = list(engine.decode([[4, 5], [6], [7, 8, 4]], SEARCHES[1]))
    same(read(written(found), len(found), engine.layers, engine.heads), found)
