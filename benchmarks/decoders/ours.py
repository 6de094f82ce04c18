"""Our own two engines as decoders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from decoders.asked import Asked, Decoded, Ids, by_length, timed
from safetensors.numpy import load_file

from regarde import config, loading, precision
from regarde.engines.native import NativeEngine, flattened
from regarde.search import Beam, Greedy, Hypothesis, Search
from regarde.search.rules import Rules


def search_of(asked: Asked) -> Search:
    """What was asked, in our words; a beam ranks by log-probability alone, which every tool knows."""
    rules = Rules(min_length=asked.words, max_ratio=0.0, max_extra=asked.most)
    return Greedy(rules=rules) if asked.beam == 1 else Beam(size=asked.beam, alpha=0.0, rules=rules)


class Native:
    """The native engine in both precisions."""

    def __init__(self, folder: Path) -> None:
        self.engines = {int8: engine(folder, int8=int8) for int8 in (False, True)}

    def hypotheses(self, sources: Sequence[Ids], asked: Asked) -> list[Hypothesis]:
        chosen, search = self.engines[asked.int8], search_of(asked)
        chosen.rows = asked.batch * search.width
        calls = [sources] if asked.batch > 1 else [[source] for source in sources]
        return [found[0] for call in calls for found in chosen.decode(call, search)]

    def __call__(self, sources: Sequence[Ids], asked: Asked) -> Decoded:
        return timed(lambda given, asked: [list(one.ids) for one in self.hypotheses(given, asked)], sources, asked)


def engine(folder: Path, *, int8: bool) -> NativeEngine:
    text = loading.load(folder, engine="native").text
    sizes = {"source": len(text.source), "target": len(text.target)}
    settings = flattened({"model": config.read(folder / "config.toml")["model"], "vocabulary": sizes})
    tensors = load_file(folder / "weights.safetensors")
    return NativeEngine(settings, precision.in_bytes(tensors) if int8 else tensors)


class Torch:
    """The reference engine."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)
        self.engine = loading.load(folder, engine="torch").engine

    def hypotheses(self, sources: Sequence[Ids], asked: Asked) -> list[Hypothesis]:
        search = search_of(asked)
        return by_length(lambda part: [one[0] for one in self.engine.decode(part, search)], sources, asked.batch)

    def __call__(self, sources: Sequence[Ids], asked: Asked) -> Decoded:
        return timed(lambda given, asked: [list(one.ids) for one in self.hypotheses(given, asked)], sources, asked)
