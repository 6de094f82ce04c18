"""How a token is written in a picture: seen, never obeyed.

Data must not drive a terminal, end a tag or turn a line around. So what has no shape of its own is shown by a sign:

    space ␣   no-break space ⍽   ESC ␛   U+202E \\u202e   lone surrogate �   nothing at all ∅
"""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len

NOTHING = "∅"
_JOINERS = "\u200c\u200d"  # shape the letters around them in Persian, Hindi and emoji, so they stay inside a token
_SPACES = {" ": "␣", "\u00a0": "⍽"}
_RIGHT_TO_LEFT = {"R", "AL", "AN"}


def visible(token: str) -> str:
    """The token with every character seen."""
    if not token:
        return NOTHING
    alone = not token.strip(_JOINERS)
    shown = "".join(c if c in _JOINERS and not alone else _sign(c) for c in token)
    return "◌" + shown if unicodedata.category(shown[0]).startswith("M") else shown  # a mark needs something under it


def seen(text: str) -> str:
    """A text of many words for a terminal: nothing in it moves a cursor, changes a colour or turns a line around."""
    if text.isprintable():
        return text
    return "".join(c if c in _JOINERS or unicodedata.category(c) == "Zs" else _sign(c) for c in text)


def isolated(label: str) -> str:
    """The label between isolates (U+2068, U+2069) where it has right-to-left letters, so that it turns nothing else."""
    turns = any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in label)
    return f"\u2068{label}\u2069" if turns else label


def shorten(label: str, cells: int) -> str:
    """The label in at most so many terminal cells, its loss shown by …"""
    if cell_len(label) <= cells:
        return label
    kept = ""
    for c in label:
        if cell_len(kept + c) > cells - 1:
            break
        kept += c
    return kept.rstrip(_JOINERS) + "…"


def sentence(tokens: tuple[str, ...]) -> str:
    """Tokens as one line of visible text: characters run on, words stand apart."""
    labels = [visible(token) for token in tokens]
    return ("" if all(cell_len(label) <= 2 for label in labels) else " ").join(labels)


def _sign(c: str) -> str:
    """The character itself where it can be seen, else a sign for it."""
    code = ord(c)
    if c in _SPACES:
        return _SPACES[c]
    if code < 0x20 or code == 0x7F:
        return "␡" if code == 0x7F else chr(0x2400 + code)
    category = unicodedata.category(c)
    if category == "Cs":
        return "\ufffd"
    if category in {"Cc", "Cf", "Zs", "Zl", "Zp"} or code & 0xFFFE == 0xFFFE:  # XML forbids U+FFFE and U+FFFF
        return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
    return c
