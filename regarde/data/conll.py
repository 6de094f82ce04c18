"""Tagged sentences: one token a line with its columns, a blank line between sentences, as in the CoNLL shared tasks.

    Wolff       B-PER           columns are separated by TAB or by spaces: the first token of a file decides
    plays       O
                                a blank line ends a sentence, and so does the end of the file
    # text = …                  a comment: a line that begins with # and has no columns (# TAB SYM is a token), or
                                # name = value in a file whose columns are separated by spaces
    -DOCSTART- -X- O O          the start of a document; not a token
    3-4         vom     _ …     CoNLL-U (ten columns): the contraction of the two tokens below is not a token;
                                an empty node, such as 8.1, is not a token either

A sentence becomes a pair: its tokens separated by spaces, and its tags separated by spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from regarde.data.formats import Columns, LineError, Pair, line_text, shape_of
from regarde.data.lines import LINE_LIMIT, File, Line
from regarde.errors import DataError, UsageError, counted

_DOCUMENT = "-DOCSTART-"
_CONLLU_WIDTH = 10  # columns
_NO_TOKEN = re.compile(r"\d+[-.]\d+", re.ASCII)
_SPACES = re.compile(" +")
_NAMES = frozenset({"tag", "tags", "label", "labels", "upos", "xpos", "pos_tags", "ner", "ner_tag", "ner_tags"})


class TaggedToken(NamedTuple):
    """A token and its tag."""

    token: str
    tag: str


class TaggedSentence(NamedTuple):
    """A sentence and its first line, or a malformed line and its error."""

    line: Line
    pair: Pair | None
    error: LineError | None = None


@dataclass
class TaggedFormat:
    """How one file writes a token. The first token sets the separator and the number of columns."""

    file: File
    columns: Columns | None  # of tokens and tags; None where there are two
    separator: str = field(default="", init=False)
    width: int = field(default=0, init=False)
    first: int = field(default=0, init=False)  # the line of the first token

    def __post_init__(self) -> None:
        if self.columns and max(map(len, self.columns)) > 1:
            raise UsageError("--columns: expected one column of tokens and one of tags, for example 1:4.")

    def token(self, text: str, number: int) -> TaggedToken | None:
        """The token on a line that is not blank; None where the line has no token."""
        cells = cells_of(text, self.separator)
        if is_comment(text, cells, self.width):
            return None
        if not self.width:
            self._decide(text, cells, number)
        if len(cells) != self.width:
            separated = "TAB" if self.separator == "\t" else "spaces"
            expected = f"expected {self.width} as on line {self.first:,}, separated by {separated}"
            raise LineError("wrong column count", f"{counted(len(cells), 'column')}, {expected}")
        if self.width == _CONLLU_WIDTH and _NO_TOKEN.fullmatch(cells[0]):
            return None
        token, tag = (cells[side[0]] for side in self.columns or Columns((0,), (1,)))
        _check("token", token)
        _check("tag", tag)
        return TaggedToken(token, tag)

    def _decide(self, text: str, cells: list[str], number: int) -> None:
        """Learn separator and width from the first token. Unclear columns are an error whatever `on_error` is."""
        if len(cells) == 1:
            raise LineError("wrong column count", "1 column, expected a token and its tag, separated by TAB or a space")
        if self.columns is None and len(cells) > 2:
            usual = "2:4" if len(cells) == _CONLLU_WIDTH else f"1:{len(cells)}"
            raise DataError(f"{shape_of(self.file, cells)}. Choose token and tag, for example --columns {usual}.")
        if self.columns and max(self.columns)[0] >= len(cells):
            raise DataError(f"{shape_of(self.file, cells)}, but --columns names more. Choose among these.")
        self.separator, self.width, self.first = "\t" if "\t" in text else " ", len(cells), number


def tagged_sentences(lines: Iterable[Line], form: TaggedFormat) -> Iterator[TaggedSentence]:
    """The sentences of a file. A sentence with a malformed line is reported once, without its tokens."""
    start: Line | None = None
    tokens: list[TaggedToken] = []
    wrong: TaggedSentence | None = None
    size = 0
    for line in lines:
        try:
            text = line_text(line)
            if is_boundary(text):
                yield from _ended(start, tokens, wrong)
                start, tokens, wrong, size = None, [], None, 0
            elif wrong is None and (token := form.token(text, line.number)):
                start = start or line
                tokens.append(token)
                size += len(line.raw)
                if size > LINE_LIMIT:
                    expected = "expected blank lines between sentences"
                    raise LineError("too long", f"a sentence of more than {LINE_LIMIT:,} bytes, {expected}")
        except LineError as error:
            wrong = wrong or TaggedSentence(line, None, error)
    yield from _ended(start, tokens, wrong)


def is_boundary(text: str) -> bool:
    """Whether a line separates sentences: it is blank, or starts a document."""
    return not text or text.isspace() or text.startswith(_DOCUMENT)


def is_comment(text: str, cells: list[str], width: int) -> bool:
    """Whether a line is a comment. `width` is the number of columns of the file, 0 if not yet known."""
    if not text.startswith("#") or "\t" in text:
        return False
    if cells[0] == "#" and cells[2:3] == ["="]:  # as many words as columns, perhaps
        return True
    return len(cells) != width if width else len(cells) != 2 or cells[0] == "#"


def cells_of(text: str, separator: str = "") -> list[str]:
    """The columns of a line, separated by TAB or, else, by spaces; without a separator the line decides."""
    if separator == "\t" or (not separator and "\t" in text):
        return text.split("\t")
    return _SPACES.split(text.strip(" "))


def names_columns(cells: list[str]) -> bool:
    """Whether the first line of a file is a header."""
    return len(cells) > 1 and cells[-1].strip(" ").casefold() in _NAMES


def _ended(start: Line | None, tokens: list[TaggedToken], wrong: TaggedSentence | None) -> Iterator[TaggedSentence]:
    if wrong:
        yield wrong
    elif start:
        yield TaggedSentence(start, Pair(*(" ".join(side) for side in zip(*tokens, strict=True))))


def _check(name: str, cell: str) -> None:
    if not cell or cell.isspace():
        raise LineError(f"blank {name}", f"the {name} is blank")
    if " " in cell:
        raise LineError(f"space in a {name}", f"the {name} has a space inside, expected none: write _ for it")
