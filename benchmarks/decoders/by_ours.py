"""Our engine in a process of its own, whose memory can be measured: python by_ours.py FLOAT32_FOLDER INT8_FOLDER"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from protocol import Decoding, Ids, serve
from searching import search_of

from regarde.engines.native import NativeEngine
from regarde.folder.loading import load


class Engines:
    """One for each precision, made when it is first needed."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = folders
        self.made: dict[bool, NativeEngine] = {}

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> list[list[int]]:
        if decoding.int8 not in self.made:
            self.made[decoding.int8] = load(self.folders[decoding.int8], engine="native").engine
        engine, search = self.made[decoding.int8], search_of(decoding)
        engine.rows = decoding.batch * search.width
        calls = [sources] if decoding.batch > 1 else [[source] for source in sources]
        return [list(found[0].ids) for call in calls for found in engine.decode(call, search)]


if __name__ == "__main__":
    serve(Engines(sys.argv[1:]))
