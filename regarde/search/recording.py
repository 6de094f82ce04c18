"""Records a search in torch step by step. Hooks read what attentions compute: without a recorder they cost nothing.

Axes: B rows, V vocabulary, L attention layers, N heads, S source, t steps so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from regarde.attention.interface import Attention
from regarde.models.interface import Decoder, State
from regarde.search.trace import Branch, Candidate, Continuation, SearchStep, Weights


@dataclass(frozen=True)
class OpenHypothesis:
    """An open hypothesis before the step, as in `Branch`."""

    parent: int | None
    id: int
    score: float


class StepObserver(Protocol):
    """Receives each step of a search for one sentence."""

    def step(self, rows: Sequence[OpenHypothesis], scores: Tensor, state: State, ways: Sequence[Continuation]) -> None:
        """The open hypotheses before the step, the state after it, and how each of them continues."""


class StepRecorder:
    """Inside, energies and contexts of each decoder step are recorded, and each step of a search is a `SearchStep`."""

    def __init__(self, decoder: Decoder[Any, Any], candidates: int) -> None:
        self.steps: list[SearchStep] = []
        self._candidates = candidates
        self._attentions = decoder.attentions()
        self._energies: list[Tensor] = []  # of each layer (B, N, S)
        self._norms: list[Tensor] = []  # of each layer (B,)
        self._hooks: list[RemovableHandle] = []

    def __enter__(self) -> StepRecorder:
        for attention in self._attentions:
            self._hooks.append(attention.score.register_forward_hook(self._scored(attention)))
            self._hooks.append(attention.register_forward_hook(self._attended))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for hook in self._hooks:
            hook.remove()

    def step(self, rows: Sequence[OpenHypothesis], scores: Tensor, state: State, ways: Sequence[Continuation]) -> None:
        """One step of a search: the rows that are open come first in scores (B, V) and the state."""
        past = state.past  # (B, L, N, t, S)
        known = len(self._attentions) == past.shape[1]  # not for an ensemble, whose attention is a mean of others'
        for noted in (self._energies, self._norms):
            del noted[: -len(self._attentions)]  # a decoder that computes its best answer has looked before
        weights = _array(past[: len(rows), ..., -1, :])
        branches = []
        for i, row in enumerate(rows):
            energies = np.stack([_array(layer[i]) for layer in self._energies]) if self._energies else weights[i]
            unseen = weights.shape[-1] - energies.shape[-1]  # words that a language model has lost sight of
            energies = np.pad(energies, ((0, 0), (0, 0), (unseen, 0)), constant_values=-np.inf)
            norms = np.array([float(layer[i]) for layer in self._norms], dtype=np.float32)
            branches.append(
                Branch(
                    parent=row.parent,
                    id=row.id,
                    score=row.score,
                    energies=energies if known else None,
                    weights=weights[i],
                    context_norms=norms if known else None,
                    candidates=self._likeliest(scores[i]),
                    p_gen=None if state.p_gen is None else float(state.p_gen[i, -1]),
                )
            )
        self.steps.append(SearchStep(tuple(branches), tuple(ways)))
        self._energies.clear()
        self._norms.clear()

    def _likeliest(self, scores: Tensor) -> tuple[Candidate, ...]:
        best, ids = scores.topk(min(self._candidates, len(scores)))
        pairs = zip(ids.tolist(), best.tolist(), strict=True)
        return tuple(Candidate(word, score) for word, score in pairs if score > -np.inf)

    def _scored(self, attention: Attention) -> Callable[..., None]:
        def note(_module: Any, _given: Any, scores: Tensor) -> None:  # (B N, 1, S)
            self._energies.append(attention.energies(scores).reshape(-1, attention.heads, scores.shape[-1]))

        return note

    def _attended(self, _module: Any, _given: Any, answer: tuple[Tensor, Tensor]) -> None:
        self._norms.append(answer[0].squeeze(1).norm(dim=-1))  # of contexts (B, 1, D)


def _array(tensor: Tensor) -> Weights:
    array: Weights = tensor.float().cpu().numpy().copy()
    return array
