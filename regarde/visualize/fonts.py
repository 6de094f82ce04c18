"""The fonts of a text, chosen by the glyphs they have: one font for the whole text if possible.

matplotlib 3.11 and later joins Arabic letters and orders Hebrew from right to left, given fonts that have all letters.
A letter that no installed font has is drawn as �, and a warning names a package that has it.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

_FIRST = "DejaVu Sans"  # part of matplotlib
_KANA, _HANGUL, _HAN = ("HIRAGANA", "KATAKANA"), ("HANGUL",), ("CJK",)
_EAST_ASIAN = (*_KANA, *_HANGUL, *_HAN, "BOPOMOFO", "FULLWIDTH", "HALFWIDTH", "IDEOGRAPHIC")
_CJK = {"JP": _KANA, "KR": _HANGUL, "SC": _HAN}  # the region decides how Han letters are drawn
_ELSEWHERE = (  # fonts of macOS and Windows
    "Hiragino Sans", "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "PingFang SC", "Apple SD Gothic Neo",
    "Arial Unicode MS", "Segoe UI", "Nirmala UI", "Segoe UI Symbol", "Segoe UI Emoji", "Symbola",
)  # fmt: skip
_SYMBOLS = {"So", "Sk", "Sm"}


@dataclass(frozen=True)
class Lettering:
    """A text that can be drawn, and its font families in order of preference."""

    text: str
    families: tuple[str, ...]


def letter(text: str) -> Lettering:
    """The text, with � in place of each character that no installed font has."""
    families = _families(frozenset(text), _region(text))
    known = frozenset().union(*(_coverage(family) for family in families))
    return Lettering("".join(c if ord(c) in known else "\ufffd" for c in text), families)


def missing(texts: Iterable[str]) -> tuple[str, ...]:
    """One warning for each script that no installed font has."""
    lost: dict[str, str] = {}
    for text in texts:
        for c, drawn in zip(text, letter(text).text, strict=True):
            if c != drawn:
                lost.setdefault(_script(c), c)
    return tuple(
        f"no font for {script} (such as U+{ord(c):04X}), drawn as \ufffd. Debian has one: apt install {_package(c)}"
        for script, c in lost.items()
    )


@functools.lru_cache(maxsize=4096)
def _families(wanted: frozenset[str], region: str) -> tuple[str, ...]:
    """One family that has all characters, if there is one; otherwise several, in order of preference."""
    codes = {ord(c) for c in wanted}
    if codes <= _coverage(_FIRST):
        return (_FIRST,)
    candidates = _candidates(wanted, region)
    for family in candidates:
        if codes <= _coverage(family):
            return (family, _FIRST)
    left, families = codes - _coverage(_FIRST), [_FIRST]
    for family in candidates:
        if left & _coverage(family):
            families.append(family)
            left -= _coverage(family)
        if not left:
            break
    return tuple(families)


def _candidates(wanted: frozenset[str], region: str) -> list[str]:
    """Installed families: those for a script of the text first, general ones last."""
    scripts = {_script(c) for c in wanted}
    sans = [f"Noto Sans {script}" for script in sorted(scripts)]
    if any(_word(c) in _EAST_ASIAN for c in wanted):
        sans += [f"Noto Sans CJK {region}", f"Noto Sans {region}"]
    named = [*sans, "Noto Sans", *(f"Noto Serif {script}" for script in sorted(scripts)), *_ELSEWHERE]
    others = sorted(family for family in _installed() if "Last Resort" not in family)
    return [family for family in dict.fromkeys([*named, *others]) if family in _installed()]


@functools.cache
def _installed() -> dict[str, tuple[str, int]]:
    """Families with a regular face: its file, and its index in the file."""
    from matplotlib.font_manager import fontManager

    return {
        entry.name: (entry.fname, entry.index)
        for entry in reversed(fontManager.ttflist)  # the first file of a family counts
        if entry.style == "normal" and entry.weight in (400, "normal", "regular") and entry.stretch == "normal"
    }


@functools.lru_cache(maxsize=512)
def _coverage(family: str) -> frozenset[int]:
    """The characters a family has, as code points."""
    from matplotlib.font_manager import FontPath
    from matplotlib.ft2font import FT2Font

    path, index = _installed()[family]
    try:
        return frozenset(FT2Font(FontPath(path, index)).get_charmap())
    except (OSError, RuntimeError):  # damaged, or removed since matplotlib listed it
        return frozenset()


def _region(text: str) -> str:
    words = {_word(c) for c in text}
    return next((region for region, scripts in _CJK.items() if words & set(scripts)), "SC")


def _word(c: str) -> str:
    """The first word of a character's Unicode name, which is its script: HEBREW LETTER ALEF."""
    return unicodedata.name(c, "UNNAMED").split()[0].split("-")[0]


def _script(c: str) -> str:
    word = _word(c)
    if word in _EAST_ASIAN:
        return {"HANGUL": "Korean", "HIRAGANA": "Japanese", "KATAKANA": "Japanese"}.get(word, "Chinese")
    if unicodedata.category(c) in _SYMBOLS:
        return "symbols and emoji"
    return word.capitalize()


def _package(c: str) -> str:
    """A Debian package with a font for the character; matplotlib cannot draw colored emoji."""
    if _word(c) in _EAST_ASIAN:
        return "fonts-noto-cjk"
    return "fonts-symbola" if unicodedata.category(c) in _SYMBOLS else "fonts-noto-core"
