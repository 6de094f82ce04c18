"""The files that data were read from: whether they are still the same."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path

from regarde.errors import DataError

SETTLED = 2.0  # seconds after which a change of a file has another time than the one before


@dataclass(frozen=True)
class FileState:
    """A file of the data as it was when it was read."""

    path: str
    size: int
    modified: int  # nanoseconds
    changed: int  # of its inode; no program sets it back
    inode: int
    sha256: str = ""

    @classmethod
    def of(cls, path: Path) -> FileState:
        try:
            found = path.stat()
        except OSError as error:
            raise DataError(f"{path}: not readable ({error.strerror}). Give the path of a file.") from None
        return cls(str(path.resolve()), found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)

    def hashed(self) -> FileState:
        with Path(self.path).open("rb") as file:
            return FileState(**asdict(self) | {"sha256": hashlib.file_digest(file, "sha256").hexdigest()})

    def still(self, read: float) -> bool:
        """Whether the file has the same content, by its times if these are certain, or by its SHA-256."""
        now = FileState.of(Path(self.path))
        same = asdict(now) | {"sha256": self.sha256} == asdict(self)
        if same and read - self.changed / 1e9 > SETTLED:
            return True
        return now.size == self.size and now.hashed().sha256 == self.sha256
