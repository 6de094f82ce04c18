"""Each mechanism against a slow float64 loop written from its paper; its gradients; and what all of them promise."""

from __future__ import annotations

import dataclasses
import itertools
import math
import typing

import numpy as np
import pytest
import torch
from torch import Tensor

from regarde import config as configs
from regarde.attention import (
    Additive,
    AdditiveConfig,
    Attention,
    AttentionConfig,
    Coverage,
    CoverageConfig,
    Dot,
    General,
    GeneralConfig,
    Global,
    GlobalConfig,
    LocalM,
    LocalMConfig,
    LocalP,
    LocalPConfig,
    Location,
    LocationConfig,
    Monotonic,
    MonotonicConfig,
    MultiHead,
    MultiHeadConfig,
    ScaledDotConfig,
    ScoreConfig,
)
from regarde.errors import ConfigError
from regarde.training.step import seeded

B, T, S, Q, D, A = 3, 4, 7, 5, 6, 4
LENGTHS = [7, 4, 1]
MASK = torch.arange(S) < torch.tensor(LENGTHS).unsqueeze(1)
Numbers = np.ndarray


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def softmax(e: list[float]) -> list[float]:
    powers = [math.exp(x) for x in e]
    return [x / sum(powers) for x in powers]


def made(config: AttentionConfig, query: int = Q, state: int = D) -> Attention:
    with seeded(5):
        attention = config.build(query, state).double()
        for parameter in attention.parameters():
            torch.nn.init.normal_(parameter, std=0.6)
    return attention.eval()


@pytest.fixture
def query() -> Tensor:
    with seeded(6):
        return torch.randn(B, T, Q, dtype=torch.float64, requires_grad=True)


@pytest.fixture
def states() -> Tensor:
    with seeded(7):
        return torch.randn(B, S, D, dtype=torch.float64, requires_grad=True)


def scores(attention: Attention, query: Tensor, states: Tensor) -> Numbers:
    return attention.score(query, attention.score.keys(states)).detach().numpy()


def weights(attention: Attention, query: Tensor, states: Tensor, past: Tensor | None = None) -> Numbers:
    """(B, T, S) of the one head."""
    return attention(query, attention.remember(states, MASK), past)[1].squeeze(1).detach().numpy()


# Local attention: Luong et al. 2015, section 3.2


@pytest.mark.parametrize("begun", [0, 2])
def test_local_m_looks_around_its_own_step(query: Tensor, states: Tensor, begun: int) -> None:
    window = 1
    attention = made(LocalMConfig(score=GeneralConfig(), window=window))
    e = scores(attention, query, states)
    found = weights(attention, query, states, past=torch.zeros(B, 1, begun, S))
    for b, t in np.ndindex(B, T):
        p = min(begun + t, LENGTHS[b] - 1)
        inside = [s for s in range(LENGTHS[b]) if p - window <= s <= p + window]
        expected = np.zeros(S)
        expected[inside] = softmax([e[b, t, s] for s in inside])
        np.testing.assert_allclose(found[b, t], expected, atol=1e-12)


@pytest.mark.parametrize("window", [1, 2, 10])
def test_local_p_looks_around_a_predicted_position(query: Tensor, states: Tensor, window: int) -> None:
    attention = made(LocalPConfig(score=AdditiveConfig(size=A), window=window))
    assert isinstance(attention, LocalP)
    W, v = attention.W_p.weight.detach().numpy(), attention.v_p.detach().numpy()
    e = scores(attention, query, states)
    found = weights(attention, query, states)
    for b, t in np.ndindex(B, T):
        h = query[b, t].detach().numpy()
        p = LENGTHS[b] * sigmoid(sum(v[i] * math.tanh(W[i] @ h) for i in range(Q)))
        p = min(p, LENGTHS[b] - 1)
        inside = [s for s in range(LENGTHS[b]) if p - window <= s <= p + window]
        align = dict(zip(inside, softmax([e[b, t, s] for s in inside]), strict=True))
        sigma = window / 2
        expected = [align.get(s, 0) * math.exp(-((s - p) ** 2) / (2 * sigma**2)) for s in range(S)]
        np.testing.assert_allclose(found[b, t], expected, atol=1e-12)


