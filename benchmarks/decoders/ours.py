"""Our own two engines as decoders."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from decoders.protocol import Decoded, Decoding, Ids, by_length, timed
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

    def hypotheses(self, sources: Sequence[Ids], decoding: Decoding) -> list[Hypothesis]:
        chosen, search = self.engines[decoding.int8], search_of(decoding)
        chosen.rows = decoding.batch * search.width
        calls = [sources] if decoding.batch > 1 else [[source] for source in sources]
        return [found[0] for call in calls for found in chosen.decode(call, search)]

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> Decoded:
        return timed(
            lambda given, decoding: [list(one.ids) for one in self.hypotheses(given, decoding)], sources, decoding
        )


class Torch:
    """The reference engine."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)
        self.engine = loading.load(folder, engine="torch").engine

    def hypotheses(self, sources: Sequence[Ids], decoding: Decoding) -> list[Hypothesis]:
        search = search_of(decoding)
        return by_length(lambda part: [one[0] for one in self.engine.decode(part, search)], sources, decoding.batch)

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> Decoded:
        return timed(
            lambda given, decoding: [list(one.ids) for one in self.hypotheses(given, decoding)], sources, decoding
        )
