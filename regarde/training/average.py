"""The mean of several checkpoints' weights as one model (Vaswani et al. 2017, section 6.1, average their last ones)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regarde.config import Table
from regarde.errors import UsageError
from regarde.folder import model as folder
from regarde.folder.forecasting import forecasts
from regarde.folder.histories import Histories
from regarde.folder.manifest import STATE, WEIGHTS, verify
from regarde.folder.trained import load_trained
from regarde.text import Text
from regarde.training.checkpoint import read
from regarde.training.resume import differences
from regarde.training.run import refuse_existing
from regarde.translate import first_difference


def average(folders: Sequence[Path], out: Path) -> None:
    """Write the mean of models of one configuration and one vocabulary, each verified, into a new model folder."""
    if len(folders) < 2:
        raise UsageError(f"{len(folders)} models to average: expected at least 2. Give more checkpoints.")
    for path in folders:
        if (path / STATE).is_file() and not read(path).state.step:
            raise UsageError(f"{path}: a model before its first training step. Leave it out.")
    refuse_existing(out)
    first, *others = folders
    whole = load_trained(first)
    model, tables = whole.model, whole.tables
    if whole.stored == "int8":
        raise UsageError(f"{first}: its matrices are in bytes. Average models before quantizing them.")
    sums = {name: tensor.double() for name, tensor in model.state_dict().items()}  # single precision would be rounded
    for path in others:
        other = load_trained(path)
        if difference := _difference(tables, other.tables) or _apart(whole.kept, other.kept):
            raise UsageError(f"{path}: {difference} Average checkpoints of one run.")
        for name, tensor in other.model.state_dict().items():
            sums[name] += tensor
    model.load_state_dict({name: total / len(folders) for name, total in sums.items()})
    folder.save(out, tables, whole.kept, model, _card(folders, "forecast" if forecasts(first) else "translate"))


def _apart(expected: Text | Histories, given: Text | Histories) -> str:
    """The first difference of tokenizers or histories, as a sentence."""
    if isinstance(expected, Text) and isinstance(given, Text):
        return first_difference(expected, given)
    assert isinstance(expected, Histories)
    assert isinstance(given, Histories)
    return "" if expected.series.ids == given.series.ids else "It has other series."


def _difference(expected: Table, given: Table) -> str:
    """The first setting of model or text that two configurations do not share, as a sentence."""
    for found in differences(expected, given):
        if found.key.startswith(("model.", "text.", "task.")):
            return f"{found.key} is {found.given}, expected {found.expected}."
    return ""


def _card(folders: Sequence[Path], command: str) -> str:
    """Markdown for the new folder's README.md; models are named by folder and by the SHA-256 of their weights."""
    rows = [f"| {path.resolve().name} | {verify(path)[WEIGHTS].sha256} |" for path in folders]
    table = "\n".join(["| model | SHA-256 of its weights |", "|---|---|", *rows])
    return f"""# The mean of {len(folders)} models trained with Regarde

Each weight is the mean of the same weight in these models; config.toml is that of the first.

{table}

    regarde {command} THIS_FOLDER{" < sentences.txt" if command == "translate" else ""}
"""