def test_the_rows_of_local_p_sum_to_less_than_one(query: Tensor, states: Tensor) -> None:
    sums = weights(made(LocalPConfig(window=2)), query, states).sum(axis=-1)
    assert (sums[:2] < 0.999).all()
    assert (sums > 0).all()


def test_the_defaults_of_local_attention_are_luong_s() -> None:
    assert LocalPConfig().window == LocalMConfig().window == 10


# Coverage: See et al. 2017, equations 10 and 11


def test_additive_coverage_equals_the_paper(query: Tensor, states: Tensor) -> None:
    attention = made(CoverageConfig(score=AdditiveConfig(size=A)))
    p = {name: value.detach().numpy() for name, value in attention.named_parameters()}
    found = weights(attention, query, states)
    for b in range(B):
        c = np.zeros(S)
        for t in range(T):
            q, h = query[b, t].detach().numpy(), states[b].detach().numpy()
            e = [
                p["score.v"] @ np.tanh(p["score.W.weight"] @ q + p["score.U.weight"] @ h[s] + p["w"] * c[s])
                for s in range(LENGTHS[b])
            ]
            a = np.array(softmax(e) + [0.0] * (S - LENGTHS[b]))
            np.testing.assert_allclose(found[b, t], a, atol=1e-12)
            c += a


def test_coverage_reads_the_past(query: Tensor, states: Tensor) -> None:
    attention = made(CoverageConfig(score=GeneralConfig()))
    with seeded(8):
        past = torch.rand(B, 1, 2, S, dtype=torch.float64) * MASK[:, None, None]
    assert np.abs(weights(attention, query, states) - weights(attention, query, states, past))[:2].max() > 0.01


def test_coverage_refuses_a_score_without_keys() -> None:
    with pytest.raises(ConfigError, match=r"a location score has none\. Use another score\."):
        CoverageConfig(score=LocationConfig()).build(Q, D)


# Monotonic attention: Raffel et al. 2017


def monotonic(**options: float) -> Attention:
    return made(MonotonicConfig(score=GeneralConfig(), **{"noise": 0.0, **options}))


def stops(attention: Attention, query: Tensor, states: Tensor) -> Numbers:
    """p = sigmoid(e + r)"""
    assert isinstance(attention, Monotonic)
    e = scores(attention, query, states) + attention.start + attention.r.item()
    return np.vectorize(sigmoid)(e)


def test_in_training_monotonic_attention_is_the_probability_of_every_hard_path(query: Tensor, states: Tensor) -> None:
    attention = monotonic().train()
    p = stops(attention, query, states)
    found = weights(attention, query, states)
    for b in range(B):
        expected = np.zeros((T, S))
        for path in itertools.combinations_with_replacement(range(LENGTHS[b]), T):
            chance, begin = 1.0, 0
            for t, stop in enumerate(path):
                chance *= math.prod(1 - p[b, t, s] for s in range(begin, stop)) * p[b, t, stop]
                begin = stop
                # what a longer path does after this step is no concern of this step's: count each beginning once
                if path[t:] == (stop,) * (T - t):
                    expected[t, stop] += chance
        np.testing.assert_allclose(found[b], expected, atol=1e-12)


def test_in_training_monotonic_attention_equals_the_recursion_of_the_paper(query: Tensor, states: Tensor) -> None:
    """Equations 13 and 14: q_s = (1 - p_{s-1}) q_{s-1} + a_{i-1}(s),  a_i(s) = p_s q_s"""
    attention = monotonic().train()
    p = stops(attention, query, states)
    found = weights(attention, query, states)
    for b in range(B):
        before = [1.0] + [0.0] * (S - 1)
        for t in range(T):
            q, row = 0.0, []
            for s in range(LENGTHS[b]):
                q = (1 - p[b, t, s - 1] if s else 1) * q + before[s]
                row.append(p[b, t, s] * q)
            before = row + [0.0] * (S - len(row))
            np.testing.assert_allclose(found[b, t], before, atol=1e-12)


