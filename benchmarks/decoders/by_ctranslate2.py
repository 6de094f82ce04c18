"""CTranslate2: python by_ctranslate2.py FLOAT32_FOLDER INT8_FOLDER, as regarde.interop.ctranslate2 writes them

Beam search goes on until as many hypotheses have ended as the beam is wide, as ours does, and as CTranslate2 does
unless its length penalty is exactly 0. So the penalty is a number so small that it changes no score.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import ctranslate2
from protocol import Decoding, Ids, serve

NO_PENALTY = 1e-9


def vocabulary(folder: Path, side: str) -> list[str]:
    shared = folder / "shared_vocabulary.json"
    found: list[str] = json.loads((shared if shared.exists() else folder / f"{side}_vocabulary.json").read_text())
    return found


class Translators:
    """One for each precision, made when it is first needed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders
        self.source, target = (vocabulary(folders[0], side) for side in ("source", "target"))
        self.ids = {token: number for number, token in enumerate(target)}
        self.made: dict[bool, ctranslate2.Translator] = {}

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> list[list[int]]:
        if decoding.int8 not in self.made:
            self.made[decoding.int8] = ctranslate2.Translator(
                str(self.folders[decoding.int8]), compute_type="int8" if decoding.int8 else "float32", intra_threads=1,
                inter_threads=1,
            )  # fmt: skip
        translator = self.made[decoding.int8]
        questions = [[self.source[number] for number in source] for source in sources]
        found = []
        for calls in [questions] if decoding.batch > 1 else [[question] for question in questions]:
            found += translator.translate_batch(
                calls, max_batch_size=decoding.batch, beam_size=decoding.beam, length_penalty=NO_PENALTY,
                return_end_token=True, min_decoding_length=decoding.words, max_decoding_length=decoding.most,
            )  # fmt: skip
        return [[self.ids[token] for token in answer.hypotheses[0]] for answer in found]


def main() -> None:
    serve(Translators([Path(folder) for folder in sys.argv[1:]]))


if __name__ == "__main__":
    main()
