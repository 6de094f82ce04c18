"""One hypothesis at a time per row: greedy search and sampling are the same walk with another choice of the next word.

Axes: B rows, V vocabulary. walk.py walks in torch, the native engine in C++.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from regarde.config import Bound, Seed, Share, check
from regarde.search.hypothesis import Hypothesis
from regarde.search.rules import Rules

if TYPE_CHECKING:
    from torch import Tensor

    from regarde.models.interface import Encoding, Model
    from regarde.search.prefix import Prefix
    from regarde.search.watch import Watching


@dataclass(frozen=True)
class Greedy:
    """The likeliest word at each step."""

    kind: Literal["greedy"] = "greedy"
    rules: Rules = field(default_factory=Rules)

    n_best: ClassVar[int] = 1
    width: ClassVar[int] = 1  # hypotheses kept side by side for a sentence

    def __call__(
        self,
        model: Model,
        encoding: Encoding,
        prefixes: Sequence[Prefix] | None = None,
        watch: Watching | None = None,
    ) -> list[list[Hypothesis]]:
        from regarde.search.walk import walk  # torch, which a translator need not have

        walked = walk(model, encoding, self.rules, lambda scores, _: scores.argmax(dim=-1), prefixes, watch)
        return [[hypothesis] if hypothesis else [] for hypothesis in walked]


@dataclass(frozen=True)
class Sampling:
    """Words drawn from the model's own distribution; what comes out depends on the seed and the sentence alone.

    top_k = 0 and top_p = 1 sample from the whole vocabulary (ancestral sampling); top_p is nucleus sampling
    (Holtzman et al. 2020).
    """

    kind: Literal["sampling"] = "sampling"
    n_best: Annotated[int, Bound(1, 100)] = 1  # how many samples; best first
    top_k: Annotated[int, Bound(0, 10**6)] = 0
    top_p: Share = 1.0
    temperature: Annotated[float, Bound(1e-3, 1e3)] = 1.0
    seed: Seed = 1
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        check(self)

    @property
    def width(self) -> int:
        return self.n_best

    def __call__(
        self,
        model: Model,
        encoding: Encoding,
        prefixes: Sequence[Prefix] | None = None,
        watch: Watching | None = None,
    ) -> list[list[Hypothesis]]:
        import torch

        from regarde.search.walk import walk

        sentences = [ids[mask].tolist() for ids, mask in zip(encoding.source.ids, encoding.source.mask, strict=True)]
        dice = [np.random.default_rng([self.seed, n, *ids]) for ids in sentences for n in range(self.n_best)]

        def choose(scores: Tensor, numbers: list[int]) -> Tensor:
            cumulated = self.narrowed(scores).double().softmax(dim=-1).cumsum(dim=-1)  # (B, V)
            thrown = torch.tensor([[dice[number].random()] for number in numbers], dtype=torch.float64)
            drawn = torch.searchsorted(cumulated, thrown.to(scores.device) * cumulated[:, -1:], right=True)
            return drawn.squeeze(1).clamp_max(scores.shape[1] - 1)

        own = None if prefixes is None else [prefix for prefix in prefixes for _ in range(self.n_best)]
        walked = walk(model, encoding.repeat(self.n_best), self.rules, choose, own, watch)
        groups = [walked[i : i + self.n_best] for i in range(0, len(walked), self.n_best)]
        whole = [[hypothesis for hypothesis in group if hypothesis] for group in groups]
        return [sorted(group, key=lambda h: -h.score) if len(group) == self.n_best else [] for group in whole]

    def narrowed(self, scores: Tensor) -> Tensor:
        """Log-probabilities with everything outside top-k and nucleus at -inf.  (B, V) -> (B, V)"""
        import torch

        scores = scores / self.temperature
        if self.top_k:
            least = scores.topk(min(self.top_k, scores.shape[-1]), dim=-1).values[:, -1:]
            scores = scores.masked_fill(scores < least, float("-inf"))
        if self.top_p < 1:
            ordered, order = scores.softmax(dim=-1).sort(dim=-1, descending=True)
            before = ordered.cumsum(dim=-1) - ordered  # the word that crosses top_p still belongs to the nucleus
            outside = torch.zeros_like(order, dtype=torch.bool).scatter(1, order, before >= max(self.top_p, 1e-9))
            scores = scores.masked_fill(outside, float("-inf"))
        return scores