def test_monotonic_attention_is_stable_where_products_vanish() -> None:
    """Energies of +-40 over 200 positions: the product of (1 - p) is far below the smallest float."""
    with seeded(9):
        e = (80 * torch.rand(1, 3, 200) - 40).requires_grad_()
    attention = Monotonic(Location(200, 200), start=0.0, noise=0.0).train()
    torch.nn.init.eye_(attention.score.W.weight)
    memory = attention.remember(torch.zeros(1, 200, 1), torch.ones(1, 200, dtype=torch.bool))
    _, found = attention(e, memory)
    before = np.eye(1, 200)[0]
    for t in range(3):
        p = 1 / (1 + np.exp(-e[0, t].detach().double().numpy()))
        row, q = np.zeros(200), 0.0
        for s in range(200):
            q = (1 - p[s - 1] if s else 1) * q + before[s]
            row[s] = p[s] * q
        np.testing.assert_allclose(found[0, 0, t].detach(), row, atol=1e-5)
        before = row
    (found * torch.arange(200)).sum().backward()
    assert e.grad is not None
    assert e.grad.isfinite().all()


def test_otherwise_monotonic_attention_stops_at_the_first_likely_position(query: Tensor, states: Tensor) -> None:
    attention = monotonic()
    p = stops(attention, query, states)
    found = weights(attention, query, states)
    for b in range(B):
        stop = 0
        for t in range(T):
            expected = np.zeros(S)
            for s in range(stop, LENGTHS[b]):
                if p[b, t, s] >= 0.5:
                    expected[s], stop = 1.0, s
                    break
            np.testing.assert_array_equal(found[b, t], expected)
    assert found.sum() > 0
    assert (found.sum(axis=-1) == 0).any()  # no likely position: a row of zeros


def test_after_a_step_without_a_stop_attention_goes_on_from_the_last_stop() -> None:
    attention = Monotonic(Location(4, 4), start=0.0).eval()
    torch.nn.init.eye_(attention.score.W.weight)
    memory = attention.remember(torch.zeros(1, 4, 1), torch.ones(1, 4, dtype=torch.bool))
    yes, no = 1.0, -1.0
    e = torch.tensor([[[yes, yes, no, no], [no, no, yes, no], [yes, yes, no, no], [yes, yes, yes, yes]]])
    _, found = attention(e, memory)
    assert found[0, 0].argmax(dim=-1).tolist() == [0, 2, 0, 2]
    assert found[0, 0].sum(dim=-1).tolist() == [1, 1, 0, 1]


def test_noise_moves_the_energies_in_training_only(query: Tensor, states: Tensor) -> None:
    noisy, quiet = monotonic(noise=1.0), monotonic()
    np.testing.assert_array_equal(weights(noisy, query, states), weights(quiet, query, states))
    noisy.train()
    with seeded(1):
        first = weights(noisy, query, states)
    with seeded(2):
        assert np.abs(first - weights(noisy, query, states)).max() > 0.01


def test_r_starts_at_minus_one() -> None:
    attention = MonotonicConfig(score=LocationConfig(length=S)).build(Q, D).double().train()
    torch.nn.init.zeros_(attention.score.W.weight)
    attention.noise = 0.0
    first = weights(attention, torch.zeros(B, 1, Q, dtype=torch.float64), torch.zeros(B, S, D, dtype=torch.float64))
    assert first[0, 0, 0] == pytest.approx(sigmoid(-1.0))


# Multi-head attention: Vaswani et al. 2017, section 3.2.2


