"""A model folder -> the same model with its matrices in bytes (precision.py). This needs no torch."""

from __future__ import annotations

from pathlib import Path

import safetensors.numpy

from regarde import config
from regarde.engines.native import Unfit
from regarde.errors import DiskError, FolderError, UsageError
from regarde.folder import manifest
from regarde.folder.loading import Weights, read_config
from regarde.folder.manifest import ADDED, CARD, CONFIG, HISTORY, TOKENIZERS, WEIGHTS
from regarde.folder.precision import KEY, in_bytes


def quantize(folder: Path, out: Path) -> None:
    """Write a new model folder beside the old one, which stays as it is; a crash leaves no half of it."""
    manifest.refuse_existing(out)
    files = manifest.verify(folder)
    tables, stored = read_config(folder)
    if stored == "int8":
        raise UsageError(f"{folder}: its matrices are in bytes already. Give the model that it was made from.")
    try:
        with (folder / WEIGHTS).open("rb") as file:
            weights = Weights(file, files[WEIGHTS])
    except Unfit as reason:
        raise FolderError(
            f"{folder / WEIGHTS}: {reason}, which this cannot read. Restore it, or train again."
        ) from None
    try:
        with manifest.new_folder(out) as new:
            (new / CONFIG).write_bytes(config.as_text({KEY: "int8"} | tables).encode())
            (new / WEIGHTS).write_bytes(safetensors.numpy.save(in_bytes(weights.tensors())))
            for name in files:
                if name in (CARD, *TOKENIZERS, HISTORY, *ADDED):
                    (new / name).write_bytes((folder / name).read_bytes())
            with (new / CARD).open("a", encoding="utf-8") as card:
                made = f"a model whose weights have the SHA-256 {files[WEIGHTS].sha256}"
                card.write(f"\nMatrices are stored in bytes; `regarde quantize` made them of {made}.\n")
    except OSError as error:
        raise DiskError(f"{out}: not written ({error.strerror}). Free some space or give another --out.") from None
