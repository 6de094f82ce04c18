"""Beam search, as it is asked for; beams.py does it in torch, the native engine in C++."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from regarde.config import Bound, check
from regarde.errors import ConfigError
from regarde.search.hypothesis import Hypothesis
from regarde.search.rules import Rules

if TYPE_CHECKING:
    from regarde.models.interface import Encoding, Model
    from regarde.search.prefix import Prefix
    from regarde.search.watch import Watching


@dataclass(frozen=True)
class Beam:
    """At each step the 2K best continuations: those that end among the first K are finished, the best K others go on.

    A sentence is done when K hypotheses are finished, or at its length limit, where open ones take the places of n_best
    that finished ones leave; a small vocabulary may know fewer. Hypotheses are ranked by Wu et al. 2016,
    equation 14: log-probability over length penalty (alpha), plus coverage penalty (beta); 0 switches either off.

    prune is the beamsize of Wu et al., section 7 (3.0 there); 0 switches it off. It prunes twice:

    1. At each step a word is considered only if its log-probability is at most prune below that of the likeliest word
       of the step. The paper does not say whether each hypothesis has a likeliest word of its own; here there is one
       for the sentence, over all its open hypotheses.
    2. A finished hypothesis is dropped if its score by equation 14 is more than prune below the best finished one. The
       paper compares finished hypotheses only, because others have no such score, and says that this ends the search
       early. Here an open hypothesis is dropped when no continuation of it could be kept: when its log-probability over
       the length penalty of the longest answer allowed, a bound on its final score, is that far below.

    With prune there may be fewer than n_best hypotheses.
    """

    kind: Literal["beam"] = "beam"
    size: Annotated[int, Bound(1, 1000)] = 5
    n_best: Annotated[int, Bound(1, 1000)] = 1
    alpha: Annotated[float, Bound(0.0, 10.0)] = 0.6
    beta: Annotated[float, Bound(0.0, 100.0)] = 0.0
    prune: Annotated[float, Bound(0.0, 1000.0)] = 0.0
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        check(self)
        if self.n_best > self.size:
            raise ConfigError(f"n_best = {self.n_best}: expected at most the beam size, {self.size}. Widen the beam.")

    @property
    def width(self) -> int:
        return self.size

    def __call__(
        self,
        model: Model,
        encoding: Encoding,
        prefixes: Sequence[Prefix] | None = None,
        watch: Watching | None = None,
    ) -> list[list[Hypothesis]]:
        from regarde.search.beams import BeamSearch  # torch, which a translator need not have

        return BeamSearch(self)(model, encoding, prefixes, watch)
