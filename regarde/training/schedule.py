"""How the learning rate moves: a factor on the optimiser's rate, a pure function of the step.

`at(step, total)`: step counts from 0 to total - 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from regarde.config import Count, Positive, Share


@dataclass(frozen=True)
class Constant:
    """Always the same, after a linear warm-up."""

    kind: Literal["constant"] = "constant"
    warmup: Count = 0

    def at(self, step: int, total: int) -> float:
        return _warm(step, self.warmup)


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from 1 down to `floor` at the last step."""

    kind: Literal["cosine"] = "cosine"
    warmup: Count = 0
    floor: Share = 0.0

    def at(self, step: int, total: int) -> float:
        done = (step - self.warmup) / max(1, total - self.warmup)
        fall = 0.5 * (1 + math.cos(math.pi * min(1.0, max(0.0, done))))
        return _warm(step, self.warmup) * (self.floor + (1 - self.floor) * fall)


@dataclass(frozen=True)
class InverseSqrt:
    """Vaswani et al. 2017, equation 3, scaled to 1 at the end of the warm-up: min(n / w, sqrt(w / n))."""

    kind: Literal["inverse-sqrt"] = "inverse-sqrt"
    warmup: Count = 4000

    def at(self, step: int, total: int) -> float:
        n, w = step + 1, max(1, self.warmup)
        return min(n / w, math.sqrt(w / n))


@dataclass(frozen=True)
class Halving:
    """1 up to a share of training, then halved again and again.

    Sutskever et al. 2014 halve each half epoch after 5 of 7.5: as shares of all steps, 5 / 7.5 and 0.5 / 7.5.
    """

    kind: Literal["halving"] = "halving"
    after: Share = 5 / 7.5
    every: Positive = 0.5 / 7.5

    def at(self, step: int, total: int) -> float:
        done = step / max(1, total)
        return 1.0 if done < self.after else float(0.5 ** (1 + math.floor((done - self.after) / self.every)))


ScheduleConfig = Constant | Cosine | InverseSqrt | Halving


def _warm(step: int, warmup: int) -> float:
    return min(1.0, (step + 1) / warmup) if warmup else 1.0
