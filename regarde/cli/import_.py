"""`regarde import`: a model of another toolkit as a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from regarde.cli.options import argument, flag, option
from regarde.errors import warn


def import_(
    folder: Annotated[Path, argument("FOLDER", "Folder of a model, as Hugging Face's transformers saves it.")],
    out: Annotated[Path, option("RUN", "Model folder to create.")],
    source_language: Annotated[
        str, option("CODE", "Language of the source, as the model names it; needed where it reads several.")
    ] = "",
    target_language: Annotated[
        str, option("CODE", "Language of the target, as the model names it; needed where it writes several.")
    ] = "",
    pickle: Annotated[
        bool, flag("--pickle", "Read pytorch_model.bin, if there are no safetensors: tensors only, no code.")
    ] = False,
) -> None:
    """Make a model folder of a Marian (OPUS-MT), BART, mBART, M2M100 or GPT-2 model on disk. Nothing is downloaded.

    All commands accept the result. docs/interop.md lists what is imported.

    Example: regarde import opus-mt-fr-en --out runs/fr-en
    """
    from regarde.interop.huggingface import import_folder
    from regarde.interop.tokens import Languages

    adopted = import_folder(folder, out, Languages(source_language, target_language), pickled=pickle)
    for note in adopted.notes:
        warn(f"left out: {note}")
    size = f"{adopted.model.parameter_count():,} parameters"
    task = adopted.blueprint.task
    warn(f"{out}: {task.noun} with {size}. Try: {task.example} {out}")
