"""What a search is given: limits on a hypothesis, how it must begin, and greedy, beam or sampling with their settings.

A search is called with a torch model (walk.py, beams.py); the native engine reads its settings and searches in C++.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from regarde import config
from regarde.config import Bound, Checked, Seed, Share, Size
from regarde.errors import ConfigError, UsageError
from regarde.search.hypothesis import Hypothesis
from regarde.text.tokenizers import SILENT

if TYPE_CHECKING:
    from regarde.models.interface import Encoding, Model
    from regarde.search.recording import StepObserver


@dataclass(frozen=True, eq=False)
class Prefix:
    """The first words, and what may not come right after them because it would make the last one longer."""

    ids: tuple[int, ...] = ()
    barred: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    whole: bool = False  # nothing but EOS comes after them

    def __post_init__(self) -> None:
        if any(word in SILENT for word in self.ids):
            raise UsageError(f"A prefix of ids {list(self.ids)}: control tokens cannot be generated. Use others.")


NO_PREFIX = Prefix()


@dataclass(frozen=True)
class Rules(Checked):
    """Limits on length, and forbidden words.

    A source of S tokens is answered in at most max_ratio * S + max_extra steps (EOS included on both sides), and in at
    least min_length words before EOS. A hypothesis that only EOS can continue ends earlier. Of a language model, which
    has no source (S = 1), the limit counts from the end of the prompt, and the text, prompt and EOS included, has at
    most `context` tokens.
    """

    min_length: Annotated[int, Bound(0, 10**6)] = 0  # Smallest number of tokens in a translation.
    # A translation has at most max_ratio * S + max_extra tokens for S source tokens.
    max_ratio: Annotated[float, Bound(0.0, 1000.0)] = 2.0
    max_extra: Size = 20  # Tokens that a translation may have beyond max_ratio times those of the source.
    allow_unknown: bool = True  # Allow the unknown token in translations.
    # Token that every translation begins with, as if it were certain: that of a language, of a model with several.
    first: Annotated[int, Bound(0, 10**7)] | None = None
    # Tokens of a text, prompt included, that a language model can read; inferred where it counts positions.
    context: Annotated[int, Bound(2, 10**6)] = 10**6

    def up_to(self, length: int) -> Rules:
        """The same rules for answers of at most so many tokens, whatever the source."""
        return replace(self, max_ratio=0.0, max_extra=length)

    def limit(self, source_length: int, prefix: Prefix) -> int:
        """Steps that a hypothesis may take, EOS included on both sides; a prefix leaves room for one more word."""
        steps = int(np.float32(source_length) * np.float32(self.max_ratio)) + self.max_extra
        if source_length == 1:
            return min(steps + len(prefix.ids), self.context)
        return max(steps, len(prefix.ids) + 1) if prefix.ids else steps


class SearchSettings:
    """What all searches share: each can be called with a torch model."""

    def __call__(
        self,
        model: Model,
        encoding: Encoding,
        prefixes: Sequence[Prefix] | None = None,
        observer: StepObserver | None = None,
    ) -> list[list[Hypothesis]]:
        from regarde.search.beams import SEARCHES  # torch, which the native engine does not need

        return SEARCHES[type(self)](self, model, encoding, prefixes, observer)


@dataclass(frozen=True)
class Greedy(SearchSettings):
    """The likeliest word at each step."""

    kind: Literal["greedy"] = "greedy"
    rules: Rules = field(default_factory=Rules)

    n_best: ClassVar[int] = 1
    width: ClassVar[int] = 1  # hypotheses kept side by side for a sentence


@dataclass(frozen=True)
class Sampling(Checked, SearchSettings):
    """Words drawn from the model's distribution; the result depends only on the seed and the sentence.

    top_k = 0 and top_p = 1 sample from the whole vocabulary (ancestral sampling); top_p is nucleus sampling
    (Holtzman et al. 2020).
    """

    kind: Literal["sampling"] = "sampling"
    n_best: Annotated[int, Bound(1, 100)] = 1  # Number of translations returned for a sentence, best first.
    top_k: Annotated[int, Bound(0, 10**6)] = 0  # Sample from the k most probable tokens; 0: from all.
    top_p: Share = 1.0  # Sample from the most probable tokens whose probabilities add up to p.
    temperature: Annotated[float, Bound(1e-3, 1e3)] = 1.0  # Divisor of the logits: below 1 sharper, above 1 flatter.
    seed: Seed = 1  # Seed of the random numbers that are sampled with.
    rules: Rules = field(default_factory=Rules)

    @property
    def width(self) -> int:
        return self.n_best


@dataclass(frozen=True)
class Beam(Checked, SearchSettings):
    """At each step the 2K best continuations: those that end among the first K are finished, the best K others go on.

    A sentence is done when K hypotheses are finished, or at its length limit, where open ones take the places of n_best
    that finished ones leave; a small vocabulary may know fewer. Without `early` it goes on while the best open one, if
    it ended now, would rank above the last of the K best finished ones. Hypotheses are ranked by Wu et al. 2016,
    equation 14: log-probability over length penalty (alpha), plus coverage penalty (beta); 0 switches either off.
    The penalty "power" is the length to the power of alpha, as other toolkits have it. With `cut` the K best
    continuations at the length limit are finished whether they end or not, and ranked with all others, as there.

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
    size: Annotated[int, Bound(1, 1000)] = 5  # Number of hypotheses kept at each step.
    n_best: Annotated[int, Bound(1, 1000)] = 1  # Number of translations returned for a sentence, best first.
    # Exponent of the length penalty (Wu et al. 2016); larger favors longer translations, 0: none.
    alpha: Annotated[float, Bound(0.0, 10.0)] = 0.6
    beta: Annotated[float, Bound(0.0, 100.0)] = 0.0  # Weight of the coverage penalty (Wu et al. 2016); 0: none.
    penalty: Literal["wu", "power"] = "wu"  # Length penalty of T tokens: ((5 + T) / 6)^alpha or T^alpha.
    early: bool = True  # Stop when as many are finished as are kept, without a look at whether others would be better.
    cut: bool = False  # Rank hypotheses that the length limit truncates together with finished ones, not behind them.
    # Drop hypotheses whose log-probability is this far below the best; 0: none.
    prune: Annotated[float, Bound(0.0, 1000.0)] = 0.0
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_best > self.size:
            raise ConfigError(f"n_best = {self.n_best}: expected at most the beam size, {self.size}. Widen the beam.")

    @property
    def width(self) -> int:
        return self.size


Search = Greedy | Beam | Sampling


def adjusted(
    search: Search,
    *,
    beam: int | None = None,
    n_best: int = 1,
    alpha: float | None = None,
    beta: float | None = None,
    prune: float | None = None,
) -> Search:
    """The same search with other settings; several answers need a beam at least as wide, 5 unless said."""
    given = {name: value for name, value in (("alpha", alpha), ("beta", beta), ("prune", prune)) if value is not None}
    if beam is None and n_best == search.n_best and not given:
        return search
    size = beam or max(search.width, n_best, 5 if n_best > 1 else 1)
    if size == 1:
        return Greedy(rules=search.rules)
    wide = search if isinstance(search, Beam) else Beam(rules=search.rules)
    return config.parse(Beam, config.as_table(replace(wide, size=size, n_best=n_best)) | given)
