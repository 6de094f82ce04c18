"""Distributions of the next value, and how their parameters are computed from the outputs of a network.

Axes: B batch, T steps, P parameters of a distribution, H hidden.

z is the value, nu the scale of its window. The network's outputs are for z / nu (Salinas et al. 2020, sections 3.1 and
3.3).

    gaussian            mu = w . h + b        sigma = softplus(w' . h + b')                   z ~ N(nu mu, (nu sigma)^2)
    student-t           the same, and 2 + softplus(w'' . h + b'') degrees of freedom (Alexandrov et al. 2020)
    negative-binomial   mu = softplus(w . h + b), alpha = softplus(w' . h + b'); of counts z with mean nu mu and
                        shape alpha / sqrt(nu): variance mu + mu^2 alpha

engines/draws.py draws values from them, without torch.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

LikelihoodName = Literal["gaussian", "student-t", "negative-binomial"]
PARAMETERS: dict[LikelihoodName, int] = {"gaussian": 2, "student-t": 3, "negative-binomial": 2}
SMALLEST = 1e-4  # sigma and alpha: without it, a constant series would have an infinite likelihood


def parameters(name: LikelihoodName, raw: Tensor) -> Tensor:
    """Outputs of a linear layer -> parameters of z / nu.  (…, P) -> (…, P)"""
    first, spread = raw[..., 0], functional.softplus(raw[..., 1]) + SMALLEST
    if name == "negative-binomial":
        return torch.stack((functional.softplus(first) + SMALLEST, spread), dim=-1)
    if name == "gaussian":
        return torch.stack((first, spread), dim=-1)
    return torch.stack((first, spread, 2 + functional.softplus(raw[..., 2])), dim=-1)


def log_likelihood(name: LikelihoodName, given: Tensor, scaled: Tensor, scale: Tensor) -> Tensor:
    """log p(z) of z = scaled * scale, in nats.  (…, P), (…), (…) -> (…)"""
    if name == "negative-binomial":
        return _negative_binomial(given, scaled * scale, scale)
    centered = (scaled - given[..., 0]) / given[..., 1]
    spread = given[..., 1].log() + scale.log()
    if name == "gaussian":
        return -0.5 * centered.square() - spread - 0.5 * math.log(2 * math.pi)
    free = given[..., 2]
    constant = torch.lgamma((free + 1) / 2) - torch.lgamma(free / 2) - 0.5 * (free * math.pi).log()
    return constant - spread - (free + 1) / 2 * torch.log1p(centered.square() / free)


def _negative_binomial(given: Tensor, z: Tensor, scale: Tensor) -> Tensor:
    """log Gamma(z + 1/a) / (Gamma(z + 1) Gamma(1/a)) + 1/a log 1/(1 + a mu) + z log a mu / (1 + a mu)"""
    mu, a = given[..., 0] * scale, given[..., 1] / scale.sqrt()
    times = a * mu
    ways = torch.lgamma(z + 1 / a) - torch.lgamma(z + 1) - torch.lgamma(1 / a)
    return ways - torch.log1p(times) / a + z * (times.log() - torch.log1p(times))
