"""How long a training lasts: steps, target tokens or minutes, whichever is used up first.

A schedule wants to know how many steps there will be. With steps alone that is given; with tokens or minutes it is told
from the share that is spent: after 300 steps in a third of the time, 900.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from regarde.training.checkpoint import State
from regarde.training.recipe import TrainingConfig

UNKNOWN = 10**9  # steps, as long as nothing is spent


@dataclass(frozen=True)
class Budget:
    """What a training may spend; 0 = no limit."""

    steps: int
    tokens: int = 0
    minutes: float = 0.0

    @classmethod
    def of(cls, training: TrainingConfig) -> Budget:
        return cls(training.steps, training.tokens, training.minutes)

    def share(self, state: State) -> float:
        """How much of it is spent, 1 when it is all."""
        shares = [(state.step, self.steps), (state.seen, self.tokens), (state.trained, self.minutes * 60)]
        return max(spent / limit for spent, limit in shares if limit)

    def total(self, state: State) -> int:
        """The steps there will be, as far as it can be told."""
        if not self.tokens and not self.minutes:
            return self.steps
        share = self.share(state)
        return max(state.step + 1, math.ceil(state.step / share)) if share else self.steps or UNKNOWN
