"""Keys that let clients in. A file holds a name and the SHA-256 of each; a key itself is shown once, when it is made.

Keys are random and long, so that a plain hash tells nothing about them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from regarde.errors import DataError, UsageError

_LINE = re.compile(r"([\w.-]{1,64}) ([0-9a-f]{64})")


@dataclass(frozen=True)
class Keys:
    """The hashes of all keys; none: everybody is let in."""

    hashes: tuple[bytes, ...] = ()

    def allow(self, key: str) -> bool:
        """Whether this is one of them, in a time that does not tell which or how nearly."""
        given = bytes.fromhex(digest(key))
        found = [hmac.compare_digest(given, known) for known in self.hashes]
        return any(found)


def digest(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def read(path: Path) -> Keys:
    """The keys of a file."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise DataError(
            f"{path}: not readable ({error.strerror}). Make it with: regarde serve --new-key NAME --keys {path}"
        ) from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: no text. Give a file made by regarde serve --new-key.") from None
    hashes = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if not (found := _LINE.fullmatch(line.strip())):
            raise DataError(f"{path}, line {number}: expected a name and a SHA-256. Remove the line.")
        hashes.append(bytes.fromhex(found[2]))
    if not hashes:
        raise DataError(f"{path}: holds no key. Make one with: regarde serve --new-key NAME --keys {path}")
    return Keys(tuple(hashes))


def add(path: Path, name: str) -> str:
    """A new key, whose hash is added to a file that its owner alone may read."""
    key = secrets.token_urlsafe(32)
    line = f"{name} {digest(key)}"
    if not _LINE.fullmatch(line):
        raise UsageError(f"--new-key {name[:64]!r}: expected a name of letters and digits.")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as file:
        file.write(f"{line}\n")
    return key
