"""The reference engine: torch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from regarde.alignment.forced import forced
from regarde.data.batch import collate, collate_source
from regarde.data.sampling import ordered
from regarde.models.ensemble import Ensemble
from regarde.models.interface import Model
from regarde.search import Hypothesis, Search
from regarde.search.intervening import Intervening
from regarde.search.interventions import Intervention
from regarde.search.prefix import NO_PREFIX, Prefix
from regarde.search.trace import Step
from regarde.search.walk import follow
from regarde.search.watch import Watch

WINDOW = 256  # sentences looked at together, so that like lengths share a batch
BATCH_TOKENS = 8192  # source positions in a batch, times the hypotheses kept for each


class TorchEngine:
    """The reference: any model, on any device torch has."""

    name = "torch"

    def __init__(self, model: Model) -> None:
        self.model = model.eval()
        self.device = next(model.parameters()).device

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
                encoding = self.model.encode(batch)
                found |= zip(rows.tolist(), search(self.model, encoding, [begin[row] for row in rows]), strict=True)
            yield from (found[row] for row in range(len(window)))

    def joined(self, others: Sequence[TorchEngine], offsets: Sequence[int]) -> TorchEngine:
        """This and others as one; the models know their offsets."""
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
    ) -> tuple[tuple[Step, ...], list[Hypothesis]]:
        encoding = self.model.encode(collate_source([source]).to(self.device))
        decoder = self.model.decoder
        with Watch(decoder, candidates) as watch, Intervening(decoder, interventions, len(source) + 1):
            if target is None:
                (found,) = search(self.model, encoding, [prefix], watch)
            else:
                found = [follow(self.model, encoding, target, watch)]
        return tuple(watch.steps), found

    @torch.no_grad()
    def states(self, source: Sequence[int]) -> NDArray[np.float32] | None:
        if isinstance(self.model, Ensemble):
            return None
        (states,) = self.model.encode(collate_source([source]).to(self.device)).states
        found: NDArray[np.float32] = states.float().cpu().numpy()
        return found

    def forced(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Hypothesis]:
        """What the model thinks of given words; targets are given with EOS."""
        lengths = np.array([len(source) + len(target) + 1 for source, target in zip(sources, targets, strict=True)])
        found: dict[int, Hypothesis] = {}
        for rows in ordered(lengths, pairs=WINDOW, tokens=BATCH_TOKENS):
            batch = collate([sources[row] for row in rows], [targets[row][:-1] for row in rows]).to(self.device)
            found |= zip(rows.tolist(), forced(self.model, batch), strict=True)
        return [found[row] for row in range(len(sources))]
