"""transformers with a Marian model in floats: python by_transformers.py FOLDER, as regarde export writes it"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
import transformers
from asked import Asked, Ids, by_length, serve


class Generator:
    """Made when it is first asked for. Ids are theirs: their numbers do not matter to a time."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.made: transformers.MarianMTModel | None = None

    def __call__(self, sources: Sequence[Ids], asked: Asked) -> list[list[int]]:
        if self.made is None:
            torch.set_num_threads(1)
            self.made = transformers.MarianMTModel.from_pretrained(self.folder).eval()
        model, pad = self.made, self.made.config.pad_token_id

        def answer(some: Sequence[Ids]) -> list[list[int]]:
            longest = max(map(len, some))
            ids = torch.tensor([[*one, *[pad] * (longest - len(one))] for one in some])
            with torch.inference_mode():
                found = model.generate(
                    input_ids=ids, attention_mask=(ids != pad).long(), num_beams=asked.beam,
                    min_new_tokens=asked.words, max_new_tokens=asked.most, do_sample=False,
                )  # fmt: skip
            return [row[1:] for row in found.tolist()]

        return by_length(answer, sources, asked.batch)


if __name__ == "__main__":
    serve(Generator(sys.argv[1]))
