"""transformers with a Marian model in floats: python by_transformers.py FOLDER, as regarde export writes it"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
import transformers
from protocol import Decoding, Ids, by_length, serve


class Generator:
    """made when it is first needed. Ids are theirs: their numbers do not matter to a time."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.made: transformers.MarianMTModel | None = None

    def __call__(self, sources: Sequence[Ids], decoding: Decoding) -> list[list[int]]:
        if self.made is None:
            torch.set_num_threads(1)
            self.made = transformers.MarianMTModel.from_pretrained(self.folder).eval()
        model, pad = self.made, self.made.config.pad_token_id

        def answer(some: Sequence[Ids]) -> list[list[int]]:
            longest = max(map(len, some))
            ids = torch.tensor([[*one, *[pad] * (longest - len(one))] for one in some])
            with torch.inference_mode():
                found = model.generate(
                    input_ids=ids, attention_mask=(ids != pad).long(), num_beams=decoding.beam,
                    min_new_tokens=decoding.words, max_new_tokens=decoding.most, do_sample=False,
                )  # fmt: skip
            return [row[1:] for row in found.tolist()]

        return by_length(answer, sources, decoding.batch)


if __name__ == "__main__":
    serve(Generator(sys.argv[1]))
