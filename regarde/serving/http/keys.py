"""API keys. A file contains the name and the SHA-256 of each key; a key itself is printed once, when it is created.

Keys are long and random, so a plain hash reveals nothing about them.
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
    """The hashes of all keys; without any, no key is required."""

    hashes: tuple[bytes, ...] = ()

    def allow(self, key: str) -> bool:
        """Whether a key is valid; the time this takes does not depend on the key."""
        given = bytes.fromhex(digest(key))
        matches = [hmac.compare_digest(given, known) for known in self.hashes]
        return any(matches)


def digest(key: str) -> str:
    """The SHA-256 of a key, in hexadecimal."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def read(path: Path) -> Keys:
    """Read the keys of a file."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise DataError(
            f"{path}: not readable ({error.strerror}). Create it with: regarde serve --new-key NAME --keys {path}"
        ) from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not a text file. Give a file created by regarde serve --new-key.") from None
    hashes = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if not (match := _LINE.fullmatch(line.strip())):
            raise DataError(f"{path}, line {number}: expected a name and a SHA-256. Remove the line.")
        hashes.append(bytes.fromhex(match[2]))
    if not hashes:
        raise DataError(f"{path}: contains no key. Create one with: regarde serve --new-key NAME --keys {path}")
    return Keys(tuple(hashes))


def add(path: Path, name: str) -> str:
    """Create a key and add its hash to a file that only its owner may read."""
    key = secrets.token_urlsafe(32)
    line = f"{name} {digest(key)}"
    if not _LINE.fullmatch(line):
        raise UsageError(f"--new-key {name[:64]!r}: expected a name of letters, digits, dots and hyphens.")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as file:
        file.write(f"{line}\n")
    return key
