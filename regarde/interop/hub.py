"""A Hugging Face folder on disk: JSON files, and tensors. Nothing is fetched, and nothing in it is executed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regarde.config import Table
from regarde.errors import FolderError, OutOfMemoryError, UsageError, is_out_of_memory, unreadable

if TYPE_CHECKING:
    from torch import Tensor

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
WEIGHTS, PICKLED = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"  # follows the name of weights that are in several files
LARGEST_JSON = 256 << 20  # bytes
RESTORE = "Restore the folder, or download it again."
MOST_TOKENS = 10**7  # of a vocabulary
_KINDS: dict[type, tuple[str, str]] = {  # what settings are, and their names
    int: (
        "a whole number",
        "vocab_size decoder_vocab_size num_beams max_length max_new_tokens min_length n_embd n_inner",
    ),
    bool: ("true or false", "tie_word_embeddings share_encoder_decoder_embeddings"),
    str: ("a name", "model_type activation_function"),
    list: ("a list", "architectures bad_words_ids"),
}
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True)
class HubFolder:
    """The settings of a folder."""

    path: Path
    config: Table
    generation: Table  # what config.json says of it, and over that its own file
    tokenizer: Table

    @classmethod
    def read(cls, path: Path) -> HubFolder:
        if not path.is_dir():
            given = "a file, not a folder" if path.exists() else "no such folder"
            raise FolderError(f"{path}: {given}. Give a folder with a {CONFIG}, as transformers saves a model.")
        if not (path / CONFIG).is_file():
            ours = " This is a model of Regarde already." if (path / "manifest.json").is_file() else ""
            raise FolderError(f"{path}: no {CONFIG}, so not a model of Hugging Face's transformers.{ours}")
        config = _checked(path / CONFIG)
        own = _checked(path / GENERATION) if (path / GENERATION).is_file() else {}
        tokenizer = read_json(path / TOKENIZER) if (path / TOKENIZER).is_file() else {}
        return cls(path, config, {**config, **own}, tokenizer)

    def id(self, name: str) -> int | None:
        """A token id of the settings."""
        value = self.generation.get(name)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value is not None and type(value) is not int:
            raise FolderError(f"{self.path}: {name} = {json.dumps(value)[:80]}, expected one token. {RESTORE}")
        return value

    def file(self, name: str) -> bytes:
        """The content of a file of the tokenizer."""
        try:
            if (self.path / name).stat().st_size > LARGEST_JSON:
                raise FolderError(f"{self.path / name}: larger than {LARGEST_JSON:,} bytes. {RESTORE}")
            return (self.path / name).read_bytes()
        except OSError as error:
            raise FolderError(unreadable(self.path / name, error, RESTORE)) from None

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def tensors(self, *, pickled: bool) -> dict[str, Tensor]:
        """All weights; those of a pickle only if that is allowed, and then without executing anything."""
        for name in (WEIGHTS, PICKLED):
            files = list(self._files(name))
            if files and name == PICKLED and not pickled:
                given = f"{self.path}: its weights are a pickle, {files[0].name}"
                raise UsageError(f"{given}. If you trust it, add --pickle, which reads tensors only; or convert it.")
            if files:
                read = _unpickled if name == PICKLED else _safe
                return {tensor: value for file in files for tensor, value in read(file).items()}
        raise FolderError(f"{self.path}: no {WEIGHTS}. {RESTORE}")

    def _files(self, name: str) -> Iterator[Path]:
        if self.has(name):
            yield self.path / name
        elif self.has(f"{name}{INDEX}"):
            path = self.path / f"{name}{INDEX}"
            names = read_json(path).get("weight_map")
            if not isinstance(names, dict) or not names:
                raise FolderError(f"{path}: no weight_map. {RESTORE}")
            for one in sorted(set(map(str, names.values()))):
                if not _FILE.fullmatch(one):
                    raise FolderError(f"{path}: lists {one[:80]!r}, which is no plain file name. {RESTORE}")
                yield self.path / one


def _checked(path: Path) -> Table:
    """Settings, of which those that are read directly are what they should be."""
    found = read_json(path)
    for kind, (expected, names) in _KINDS.items():
        for name in names.split():
            value = found.get(name)
            if value is not None and type(value) is not kind:
                raise FolderError(f"{path}: {name} = {json.dumps(value)[:80]}, expected {expected}. {RESTORE}")
            if isinstance(value, int) and abs(value) > MOST_TOKENS:
                raise FolderError(f"{path}: {name} = {value}, expected at most {MOST_TOKENS:,}. {RESTORE}")
    return found


def read_json(path: Path) -> Table:
    """A JSON object."""
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise FolderError(f"{path}: larger than {LARGEST_JSON:,} bytes. {RESTORE}")
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FolderError(unreadable(path, error, RESTORE)) from None
    except (ValueError, RecursionError):
        raise FolderError(f"{path}: not JSON. {RESTORE}") from None
    if not isinstance(found, dict):
        raise FolderError(f"{path}: not a JSON object. {RESTORE}")
    return found


def _safe(path: Path) -> dict[str, Tensor]:
    import safetensors
    import safetensors.torch

    try:
        found: dict[str, Tensor] = safetensors.torch.load_file(path)
    except OSError as error:
        raise FolderError(unreadable(path, error, RESTORE)) from None
    except (safetensors.SafetensorError, ValueError, KeyError, RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise OutOfMemoryError(f"{path}: no memory for it. Free some.") from None
        raise FolderError(f"{path}: not a safetensors file. {RESTORE}") from None
    return found


def _unpickled(path: Path) -> dict[str, Tensor]:
    import pickle

    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise FolderError(unreadable(path, error, RESTORE)) from None
    except (pickle.UnpicklingError, RuntimeError, ValueError, EOFError, KeyError, AttributeError, ImportError):
        given = "more than tensors, or no weights at all; nothing of it was executed"
        raise FolderError(f"{path}: {given}. Do not use it, or get a {WEIGHTS}.") from None
    if not isinstance(found, dict) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise FolderError(f"{path}: not a table of tensors. Get a {WEIGHTS}.")
    return {str(name): value for name, value in found.items()}
