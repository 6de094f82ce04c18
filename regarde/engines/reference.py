"""The reference engine: torch."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from regarde.attention.normalizers import NORMALIZERS
from regarde.data.batch import Batch, collate, collate_source
from regarde.data.sampling import ordered
from regarde.models.ensemble import Ensemble
from regarde.models.interface import Model
from regarde.search import Hypothesis, Search
from regarde.search.intervening import Intervening
from regarde.search.interventions import Intervention
from regarde.search.recording import StepRecorder
from regarde.search.settings import NO_PREFIX, Prefix
from regarde.search.trace import SearchStep
from regarde.search.walk import follow

if TYPE_CHECKING:
    from regarde.engines.queued import QueuedEngine

WINDOW = 256  # sentences sorted together, so that similar lengths share a batch
BATCH_TOKENS = 8192  # source positions in a batch, times the hypotheses kept for each


class TorchEngine:
    """The reference: any model, on any device torch has."""

    name = "torch"

    def __init__(self, model: Model) -> None:
        self.model = model.eval()
        self.device = next(model.parameters()).device
        self.alone = threading.Lock()  # a trace uses hooks on the model: nothing else may run meanwhile

    @functools.cached_property
    @torch.no_grad()
    def _shape(self) -> tuple[int, int]:
        past = self.model.decoder.start(self.model.encode(collate_source([[]]).to(self.device))).past
        return past.shape[1], past.shape[2]

    @property
    def layers(self) -> int:
        """The number of attention layers."""
        return self._shape[0]

    @property
    def heads(self) -> int:
        """The number of heads in each layer."""
        return self._shape[1]

    @property
    def carries(self) -> bool:
        return self.model.decoder.carries

    @property
    def formulas(self) -> Mapping[str, str]:
        """What the model computes, as its classes state it; an ensemble has none."""
        if isinstance(self.model, Ensemble):
            return {}
        found = {**self.model.encoder.formulas, **self.model.decoder.formulas}
        for attention in self.model.decoder.attentions()[:1]:  # those of other layers are like the first
            weights = "" if attention.normalizer is None else NORMALIZERS[attention.normalizer].formula
            found |= {"score": attention.score.formula, "weights": weights, **attention.formulas}
        return {name: formula for name, formula in found.items() if formula}

    def continuous(self, *, threads: int = 1) -> QueuedEngine:
        """The engine as a server uses it."""
        from regarde.engines.queued import QueuedEngine

        return QueuedEngine(self, threads=threads)

    @torch.no_grad()
    def decode(
        self, sources: Iterable[Sequence[int]], search: Search, prefixes: Iterable[Prefix] | None = None
    ) -> Iterator[list[Hypothesis]]:
        stream, openings = iter(sources), itertools.repeat(NO_PREFIX) if prefixes is None else iter(prefixes)
        while window := list(itertools.islice(stream, WINDOW)):
            begin = list(itertools.islice(openings, len(window)))
            lengths = np.array([len(source) + 1 for source in window])
            found: dict[int, list[Hypothesis]] = {}
            for rows in ordered(lengths, pairs=WINDOW, tokens=max(1, BATCH_TOKENS // search.width)):
                batch = collate_source([window[row] for row in rows]).to(self.device)
                with self.alone:
                    hypotheses = search(self.model, self.model.encode(batch), [begin[row] for row in rows])
                found |= zip(rows.tolist(), hypotheses, strict=True)
            yield from (found[row] for row in range(len(window)))

    def joined(self, others: Sequence[TorchEngine], offsets: Sequence[int]) -> TorchEngine:
        """An ensemble of this and others."""
        return TorchEngine(Ensemble([engine.model for engine in (self, *others)]))

    @torch.no_grad()
    def trace(
        self,
        source: Sequence[int],
        search: Search,
        candidates: int,
        *,
        prefix: Prefix = NO_PREFIX,
        target: Sequence[int] | None = None,
        interventions: Sequence[Intervention] = (),
    ) -> tuple[tuple[SearchStep, ...], list[Hypothesis]]:
        decoder = self.model.decoder
        intervening = Intervening(decoder, interventions, len(source) + 1)
        with self.alone, StepRecorder(decoder, candidates) as observer, intervening:
            encoding = self.model.encode(collate_source([source]).to(self.device))
            if target is None:
                (found,) = search(self.model, encoding, [prefix], observer)
            else:
                found = [follow(self.model, encoding, target, observer)]
        return tuple(observer.steps), found

    @torch.no_grad()
    def states(self, source: Sequence[int]) -> NDArray[np.float32] | None:
        if isinstance(self.model, Ensemble):
            return None
        (states,) = self.model.encode(collate_source([source]).to(self.device)).states
        found: NDArray[np.float32] = states.float().cpu().numpy()
        return found

    def forced(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Hypothesis]:
        """Score given targets, which end in EOS."""
        lengths = np.array([len(source) + len(target) + 1 for source, target in zip(sources, targets, strict=True)])
        found: dict[int, Hypothesis] = {}
        for rows in ordered(lengths, pairs=WINDOW, tokens=BATCH_TOKENS):
            batch = collate([sources[row] for row in rows], [targets[row][:-1] for row in rows]).to(self.device)
            with self.alone:
                found |= zip(rows.tolist(), forced(self.model, batch), strict=True)
        return [found[row] for row in range(len(sources))]


@torch.no_grad()
def forced(model: Model, batch: Batch) -> list[Hypothesis]:
    """The targets of a batch as hypotheses, by forced decoding: their scores and their attention."""
    encoding = model.encode(batch.source)
    decoder = model.decoder
    logits, state = decoder.unroll(batch.previous, decoder.start(encoding), decoder.remember(encoding))
    log_probabilities = logits.float().log_softmax(dim=-1)  # (B, T, V)
    token_scores = log_probabilities.gather(2, batch.target_ids.unsqueeze(2)).squeeze(2)  # (B, T)
    hypotheses = []
    sizes = zip(encoding.source.lengths.tolist(), batch.target_mask.sum(dim=1).tolist(), strict=True)
    for row, (S, T) in enumerate(sizes):
        scores = token_scores[row, :T].cpu().numpy()
        hypotheses.append(
            Hypothesis(
                ids=tuple(batch.target_ids[row, :T].tolist()),
                token_scores=scores,
                score=float(scores.sum()),
                heads=state.past[row, ..., :T, : decoder.width(S, T)].cpu().numpy(),
                finished=True,
                p_gen=None if state.p_gen is None else state.p_gen[row, :T].cpu().numpy(),
            )
        )
    return hypotheses