def test_multi_head_attention_equals_the_paper(query: Tensor, states: Tensor) -> None:
    N, C = 3, 2
    attention = made(MultiHeadConfig(heads=N))
    p = {name: value.detach().numpy() for name, value in attention.named_parameters()}
    p["W_k.weight"], p["W_v.weight"] = np.split(p["W_kv.weight"], 2)
    context, found = attention(query, attention.remember(states, MASK))
    assert context.shape == (B, T, D)
    for b, t in np.ndindex(B, T):
        q, h = query[b, t].detach().numpy(), states[b].detach().numpy()
        heads = []
        for n in range(N):
            W_q, W_k, W_v = (p[f"W_{x}.weight"][n * C : (n + 1) * C] for x in "qkv")
            a = softmax([float((W_q @ q) @ (W_k @ h[s])) / math.sqrt(C) for s in range(LENGTHS[b])])
            np.testing.assert_allclose(found[b, n, t, : LENGTHS[b]].detach(), a, atol=1e-12)
            heads.append(sum(a[s] * (W_v @ h[s]) for s in range(LENGTHS[b])))
        np.testing.assert_allclose(context[b, t].detach(), p["W_o.weight"] @ np.concatenate(heads), atol=1e-12)


def test_heads_that_do_not_divide_the_state_name_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"4 heads do not divide a state of 6\. Use 3 heads, or another size\."):
        MultiHeadConfig(heads=4).build(Q, 6)


# What all of them promise, in every combination

MECHANISMS: dict[str, AttentionConfig] = {
    "global": GlobalConfig(),
    "local-m": LocalMConfig(window=1),
    "local-p": LocalPConfig(window=2),
    "coverage": CoverageConfig(),
    "monotonic": MonotonicConfig(noise=0.0),
    "multi-head": MultiHeadConfig(heads=2),
}
SIZES: dict[str, object] = {"size": 3, "length": 5}


def _score(config: type) -> ScoreConfig:
    return config(**{name: value for name, value in SIZES.items() if name in config.__dataclass_fields__})


def combinations() -> dict[str, AttentionConfig]:
    """Every mechanism x score x normalizer but the one that is refused."""
    found = {}
    for (name, config), kind in itertools.product(MECHANISMS.items(), typing.get_args(ScoreConfig)):
        if (name, kind) == ("coverage", LocationConfig):
            continue
        chosen = dataclasses.replace(config, score=_score(kind))
        found[f"{name} {kind.kind}"] = chosen
        if hasattr(config, "normalizer"):
            found[f"{name} {kind.kind} sparsemax"] = dataclasses.replace(chosen, normalizer="sparsemax")
    return found


COMBINATIONS = combinations()


@pytest.fixture(params=COMBINATIONS)
def attention(request: pytest.FixtureRequest) -> Attention:
    return made(COMBINATIONS[request.param], D, D)


@pytest.fixture
def wide() -> Tensor:
    """Queries as wide as the states, which every score can take."""
    with seeded(6):
        return torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)


def test_every_mechanism_there_is_is_tested_here() -> None:
    assert set(MECHANISMS) == {config.kind for config in typing.get_args(AttentionConfig)}


@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_step_by_step_equals_all_at_once(attention: Attention, wide: Tensor, states: Tensor, training: bool) -> None:
    attention.train(training)
    memory = attention.remember(states, MASK)
    contexts, rows = attention(wide, memory)
    past = torch.zeros(B, attention.heads, 0, S, dtype=torch.float64)
    for t in range(T):
        context, row = attention(wide[:, t : t + 1], memory, past)
        torch.testing.assert_close(context, contexts[:, t : t + 1])
        past = torch.cat((past, row), dim=2)
    torch.testing.assert_close(past, rows)
    torch.testing.assert_close(attention(wide[:, 1:], memory, past[:, :, :1])[1], rows[:, :, 1:])


