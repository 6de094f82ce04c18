"""Reading text takes time in proportion to its length, whatever the text is; and gives what simple expressions give."""

from __future__ import annotations

import html
import random
import re
import time
import unicodedata
from collections.abc import Callable

import pytest

from regarde import config
from regarde.alignment.gold import _NAACL
from regarde.data.formats import BARS
from regarde.data.lines import repair
from regarde.errors import ConfigError
from regarde.evaluation.words import _WORD
from regarde.serving.routes import markup
from regarde.text import sentences, sides
from regarde.text.sides import normalized

SHORTEST, DOUBLINGS = 2_500, 3  # characters
STEEPEST = 3.0  # times as long for twice the text: 2 for linear time, 4 for quadratic
LONGEST = 3.0  # seconds for any of the texts
MARKS = [chr(code) for code in range(0x300, 0x1F000) if unicodedata.combining(chr(code))]


def split(text: str) -> object:
    return sentences.cut(text, lambda piece: len(piece) <= 250)


def shortened(text: str) -> object:
    return sentences.shorten(text, lambda piece: len(piece) <= 250)


def toml(text: str) -> object:
    try:
        return config.read_text("config.toml", text)
    except ConfigError:
        return None


def composed(text: str) -> str:
    return normalized(text, "NFC")


HOSTILE: list[tuple[Callable[[str], object], list[str]]] = [
    (markup.cut, ["<a", "<!", "<a '", '<a "', "<a '\"", "<pre", "<pre>", "</pre ", "<pre></pre", "<!--", "<b>", "< "]),
    (markup.cut, ["&#", "&amp", "9", " ", "a "]),
    (split, [".", ".)", ")", ",", ",)", "。)", ", ", ". ", " ", "a", "\u0300", ".\u200d"]),
    (shortened, [".", "\u0300", "\u200d"]),
    (composed, ["\u0300", "\u0300\u0316", "e\u0301", "\u0f73", "\u1100\u1161", "é", "".join(MARKS)]),
    (toml, [" ", " .", "'", '"', "a ", "a. ", "-", ". \n"]),
    (BARS.split, [" ", "|", " |||", " ||"]),
    (_WORD.findall, ["a", "'", "a'", "-"]),
    (_NAACL.fullmatch, [" ", "1 ", "1", "1 1 1  "]),
    (repair, ["\0", "a"]),
]


@pytest.mark.parametrize(("work", "units"), HOSTILE)
def test_the_time_is_linear_in_the_text(work: Callable[[str], object], units: list[str]) -> None:
    for unit in units:
        tries = (times(work, unit) for _ in range(3))  # another program may spoil a measurement, hardly three
        assert any(growth < STEEPEST**DOUBLINGS for growth in tries), ascii(unit[:10])


def times(work: Callable[[str], object], unit: str) -> float:
    """How many times as long the longest text takes as the shortest; 0 where it takes no time worth the name."""
    longest = seconds(work, unit, SHORTEST << DOUBLINGS)
    return 0.0 if longest < 0.03 else longest / seconds(work, unit, SHORTEST)


def seconds(work: Callable[[str], object], unit: str, length: int) -> float:
    """The least CPU time for a text of this length."""
    text = (unit * (length // len(unit) + 1))[: length - 1] + "x"  # the end of it fits nothing
    took = []
    while len(took) < 3 and sum(took) < 0.1:
        began = time.thread_time()
        work(text)
        took.append(time.thread_time() - began)
        assert took[-1] < LONGEST, f"{length:,} characters"
    return min(took)


def test_a_key_of_dots_and_spaces_is_read_at_once() -> None:
    assert seconds(toml, ".  ", 31 * 3) < 1.0


# The expressions in their simple form, which take quadratic time.
_KEPT = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style|code|pre|textarea|svg|math|template|noscript)\b(?:[^>\"']|\"[^\"]*\"|'[^']*')*>.*?(?:</\1\s*>|\Z)"
    r"|</?[a-zA-Z](?:[^>\"']|\"[^\"]*\"|'[^']*')*>"
    r"|<[!?][^>]*>",
    re.DOTALL | re.IGNORECASE,
)
_EDGES = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)
_CLOSED = r"[\"'”’»›)\]}）】」』》〉]*"
_SENTENCE = re.compile(rf"[.!?…‽؟۔।॥։።፧]+{_CLOSED}(?=\s)|[。！？｡]+{_CLOSED}")
_CLAUSE = re.compile(rf"[,;:،؛፣—–]+{_CLOSED}(?=\s)|[、，；：]+{_CLOSED}")
_SIMPLE_BARS = re.compile(r"(?:^| +)\|\|\|(?: +|$)")
PIECES = [
    *(
        "<",
        "</",
        ">",
        "a",
        "b ",
        "<pre",
        "</pre",
        "<SCRIPT",
        "</script",
        '"',
        "'",
        " ",
        "\n",
        "<!--",
        "-->",
        "<!",
        "<?",
    ),
    *("&amp;", "&lt;", "&#65;", "-", "\x1c", "ſ", "<p>", "</p>"),
]


def strings(pieces: list[str], count: int = 4_000) -> list[str]:
    generator = random.Random(0)
    return ["".join(generator.choices(pieces, k=generator.randrange(14))) for _ in range(count)]


def simply_cut(page: str) -> markup.Markup:
    kept, texts, place = [""], [], 0
    for match in [*_KEPT.finditer(page), None]:
        between = page[place : match.start() if match else len(page)]
        edges = _EDGES.fullmatch(between)
        assert edges
        if edges[2]:
            kept[-1] += edges[1]
            texts.append(html.unescape(edges[2]))
            kept.append(edges[3])
        else:
            kept[-1] += between
        if match:
            kept[-1] += match[0]
            place = match.end()
    return markup.Markup(tuple(kept), tuple(texts))


def test_a_page_is_cut_as_the_simple_expression_cuts_it() -> None:
    for page in strings(PIECES):
        assert markup.cut(page) == simply_cut(page), page


def test_a_reference_to_a_number_of_any_length_is_text() -> None:
    assert markup.cut(f"&#{'9' * 5000};").texts == ("\ufffd",)


@pytest.mark.parametrize(
    ("simple", "used"), [(_SENTENCE, sentences._SENTENCE), (_CLAUSE, sentences._CLAUSE), (_SIMPLE_BARS, BARS)]
)
def test_matches_are_those_of_the_simple_expression(simple: re.Pattern[str], used: re.Pattern[str]) -> None:
    for text in strings([*'.!。！,;、，)" a\n', "|||", " ", " "]):
        assert [match.span() for match in used.finditer(text)] == [match.span() for match in simple.finditer(text)], (
            text
        )


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_normalized_text_is_that_of_unicodedata(form: sides.UnicodeForm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "STRIDE", 3)
    letters = ["a", "é", "ệ", "\u1100", "\u1161", "각", "ガ", "ｶ", "\uff9e", "\u0f73", "\U0001d15e", "\u0344"]
    for text in strings([*letters * 20, *MARKS]):
        assert normalized(text, form) == unicodedata.normalize(form, text), ascii(text)
