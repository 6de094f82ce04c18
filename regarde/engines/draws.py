"""Drawing values from the distributions of models/likelihoods.py, with numpy alone.

Axes: R rows, each a path of a series; P parameters.

A row has two uniform numbers for each step, W in (0, 1] and V in [0, 1). The formula of Box and Muller 1958 turns them
into a normal number, that of Bailey 1994 into a Student-t number, without rejection. So a drawn value is a smooth
function of the parameters, and two engines with the same noise agree.

    normal       sqrt(-2 ln W) cos 2 pi V            student-t    sqrt(f (W^(-2/f) - 1)) cos 2 pi V

A negative binomial count is a Poisson number whose rate has a gamma distribution, both drawn by the numpy generator of
the series.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
SMALLEST = 1e-4  # as in models/likelihoods.py
LARGEST_RATE = 1e9  # of a Poisson number; numpy raises an error for rates near 2^63


class Noise:
    """The random numbers of the paths of some series: a function of (seed, name of the series)."""

    def __init__(self, seed: int, ids: Sequence[str], paths: int, steps: int) -> None:
        self.paths = paths
        self._generators = [np.random.default_rng((seed, zlib.crc32(one.encode()))) for one in ids]
        drawn = [generator.random((paths, steps, 2)) for generator in self._generators]
        self.uniform = np.concatenate(drawn) if drawn else np.zeros((0, steps, 2))  # (R, T, 2)

    def counts(self, mean: Numbers, shape: Numbers) -> Numbers:
        """Negative binomial numbers.  (R,), (R,) -> (R,)"""
        found = np.empty(len(mean))
        for i, generator in enumerate(self._generators):
            own = slice(i * self.paths, (i + 1) * self.paths)
            rate = generator.standard_gamma(1 / shape[own]) * shape[own] * mean[own]
            found[own] = generator.poisson(np.minimum(rate, LARGEST_RATE))
        return found


def softplus(x: Numbers) -> Numbers:
    return np.logaddexp(0.0, x)


def parameters(name: str, raw: NDArray[np.floating[Any]]) -> Numbers:
    """Outputs of a linear layer -> parameters of z / nu.  (R, P) -> (R, P)"""
    given = raw.astype(np.float64)
    given[:, 1] = softplus(given[:, 1]) + SMALLEST
    if name == "negative-binomial":
        given[:, 0] = softplus(given[:, 0]) + SMALLEST
    elif name == "student-t":
        given[:, 2] = 2 + softplus(given[:, 2])
    return given


def draw(name: str, given: Numbers, noise: Noise, step: int, scale: Numbers) -> Numbers:
    """A value of z / nu for each row.  (R, P), (R,) -> (R,)"""
    if name == "negative-binomial":
        return noise.counts(given[:, 0] * scale, given[:, 1] / np.sqrt(scale)) / scale
    radius = np.maximum(1.0 - noise.uniform[:, step, 0], 1e-300)  # W
    turned = np.cos(2 * np.pi * noise.uniform[:, step, 1])
    if name == "gaussian":
        normal: Numbers = np.sqrt(-2 * np.log(radius)) * turned
        return given[:, 0] + given[:, 1] * normal
    free = given[:, 2]
    drawn: Numbers = given[:, 0] + given[:, 1] * np.sqrt(free * np.expm1(-2 / free * np.log(radius))) * turned
    return drawn
