"""The task of a file, inferred from its first lines.

tagging          a token and its columns on each line, blank lines between sentences, and few different tags
classification   two columns, one of them a small closed set of labels, in either order
translation      two columns of text, or more columns
modeling         one column: language modeling
forecasting      a .csv table of numbers, with a time column or one series a row; JSON lists of numbers; .parquet
questions        passage, question and answer, as keys of JSON lines or names of columns, or SQuAD's JSON

A file is running text, not a list of lines, if blank lines divide it into paragraphs or each line is a paragraph.
A set of labels is closed if it is small compared with the number of rows and each label has several texts.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from regarde.data.conll import cells_of, is_boundary, is_comment
from regarde.data.formats import BARS, Columns, LineError
from regarde.data.lines import inner_suffix, lines_of
from regarde.data.questions import names_of
from regarde.data.records import cells_of_csv, rows_of
from regarde.data.tables import is_table_of_series, looks_like_series
from regarde.errors import DataError, counted

TaskKind = Literal["translation", "modeling", "classification", "tagging", "questions", "forecasting"]

LOOKED_AT = 20_000  # lines at the start of a file
FEWEST_ROWS = 10  # fewest rows of a table that may have a column of labels
MOST_LABELS = 200  # and at most twice the square root of the number of rows
TEXTS_PER_LABEL = 3  # fewest different texts per label, on average
LABEL_WORDS, LABEL_CHARACTERS = 4, 60  # the longest label
ALIKE = 0.98  # the share of lines with the most frequent number of columns, in a file of tagged sentences
SENTENCE_TOKENS = 1.5  # least mean length of a sentence; below it, the blank lines do not separate sentences
BLANK = 0.02  # least share of blank lines in a running text …
PARAGRAPH = 400  # … or least mean length of its lines, in characters
_SHOWN = 4  # labels in a reason
_LONGEST_SHOWN = 20  # characters of each


@dataclass(frozen=True)
class TaskGuess:
    """A task, the reason, and the columns of source and target if these are not the first and the second."""

    kind: TaskKind
    reason: str  # one sentence
    columns: str | None = None


def first_lines(file: Path) -> list[str]:
    """The lines that a guess is based on; of a file whose rows are not lines, its pairs. None of a table of numbers."""
    suffix = inner_suffix(file)
    if suffix in (".parquet", ".arrow", ".tmx"):
        try:
            if suffix == ".parquet" and is_table_of_series(file):
                return []
            return ["\t".join(row.pair) for row in islice(rows_of(file, None), LOOKED_AT) if row.pair]
        except DataError:  # reading the file raises it
            return []
    return [line.body.decode("utf-8", errors="replace") for line in islice(lines_of(file), LOOKED_AT)]


def infer_task(lines: Sequence[str], name: str, columns: Columns | None = None) -> TaskGuess:
    """The task of a file, inferred from its name and first lines. `columns` are those that the user chose."""
    suffix = inner_suffix(Path(name))
    if suffix == ".parquet" and not lines:
        return TaskGuess("forecasting", "The name ends in .parquet.")
    if reason := looks_like_series(lines, suffix):
        return TaskGuess("forecasting", reason)
    if suffix == ".json":
        return TaskGuess("questions", "The name ends in .json, as SQuAD's files.")
    if suffix == ".jsonl":
        return _of_records(lines)
    if suffix == ".csv":
        rows_of_cells = cells_of_csv((f"{line}\n" for line in lines), lines[:LOOKED_AT])
        lines = ["\t".join(row) for row in rows_of_cells if not isinstance(row, LineError)]
    if lines and names_of(lines[0]) and columns is None:
        return TaskGuess("questions", "The first row names passage, question and answer.")
    if guess := _tagging(lines, columns):
        return guess
    rows = [line for line in lines if line and not line.isspace()]
    tabs = sum("\t" in row for row in rows)
    if 2 * tabs > len(rows):
        return _of_table(rows, columns)
    if 2 * sum(bool(BARS.search(row)) for row in rows) > len(rows):
        sides = [BARS.split(row) for row in rows]
        return _of_pairs([(side[0], side[1]) for side in sides if len(side) == 2], "source ||| target")
    without = f"{counted(tabs, 'line')} with a TAB among {len(rows):,}" if tabs else "no line has a TAB"
    return TaskGuess("modeling", f"One column of text: {without}.")


def running(lines: Sequence[str]) -> str:
    """The reason to read a file that begins with these lines as running text; empty if it is a list of lines."""
    blank = sum(not line or line.isspace() for line in lines[:-1])
    if len(lines) >= FEWEST_ROWS and blank >= BLANK * len(lines):
        return f"{blank:,} of {counted(len(lines), 'line')} are blank"
    mean = sum(map(len, lines)) / max(1, len(lines))
    return f"lines of {mean:,.0f} characters on average" if mean >= PARAGRAPH else ""


def _tagging(lines: Sequence[str], columns: Columns | None) -> TaskGuess | None:
    separator = "\t" if 2 * sum("\t" in line for line in lines) > sum(not is_boundary(line) for line in lines) else " "
    rows: list[list[str]] = []
    sentences, inside = 0, False
    for line in lines:
        if is_boundary(line):
            inside = False
        elif not is_comment(line, cells := cells_of(line, separator), len(rows[0]) if rows else 0):
            rows.append(cells)
            sentences += not inside
            inside = True
    if sentences < 2 or len(rows) < SENTENCE_TOKENS * sentences:
        return None
    width, times = Counter(map(len, rows)).most_common(1)[0]
    if width < 2 or times < ALIKE * len(rows):
        return None
    rows = [row for row in rows if len(row) == width]
    if sum(" " in row[0] or " " in row[1] for row in rows) > (1 - ALIKE) * len(rows):
        return None
    # if the file does not have the chosen columns, reading it raises the error
    candidates = [columns.target[0]] if columns and max(columns)[0] < width else range(1, width)
    tags = {i: kinds for i in candidates if i < width and (kinds := _closed([row[i] for row in rows]))}
    if width > 2:
        tags = {i: kinds for i, kinds in tags.items() if kinds > 1}  # an unused column has one
    if not tags:
        return None
    found = ", ".join(f"{counted(kinds, 'different tag')} in column {i + 1}" for i, kinds in islice(tags.items(), 2))
    return TaskGuess("tagging", f"Blank lines separate {sentences:,} sentences, one token a line: {found}.")


def _of_table(rows: Sequence[str], columns: Columns | None) -> TaskGuess:
    table = [row.split("\t") for row in rows]
    width = Counter(map(len, table)).most_common(1)[0][0]
    table = [row for row in table if len(row) == width]
    if columns and max(*columns.source, *columns.target) < width:
        pairs = [
            ("\t".join(row[i] for i in columns.source), "\t".join(row[i] for i in columns.target)) for row in table
        ]
        return _of_pairs(pairs, f"{width} columns")
    if width == 2:
        return _of_pairs([(row[0], row[1]) for row in table], "two columns", either=columns is None)
    return TaskGuess("translation", f"{width} columns.")


def _of_records(lines: Sequence[str]) -> TaskGuess:
    pairs, questions = [], 0
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue  # reading the file raises the error
        questions += isinstance(record, dict) and {"passage", "question"} <= record.keys()
        if isinstance(record, dict) and all(isinstance(record.get(key), str) for key in ("source", "target")):
            pairs.append((record["source"], record["target"]))
    if 2 * questions > len(lines):
        return TaskGuess("questions", "The keys are passage and question.")
    return _of_pairs(pairs, "source and target")


def _of_pairs(pairs: Sequence[tuple[str, str]], what: str, *, either: bool = False) -> TaskGuess:
    """Classification if the second of each pair is a label or, with `either`, the first."""
    for side, columns in ((1, None), (0, "2:1")) if either else ((1, None),):
        labels, texts = [pair[side] for pair in pairs], {pair[1 - side] for pair in pairs}
        count = _closed(labels)
        if len(pairs) >= FEWEST_ROWS and count and len(texts) >= TEXTS_PER_LABEL * count:
            where = f"column {side + 1}" if either else "the target"
            reason = f"{where} has {counted(count, 'different label')} ({_sample(labels)}) for {len(texts):,} texts"
            return TaskGuess("classification", f"{reason[0].upper()}{reason[1:]}.", columns)
    return TaskGuess("translation", f"{what[0].upper()}{what[1:]}, neither of them a small set of labels.")


def _closed(cells: Sequence[str]) -> int:
    """The number of different labels; 0 if they are not a closed set."""
    kinds = set(cells)
    if len(kinds) > min(MOST_LABELS, 2 * math.sqrt(len(cells))):
        return 0
    labels = all(len(one) <= LABEL_CHARACTERS and len(one.split()) <= LABEL_WORDS for one in kinds)
    return len(kinds) if labels else 0


def _sample(labels: Sequence[str]) -> str:
    """The most frequent labels, for a reason."""
    common = [label for label, _ in Counter(labels).most_common(_SHOWN + 1)]
    shown = [label if len(label) <= _LONGEST_SHOWN else f"{label[:_LONGEST_SHOWN]}…" for label in common[:_SHOWN]]
    return ", ".join([*shown, "…"] if len(common) > _SHOWN else shown)
