"""Tokens as visible text: control characters cannot act on a terminal, a page or the direction of a line.

Characters without a shape of their own are replaced by a sign:

    space ␣   no-break space ⍽   ESC ␛   U+202E \\u202e   lone surrogate �   nothing at all ∅
"""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len

NOTHING = "∅"
_JOINERS = "\u200c\u200d"  # kept inside a token, where they shape letters and emoji
_SPACES = {" ": "␣", "\u00a0": "⍽"}
_RIGHT_TO_LEFT = {"R", "AL", "AN"}


def visible(token: str) -> str:
    """The token with every character visible."""
    if not token:
        return NOTHING
    alone = not token.strip(_JOINERS)
    shown = "".join(c if c in _JOINERS and not alone else _sign(c) for c in token)
    return "◌" + shown if unicodedata.category(shown[0]).startswith("M") else shown  # a base for a combining mark


def seen(text: str) -> str:
    """A text for a terminal, without characters that control the cursor, colors or direction; spaces stay."""
    if text.isprintable():
        return text
    return "".join(c if c in _JOINERS or unicodedata.category(c) == "Zs" else _sign(c) for c in text)


def isolated(label: str) -> str:
    """The label, in isolates (U+2068, U+2069) if it has right-to-left letters, so that it does not reorder its line."""
    turns = any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in label)
    return f"\u2068{label}\u2069" if turns else label


def shorten(label: str, cells: int) -> str:
    """The label in at most `cells` terminal cells, with … if it is cut."""
    if cell_len(label) <= cells:
        return label
    kept = ""
    for c in label:
        if cell_len(kept + c) > cells - 1:
            break
        kept += c
    return kept.rstrip(_JOINERS) + "…"


def sentence(tokens: tuple[str, ...]) -> str:
    """Tokens as one line of visible text: spaces between words, none between characters and pieces of words."""
    tokens = tuple(token for token in tokens if token != "</s>")
    if any(token.startswith("▁") for token in tokens):
        words = "".join(tokens).replace("▁", " ").split()
        return " ".join(visible(word) for word in words)
    if all(cell_len(visible(token)) <= 2 for token in tokens):
        return visible("".join(tokens))
    return " ".join(visible(token) for token in tokens)


def _sign(c: str) -> str:
    """The character if it is visible, otherwise a sign for it."""
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
