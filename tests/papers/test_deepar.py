"""DeepAR and the forecaster with attention against slow loops in float64, and the three likelihoods by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from regarde.attention import GlobalConfig
from regarde.attention.scores import AdditiveConfig, GeneralConfig
from regarde.models import DeepARConfig, ForecasterConfig, ForecastModel
from regarde.models.forecasting import SeriesSteps, Window
from regarde.models.likelihoods import LikelihoodName, log_likelihood, parameters

B, C, T, I, SERIES = 3, 5, 4, 6, 2
NAMES: list[LikelihoodName] = ["gaussian", "student-t", "negative-binomial"]


def steps(count: int, generator: torch.Generator) -> SeriesSteps:
    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    observed = torch.ones(B, count, dtype=torch.bool)
    observed[1, 2] = False
    inside = torch.ones(B, count, dtype=torch.bool)
    return SeriesSteps(draw(B, count, I), draw(B, count).abs(), observed, inside)


def window() -> Window:
    generator = torch.Generator().manual_seed(7)
    past, future = steps(C, generator), steps(T, generator)
    past.inside[2, :2] = False  # a series that is shorter than the history
    past.observed[2, :2] = False
    return Window(past, future, torch.tensor([1, 0, 1]), torch.tensor([2.0, 0.5, 9.0], dtype=torch.float64))


def built(config: DeepARConfig | ForecasterConfig) -> ForecastModel:
    torch.manual_seed(3)
    return config.build(SERIES, I).double().eval()


def lstm(model: ForecastModel, prefix: str, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """i, f, o = sigmoid(W x + U h), g = tanh(W x + U h); c = f c + i g, h = o tanh(c)"""
    weights = model.state_dict()
    total = weights[f"{prefix}.W.0.weight"] @ x + weights[f"{prefix}.W.0.bias"] + weights[f"{prefix}.U.weight"] @ h
    H = len(h)
    i, f, o = (torch.sigmoid(total[k * H : (k + 1) * H]) for k in range(3))
    c = f * c + i * torch.tanh(total[3 * H :])
    return o * torch.tanh(c), c


def test_deepar_is_equations_1_and_2_of_the_paper() -> None:
    """h_t = h(h_{t-1}, z_{t-1}, x_t), theta(h_t): one step after the other, padding skipped."""
    model, given = built(DeepARConfig(hidden=4, layers=2, embedding=3)), window()
    found = model(given)
    weights = model.state_dict()
    inputs = torch.cat((given.past.inputs, given.future.inputs), dim=1)
    inside = torch.cat((given.past.inside, given.future.inside), dim=1)
    for b in range(B):
        states = [(torch.zeros(4).double(), torch.zeros(4).double()) for _ in range(2)]
        for t in range(C + T):
            if not inside[b, t]:
                continue
            x = torch.cat((inputs[b, t], weights["embedding.vectors.weight"][given.series[b]]))
            for layer in range(2):
                states[layer] = lstm(model, f"stack.layers.{layer}", x, *states[layer])
                x = states[layer][0]
            mu, raw = weights["theta.weight"] @ x + weights["theta.bias"]
            assert found.given[b, t, 0].item() == pytest.approx(mu.item(), abs=1e-12)
            assert found.given[b, t, 1].item() == pytest.approx(math.log1p(math.exp(raw)) + 1e-4, abs=1e-12)


@pytest.mark.parametrize("score", [GeneralConfig(), AdditiveConfig(size=5)], ids=["general", "additive"])
def test_the_forecaster_attends_after_the_step(score: GeneralConfig | AdditiveConfig) -> None:
    """h_t -> a_t -> c_t -> h~_t = tanh(W_c [c_t; h_t]), over m_s = [h_s; z_s; x_s] inside the series."""
    config = ForecasterConfig(hidden=4, attention=GlobalConfig(score=score), likelihood="gaussian")
    model, given = built(config), window()
    found = model(given)
    weights = model.state_dict()
    for b in range(B):
        h, c = torch.zeros(4).double(), torch.zeros(4).double()
        memory, places = [], []
        for s in range(C):
            if given.past.inside[b, s]:
                seen = torch.stack((given.past.values[b, s], given.past.observed[b, s].double()))
                x = torch.cat((seen, given.past.inputs[b, s, 2:]))
                h, c = lstm(model, "encoder.layers.0", x, h, c)
                memory.append(torch.cat((h, x)))
                places.append(s)
        for t in range(T):
            h, c = lstm(model, "decoder.layers.0", given.future.inputs[b, t], h, c)
            if "attention.score.v" in weights:
                asked = weights["attention.score.W.weight"] @ h
                scores = [
                    weights["attention.score.v"] @ torch.tanh(asked + weights["attention.score.U.weight"] @ m)
                    for m in memory
                ]
            else:
                scores = [h @ (weights["attention.score.W.weight"] @ m) for m in memory]
            a = torch.stack(scores).softmax(dim=0)
            context = sum((w * m for w, m in zip(a, memory, strict=True)), torch.zeros(4 + I).double())
            said = torch.tanh(weights["W_c.weight"] @ torch.cat((context, h)))
            mu = (weights["theta.weight"] @ torch.cat((said, given.future.inputs[b, t])) + weights["theta.bias"])[0]
            assert found.given[b, t, 0].item() == pytest.approx(mu.item(), abs=1e-12)
            assert found.attention[b, t, places].tolist() == pytest.approx(a.tolist(), abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_leaves_missing_values_out(name: LikelihoodName) -> None:
    model, given = built(DeepARConfig(hidden=4, layers=1, embedding=0, likelihood=name)), window()
    given.past.values[0, 0] = given.past.values[1, 2] = 2.0
    before = model.loss(given).item()
    given.past.values[1, 2] = 777.0  # not observed
    assert model.loss(given).item() == before
    given.past.values[0, 0] = 4.0  # observed
    assert model.loss(given).item() != before


def by_hand(name: LikelihoodName, given: list[float], z: float, nu: float) -> float:
    """p(z) from the definitions, without logarithms."""
    if name == "gaussian":
        mu, sigma = given[0] * nu, given[1] * nu
        return math.exp(-((z - mu) ** 2) / (2 * sigma**2)) / math.sqrt(2 * math.pi * sigma**2)
    if name == "student-t":
        mu, sigma, f = given[0] * nu, given[1] * nu, given[2]
        constant = math.gamma((f + 1) / 2) / (math.gamma(f / 2) * math.sqrt(math.pi * f) * sigma)
        return constant * (1 + ((z - mu) / sigma) ** 2 / f) ** (-(f + 1) / 2)
    mu, a = given[0] * nu, given[1] / math.sqrt(nu)
    ways = math.gamma(z + 1 / a) / (math.gamma(z + 1) * math.gamma(1 / a))
    return ways * (1 / (1 + a * mu)) ** (1 / a) * (a * mu / (1 + a * mu)) ** z


@pytest.mark.parametrize("name", NAMES)
def test_likelihoods_are_those_of_the_paper(name: LikelihoodName) -> None:
    raw = torch.tensor([0.3, -0.2, 1.1], dtype=torch.float64)[: 3 if name == "student-t" else 2]
    given, nu = parameters(name, raw), 2.5
    for z in (0.0, 1.0, 4.0, 9.0):
        found = log_likelihood(
            name, given, torch.tensor(z / nu, dtype=torch.float64), torch.tensor(nu, dtype=torch.float64)
        )
        assert found.item() == pytest.approx(math.log(by_hand(name, given.tolist(), z, nu)), abs=1e-10)


def test_a_negative_binomial_has_the_mean_and_the_variance_of_the_paper() -> None:
    """Sums over all counts up to 400: mean mu, variance mu + mu^2 alpha."""
    given, z = torch.tensor([3.0, 0.4], dtype=torch.float64), torch.arange(400).double()
    p = log_likelihood("negative-binomial", given, z, torch.ones(400).double()).exp()
    mean = (p * z).sum().item()
    assert (p.sum().item(), mean) == pytest.approx((1.0, 3.0), abs=1e-9)
    assert (p * (z - mean) ** 2).sum().item() == pytest.approx(3 + 9 * 0.4, abs=1e-9)


@pytest.mark.parametrize("config", [DeepARConfig(hidden=4, layers=2, embedding=3), ForecasterConfig(hidden=4)])
def test_stepping_is_teacher_forcing(config: DeepARConfig | ForecasterConfig) -> None:
    model, given = built(config), window()
    whole = model(given).given[:, -T:]
    state = model.start(given.past, given.series)
    for t in range(T):
        found = model.step(given.future.inputs[:, t], state)
        state = found.state
        assert torch.allclose(found.given, whole[:, t], atol=1e-12)


@pytest.mark.parametrize("config", [DeepARConfig(hidden=4, layers=2, embedding=3), ForecasterConfig(hidden=4)])
def test_every_parameter_is_used(config: DeepARConfig | ForecasterConfig) -> None:
    model = built(config)
    model.loss(window()).backward()  # type: ignore[no-untyped-call]
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


def test_drawn_numbers_have_the_distribution_that_is_asked_for() -> None:
    """200,000 draws: quantiles of the normal (0.674490, 1.281552) and Student-t with 3 degrees (0.764892, 1.637744)."""
    from regarde.engines.draws import Noise, draw

    noise = Noise(1, ["a"], 200_000, 1)
    ones = np.ones(200_000)
    for name, free, quartile, decile in (("gaussian", 0.0, 0.674490, 1.281552), ("student-t", 3.0, 0.764892, 1.637744)):
        given = np.stack([0 * ones, ones, free * ones], axis=1)[:, : 2 if name == "gaussian" else 3]
        found = draw(name, given, noise, 0, ones)
        assert np.quantile(found, [0.5, 0.75, 0.9]) == pytest.approx([0.0, quartile, decile], abs=0.015)
    counts = draw("negative-binomial", np.stack([3 * ones, 0.4 * ones], axis=1), noise, 0, ones)
    assert (counts.mean(), counts.var()) == pytest.approx((3.0, 6.6), rel=0.03)
