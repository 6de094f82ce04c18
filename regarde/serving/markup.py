"""HTML to be translated: tags, comments, scripts and the like stay as they are, and the text between them is text."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

# What is no text: comments, declarations, elements whose content is no prose, tags. An angle bracket that opens none of
# these is text.
_KEPT = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(script|style|code|pre|textarea|svg|math|template|noscript)\b(?:[^>\"']|\"[^\"]*\"|'[^']*')*>.*?(?:</\1\s*>|\Z)"
    r"|</?[a-zA-Z](?:[^>\"']|\"[^\"]*\"|'[^']*')*>"
    r"|<[!?][^>]*>",
    re.DOTALL | re.IGNORECASE,
)
_EDGES = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)


@dataclass(frozen=True)
class Markup:
    """A page in pieces: what is kept, and between it what is translated."""

    kept: tuple[str, ...]  # one more than there are texts
    texts: tuple[str, ...]

    def filled(self, translations: Sequence[str]) -> str:
        """The page with its texts replaced."""
        said = [html.escape(text, quote=False) for text in translations]
        pairs = zip(self.kept, [*said, ""], strict=True)
        return "".join(part for pair in pairs for part in pair)


def cut(page: str) -> Markup:
    """A page in pieces; spaces at the edges of a text are kept, and so is text that is nothing else."""
    kept, texts, place = [""], [], 0
    for match in [*_KEPT.finditer(page), None]:
        between = page[place : match.start() if match else len(page)]
        edges = _EDGES.fullmatch(between)
        assert edges  # it fits everything
        if edges[2]:
            kept[-1] += edges[1]
            texts.append(html.unescape(edges[2]))
            kept.append(edges[3])
        else:
            kept[-1] += between
        if match:
            kept[-1] += match[0]
            place = match.end()
    return Markup(tuple(kept), tuple(texts))