@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_padding_changes_nothing_and_gets_nothing(
    attention: Attention, wide: Tensor, states: Tensor, training: bool
) -> None:
    attention.train(training)
    context, rows = attention(wide, attention.remember(states, MASK))
    assert (rows >= 0).all()
    assert (rows.sum(dim=-1) <= 1 + 1e-9).all()
    assert (rows * ~MASK[:, None, None] == 0).all()
    for b, length in enumerate(LENGTHS):
        memory = attention.remember(states[b : b + 1, :length], MASK[b : b + 1, :length])
        alone, row = attention(wide[b : b + 1], memory)
        torch.testing.assert_close(alone[0], context[b])
        torch.testing.assert_close(row[0], rows[b, ..., :length])


@torch.no_grad()
def test_what_is_not_allowed_gets_nothing(attention: Attention, wide: Tensor, states: Tensor) -> None:
    allowed = torch.ones(1, T, S, dtype=torch.bool).tril()
    context, rows = attention(wide, attention.remember(states, MASK), allowed=allowed)
    assert (rows[:, :, ~allowed[0]] == 0).all()
    assert context.isfinite().all()


@pytest.mark.parametrize("name", [name for name in COMBINATIONS if "additive" in name or "location" in name])
def test_the_gradients_are_right(name: str) -> None:
    attention = made(COMBINATIONS[name], D, D).train()  # monotonic attention has no gradient but in training
    with seeded(12):
        query = torch.randn(2, 2, D, dtype=torch.float64, requires_grad=True)
        states = torch.randn(2, 4, D, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 4, [True, True, True, False]])

    def call(*_: Tensor) -> tuple[Tensor, Tensor]:
        return attention(query, attention.remember(states, mask))

    assert torch.autograd.gradcheck(call, (query, states, *attention.parameters()), fast_mode=True)


def test_every_parameter_takes_part(attention: Attention, wide: Tensor, states: Tensor) -> None:
    small = wide / 3  # where one position takes it all, sparsemax is flat
    context, _ = attention.train()(small, attention.remember(states, MASK))
    context.square().sum().backward()
    assert [name for name, p in attention.named_parameters() if not (p.grad is not None and p.grad.any())] == []


@pytest.mark.parametrize("name", MECHANISMS)
def test_eos_is_not_attended_unless_it_is_alone(name: str, wide: Tensor, states: Tensor) -> None:
    config = dataclasses.replace(MECHANISMS[name], score=AdditiveConfig(size=A), attend_eos=False)
    attention = made(config, D, D).train()
    _, rows = attention(wide, attention.remember(states, MASK))
    shorter = MASK.clone()
    shorter[0, 6] = shorter[1, 3] = False  # the third sentence is nothing but its EOS
    assert (rows * ~shorter[:, None, None] == 0).all()
    assert (rows[2, ..., 0] > 0).all()
    whole = made(dataclasses.replace(config, attend_eos=True), D, D).train()
    torch.testing.assert_close(rows, whole(wide, whole.remember(states, shorter))[1])


@dataclasses.dataclass(frozen=True)
class Holder:
    """A configuration with a choice of attention in it."""

    attention: AttentionConfig


@pytest.mark.parametrize("name", COMBINATIONS)
def test_a_configuration_survives_toml(name: str) -> None:
    holder = Holder(COMBINATIONS[name])
    assert configs.parse(Holder, configs.read_text("a test", configs.dump(holder))) == holder


def test_the_layers_can_be_built_by_hand() -> None:
    """As the documentation builds them, with nothing but what cannot be left out."""
    states, mask = torch.randn(B, S, D), MASK
    for attention in (
        Global(Additive(D, D, A)),
        LocalM(General(D, D)),
        LocalP(Dot(D, D), query=D),
        Coverage(Additive(D, D, A)),
        Monotonic(Additive(D, D, A)),
        MultiHead(Dot(2, 2), query=D, state=D, heads=3),
    ):
        context, rows = attention(torch.randn(B, T, D), attention.remember(states, mask))
        assert context.shape == (B, T, D)
        assert rows.shape == (B, attention.heads, T, S)
        assert attention.content
    assert not Global(Location(D, S)).content
    assert made(MultiHeadConfig(heads=2, score=ScaledDotConfig()), D, D).content
