"""What a file is that is not UTF-8 text, by its first bytes.

UTF-16 and UTF-32 are known by their byte order mark, or by the NULs that their ASCII characters hold; archives and
documents by the bytes that all files of their kind begin with.
"""

from __future__ import annotations

import shlex
import unicodedata
from pathlib import Path
from typing import NamedTuple

from regarde.errors import DataError

SAMPLE = 4096  # bytes looked at
STANDARD_INPUT = "standard input"  # as messages call it

_MARKS = {  # the longer ones first: UTF-32LE begins like UTF-16LE
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_UNITS = {"UTF-32LE": 4, "UTF-32BE": 4, "UTF-16LE": 2, "UTF-16BE": 2}  # bytes
_FEWEST_NULS, _SHARE_OF_NULS = 2, 0.4  # in a line of ASCII alone
_SPACE = " \t\r\n"


class _Kind(NamedTuple):
    """A kind of file, and the command that makes text of it, if there is one."""

    name: str
    command: str = ""


_KINDS = {
    b"\x1f\x8b": _Kind("gzip-compressed", "gzip -dc"),
    b"BZh91AY&SY": _Kind("bzip2-compressed", "bzip2 -dc"),
    b"\xfd7zXZ\x00": _Kind("xz-compressed", "xz -dc"),
    b"\x28\xb5\x2f\xfd": _Kind("zstd-compressed", "zstd -dc"),
    b"PK\x03\x04": _Kind("a zip archive or an Office document (.xlsx, .docx, .ods)"),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": _Kind("an Office document (.xls, .doc)"),
    b"%PDF-": _Kind("a PDF document"),
    b"PAR1\x15": _Kind("a Parquet file"),
    b"SQLite format 3\x00": _Kind("an SQLite database"),
}


def refuse_foreign(name: str, start: bytes) -> None:
    """Raise a DataError that names what a file is, where its first bytes show that it is not UTF-8 text.

    `name` is the file as messages call it, `start` its first line or more, decompressed.
    """
    if encoding := encoding_of(start):
        command = _converted(name, f"iconv -f {encoding} -t UTF-8")
        raise DataError(f"{name}: {encoding}, expected UTF-8. Convert it: {command}")
    for magic, kind in _KINDS.items():
        if start.startswith(magic):
            remedy = "Save its text as UTF-8, a pair or a sentence a line."
            if kind.command:
                remedy = f"Decompress it: {_piped(name, kind.command)}"
            raise DataError(f"{name}: {kind.name}, expected UTF-8 text. {remedy}")


def encoding_of(start: bytes) -> str | None:
    """UTF-16 or UTF-32, as iconv calls it, or None for everything else."""
    start = start[:SAMPLE]
    for mark, encoding in _MARKS.items():
        if start.startswith(mark) and len(start) > len(mark):  # alone it says nothing of a text
            return encoding
    if b"\0" not in start:
        return None
    return next((encoding for encoding, unit in _UNITS.items() if _is_text(start, encoding, unit)), None)


def _is_text(start: bytes, encoding: str, unit: int) -> bool:
    """Whether bytes that hold a NUL are text in this encoding; a stray NUL in UTF-8 must not look like that."""
    text = start[: len(start) // unit * unit].decode(encoding, errors="replace").removesuffix("\ufffd")  # cut in two
    if not text.strip() or not _is_clean(text):
        return False
    nuls = start.count(0)
    if nuls >= _FEWEST_NULS and nuls >= _SHARE_OF_NULS * len(start):
        return True
    without = start.replace(b"\0", b"").decode("utf-8", errors="replace").removesuffix("\ufffd")
    return not _is_clean(without) and any(space in text for space in _SPACE)


def _is_clean(text: str) -> bool:
    """Whether it holds nothing but characters of text: none that are unassigned, private, control or replaced ones."""
    return all(c in _SPACE or (c != "\ufffd" and unicodedata.category(c) not in ("Cc", "Cn", "Co")) for c in text)


def _converted(name: str, command: str) -> str:
    """The command that writes a file anew, or a pipe with it."""
    if name == STANDARD_INPUT:
        return f"… | {command} | regarde …"
    path = Path(name)
    plain = Path(path.name.removesuffix(".gz"))
    new = path.with_name(f"{plain.stem}.utf8{plain.suffix}")
    read = f"gzip -dc {shlex.quote(name)} | {command}" if path.suffix == ".gz" else f"{command} {shlex.quote(name)}"
    return f"{read} > {shlex.quote(str(new))}"


def _piped(name: str, command: str) -> str:
    return f"… | {command} | regarde …" if name == STANDARD_INPUT else f"{command} {shlex.quote(name)} | …"
