"""A model folder -> the same model with a temperature in its output layer (evaluation/calibrate.py), without torch."""

from __future__ import annotations

from pathlib import Path

import safetensors.numpy

from regarde import config
from regarde.engines.native import Unfit
from regarde.errors import DiskError, FolderError, UsageError
from regarde.folder import manifest
from regarde.folder.loading import Weights, read_config
from regarde.folder.manifest import ADDED, CARD, CONFIG, TOKENIZERS, WEIGHTS

NOT_CALIBRATED = "| probabilities | not calibrated |\n"  # of a model card
OUTPUT = ("decoder.W_s.weight", "decoder.W_s.bias")  # z = W_s s + b_s


def check(folder: Path, out: Path) -> None:
    """A UsageError, before anything is computed, if the model cannot be calibrated into `out`."""
    manifest.refuse_existing(out)
    manifest.verify(folder)
    if read_config(folder)[1] == "int8":
        given = f"{folder}: its matrices are in bytes, expected floats"
        raise UsageError(f"{given}. Calibrate the model that it was made from, then quantize it.")


def calibrate(folder: Path, out: Path, temperature: float) -> None:
    """Write a new model folder whose logits are divided by the temperature; a crash leaves no partial folder."""
    check(folder, out)
    files = manifest.verify(folder)
    tables, _ = read_config(folder)
    task = tables.get("task", {})
    total = temperature * (task.get("temperature") or 1.0)
    try:
        with (folder / WEIGHTS).open("rb") as file:
            tensors = Weights(file, files[WEIGHTS]).tensors()
    except Unfit as reason:
        raise FolderError(f"{folder / WEIGHTS}: not readable ({reason}). Restore it, or train again.") from None
    scaled = {name: tensors[name] / tensors[name].dtype.type(temperature) for name in OUTPUT}
    try:
        with manifest.new_folder(out) as new:
            (new / CONFIG).write_bytes(config.as_text(tables | {"task": {**task, "temperature": total}}).encode())
            (new / WEIGHTS).write_bytes(safetensors.numpy.save({**tensors, **scaled}))
            for name in files:
                if name in (*TOKENIZERS, *ADDED):
                    (new / name).write_bytes((folder / name).read_bytes())
            made = f"a model whose weights have the SHA-256 {files[WEIGHTS].sha256}"
            how = f"\nCalibrated: `regarde calibrate` divided the logits of {made} by {temperature:.6g}.\n"
            card = (folder / CARD).read_text(encoding="utf-8") if CARD in files else ""
            (new / CARD).write_text(card.replace(NOT_CALIBRATED, "") + how, encoding="utf-8")
    except OSError as error:
        raise DiskError(f"{out}: not written ({error.strerror}). Free some space or give another --out.") from None
