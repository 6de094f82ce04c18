"""Our own two engines as decoders."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from decoders.asked import Asked, Decoded, Ids, by_length, timed
from decoders.searching import search_of

from regarde.folder import loading
from regarde.folder.quantize import quantize
from regarde.search import Hypothesis


class Native:
    """The native engine in both precisions."""

    def __init__(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory() as place:
            in_bytes = Path(place) / "int8"
            quantize(folder, in_bytes)
            folders = {False: folder, True: in_bytes}
            self.engines = {int8: loading.load(one, engine="native").engine for int8, one in folders.items()}

    def hypotheses(self, sources: Sequence[Ids], asked: Asked) -> list[Hypothesis]:
        chosen, search = self.engines[asked.int8], search_of(asked)
        chosen.rows = asked.batch * search.width
        calls = [sources] if asked.batch > 1 else [[source] for source in sources]
        return [found[0] for call in calls for found in chosen.decode(call, search)]

    def __call__(self, sources: Sequence[Ids], asked: Asked) -> Decoded:
        return timed(lambda given, asked: [list(one.ids) for one in self.hypotheses(given, asked)], sources, asked)


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
