"""Models on machines of a cluster: their files travel as bytes, and are loaded once in each process that needs them."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import regarde
from regarde.errors import DiskError, UsageError
from regarde.folder import manifest
from regarde.streaming.filter import FilterConfig
from regarde.streaming.shards import ShardWorker

Files = Mapping[str, bytes]
_workers: dict[str, ShardWorker] = {}  # of this process, by what decides their answers; at most one


def files_of(run: str) -> Files:
    """The files of a model."""
    folder = Path(run)
    return {name: (folder / name).read_bytes() for name in (manifest.MANIFEST, *manifest.verify(folder))}


@dataclass(frozen=True)
class RemoteWorker:
    """All that another machine needs to answer lines, except the files of the models."""

    version: str
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, config: FilterConfig) -> Self:
        return cls(regarde.__version__, asdict(config))

    def here(self, folders: Sequence[Files]) -> ShardWorker:
        """The worker of this process. Models are read from copies, which are removed as soon as they are loaded."""
        if self.version != regarde.__version__:
            given = f"this machine has Regarde {regarde.__version__}, the one that asks {self.version}"
            raise UsageError(f"{given}. Install the same version on all.")
        digests = [hashlib.sha256(files[manifest.MANIFEST]).hexdigest() for files in folders]
        key = repr((sorted(self.settings.items()), digests))
        if key not in _workers:
            _workers.clear()
            try:
                with tempfile.TemporaryDirectory(prefix="regarde-") as copies:
                    _workers[key] = self._loaded(Path(copies), folders)
            except OSError as error:
                raise DiskError(f"no copy of the model could be written ({error.strerror}). Free some space.") from None
        return _workers[key]

    def _loaded(self, copies: Path, folders: Sequence[Files]) -> ShardWorker:
        runs = [copies / str(number) for number in range(len(folders))]
        for run, files in zip(runs, folders, strict=True):
            run.mkdir()
            for name, content in files.items():
                (run / name).write_bytes(content)
        worker = ShardWorker(replace(FilterConfig.of(self.settings), runs=tuple(map(str, runs))))
        worker.load()
        return worker
