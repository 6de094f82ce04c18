"""Tokens made visible and harmless: a space can be seen, and no character can drive a terminal or break a page.

a space                      ␣, any other blank ⍽
control characters           their pictures: ␀ ␛ ␊
bidi and other format marks  their number: ‹U+202E›; joiners inside a word stay, since shaping needs them
what no text may hold        �: lone surrogates, noncharacters
a lone combining mark        on a dotted circle
nothing                      ∅
"""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len

_JOINERS = "\u200c\u200d"
_BLANKS = "\u115f\u1160\u3164\uffa0\u2800"  # letters and symbols that are drawn as nothing
_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"


def token(text: str) -> str:
    """One token, every character of it visible."""
    if not text:
        return "∅"
    shown = "".join(_token_character(c) for c in text)
    if shown.strip(_JOINERS) == "":
        return "".join(_number(c) for c in text)
    return "◌" + shown if unicodedata.category(shown[0]).startswith("M") else shown


def line(text: str) -> str:
    """Running text, such as a title: spaces stay spaces, the rest is made visible like a token."""
    return "".join(c if c == " " else _token_character(c) for c in text)


def clip(text: str, cells: int) -> str:
    """`text`, cut with an ellipsis where it is wider than `cells` columns of a terminal."""
    if cell_len(text) <= cells:
        return text
    end = 0
    while end < len(text) and cell_len(text[: end + 1]) < cells:
        end += 1
    return text[:end] + "…"


def isolate(text: str) -> str:
    """`text` with right-to-left words fenced off, so that they cannot reorder what stands beside them."""
    if any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in text):
        return _FIRST_STRONG_ISOLATE + text + _POP_ISOLATE
    return text


def _token_character(c: str) -> str:
    point = ord(c)
    if c == " ":
        return "␣"
    if "!" <= c <= "~":
        return c
    if point < 0x20:
        return chr(0x2400 + point)
    if point == 0x7F:
        return "␡"
    category = unicodedata.category(c)
    if category == "Cs" or point & 0xFFFE == 0xFFFE or 0xFDD0 <= point <= 0xFDEF:
        return "\ufffd"
    if category == "Zs" or c in _BLANKS:
        return "⍽"
    # Arabic number signs are format characters with ink; their bidi class, unlike that of the others, is a letter's
    inked = unicodedata.bidirectional(c) in ("AN", "AL", "L")
    if category in ("Cc", "Zl", "Zp") or (category == "Cf" and c not in _JOINERS and not inked):
        return _number(c)
    return c


def _number(c: str) -> str:
    return f"‹U+{ord(c):04X}›"
