"""Double quotes that enclose fields: removed where a user says so, and noticed where nobody did."""

import csv
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde.data.dialect import QuoteCount, fields_of, unquoted
from regarde.errors import DataError

FIELD = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=8) | st.text('"\ta', max_size=5)


@given(st.lists(FIELD, min_size=1, max_size=4), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
def test_what_a_csv_writer_encloses_comes_back(fields: list[str], quoting: int) -> None:
    line = io.StringIO()
    csv.writer(line, delimiter="\t", quoting=quoting, lineterminator="").writerow(fields)  # type: ignore[arg-type]
    assert fields_of(line.getvalue()) == fields


@pytest.mark.parametrize("line", ['"a\tb', '"a"b\tc', 'a\t"', '"a""\tb'])
def test_a_quote_that_does_not_end_its_field_gives_no_fields(line: str) -> None:
    assert fields_of(line) is None


def test_a_quote_inside_a_plain_field_is_a_character() -> None:
    assert fields_of('a "b"\t5"') == ['a "b"', '5"']
    assert unquoted('"a ""b"""') == 'a "b"'
    assert unquoted('"a" b') is None


def test_a_line_of_quotes_takes_time_in_proportion_to_its_length() -> None:
    def seconds(line: str) -> float:
        began = time.perf_counter()
        fields_of(line)
        return time.perf_counter() - began

    for line in ('"' * 200_001, '"a' * 100_000, '""a' * 70_000, '"\t' * 100_000):
        assert min(seconds(line) for _ in range(3)) < 1.0


def counted(*lines: str) -> QuoteCount:
    count = QuoteCount("a.tsv")
    for number, line in enumerate(lines, start=1):
        count.add(line, number)
    return count


@pytest.mark.parametrize(
    "lines",
    [
        ['"a"\t"b"'],
        ['"a ""b"""\t"c"', '"d"\t"e"'],
        ['"forty two"\t42', '"one"\t1'],
        [*(f"plain {n}\ttext" for n in range(500)), *(f'"a, {n}"\tb' for n in range(10))],
    ],
)
def test_enclosed_fields_are_asked_about(lines: list[str]) -> None:
    with pytest.raises(DataError, match=r"a\.tsv: .* --quotes to remove them, or --no-quotes to keep them as text\."):
        counted(*lines).ask()


@pytest.mark.parametrize(
    "lines",
    [
        ["a\tb"],
        ['"Go!" he said.\t« Va ! » dit-il.'],
        ['"Go!"\t"Va !"', '"Who?" "Me."\t"Qui ?" "Moi."'],
        ['"\tPUNCT', '"a"\tX'],
        [*(f"plain {n}\ttext" for n in range(500)), *(f'"a, {n}"\tb' for n in range(9))],
        [*(f'"a {n}"\t"b"' for n in range(500)), 'the 5" disc\tb'],
    ],
)
def test_quotes_of_a_text_are_not_asked_about(lines: list[str]) -> None:
    counted(*lines).ask()
