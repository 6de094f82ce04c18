"""Symbols and their numbers.

The first four ids are controls. They are shown as in `CONTROLS` but never matched against text and never stored
beside the symbols, so a user who types `</s>` gets the text `</s>`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from regarde.errors import DiskError, FolderError, unreadable

PAD, UNK, BOS, EOS = 0, 1, 2, 3
CONTROLS = ("<pad>", "<unk>", "<s>", "</s>")
LARGEST_FILE = 256 * 2**20  # bytes; a file beyond it is no vocabulary and is not read


class Vocabulary:
    """Symbols in order; the id of the first one is `len(CONTROLS)`."""

    def __init__(self, symbols: Sequence[str]) -> None:
        self.symbols = tuple(symbols)
        self._ids = {symbol: number for number, symbol in enumerate(self.symbols, start=len(CONTROLS))}
        assert len(self._ids) == len(self.symbols), "a symbol occurs twice"

    @classmethod
    def build(cls, stream: Iterable[str], size: int) -> Vocabulary:
        """The `size` most frequent symbols of a stream, ties in the order of the symbols themselves."""
        counts = Counter(stream)
        symbols = sorted(
            (symbol for symbol in counts if _storable(symbol)), key=lambda symbol: (-counts[symbol], symbol)
        )
        return cls(symbols[:size])

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read what `save` wrote; anything that would shift ids is refused with its line number."""
        first: dict[str, int] = {}
        for number, raw in enumerate(_lines(path), start=1):
            try:
                symbol = raw.decode("utf-8")
            except UnicodeDecodeError:
                raise FolderError(f"{path}, line {number}: not valid UTF-8. Restore the file of the model.") from None
            if not symbol:
                raise FolderError(f"{path}, line {number}: blank, expected a symbol. Restore the file of the model.")
            if symbol in first:
                seen = f"{symbol!r} is also on line {first[symbol]}"
                raise FolderError(f"{path}, line {number}: {seen}, expected it once. Restore the file of the model.")
            first[symbol] = number
        return cls(tuple(first))

    def save(self, path: Path) -> None:
        """One symbol a line in UTF-8; lines end at \\n only, controls are left out."""
        try:
            path.write_bytes("".join(f"{symbol}\n" for symbol in self.symbols).encode("utf-8"))
        except OSError as error:
            raise DiskError(
                f"{path}: not written ({error.strerror}). Free some space or choose another folder."
            ) from None

    def id(self, symbol: str) -> int:
        """The id of a symbol, `UNK` where it is unknown."""
        return self._ids.get(symbol, UNK)

    def symbol(self, number: int) -> str:
        """The symbol of an id; a control is shown by its name."""
        return CONTROLS[number] if number < len(CONTROLS) else self.symbols[number - len(CONTROLS)]

    def __len__(self) -> int:
        return len(CONTROLS) + len(self.symbols)


def _storable(symbol: str) -> bool:
    """Whether a symbol survives a file of one symbol a line in UTF-8."""
    return symbol != "" and "\n" not in symbol and not any("\ud800" <= character <= "\udfff" for character in symbol)


def _lines(path: Path) -> list[bytes]:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise FolderError(
                f"{path}: larger than {LARGEST_FILE:,} bytes, no vocabulary. Restore the file of the model."
            )
        content = path.read_bytes()
    except OSError as error:
        raise FolderError(unreadable(path, error, "Restore the file of the model.")) from None
    if not content:
        raise FolderError(f"{path}: empty, expected one symbol a line. Restore the file of the model.")
    return content.removesuffix(b"\n").split(b"\n")
