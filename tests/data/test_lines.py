"""Bytes as lines: where one ends, how long it may be, what of it can be translated."""

import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde.data.lines import LINE_LIMIT, count_lines, decode_line, read_lines, repair


@given(st.binary(), st.integers(min_value=1, max_value=9))
def test_lines_and_their_endings_make_the_stream_again(content: bytes, limit: int) -> None:
    content = b"." + content  # no byte order mark
    lines = list(read_lines(io.BytesIO(content), limit))
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    whole = list(read_lines(io.BytesIO(content)))
    assert b"".join(line.body + line.ending for line in whole) == content
    for line, full in zip(lines, whole, strict=True):
        assert (line.offset, line.terminated) == (full.offset, full.terminated)
        assert content[line.offset :].startswith(full.raw)
        assert line.too_long == (len(full.raw) > limit)
        assert line.raw == (b"" if line.too_long else full.raw)


def test_a_byte_order_mark_alone_is_no_line() -> None:
    assert list(read_lines(io.BytesIO(b"\xef\xbb\xbf"))) == []


def test_a_byte_order_mark_does_not_count_against_the_limit() -> None:
    (line,) = read_lines(io.BytesIO(b"\xef\xbb\xbfabc\n"), limit=3)
    assert (line.raw, line.offset, line.too_long, line.after_bom) == (b"abc", 3, False, True)


class Endless(io.RawIOBase):
    """A line of a hundred million bytes that never stands in memory, then a short one."""

    def __init__(self) -> None:
        self.left = 100_000_000

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self.left == 0:
            self.left = -1
            buffer[:5] = b"\nend\n"
            return 5
        count = max(0, min(len(buffer), self.left))
        buffer[:count] = b"x" * count
        self.left -= count
        return count


def test_a_line_of_a_hundred_megabytes_never_stands_in_memory() -> None:
    tracemalloc.start()
    lines = list(read_lines(io.BufferedReader(Endless(), 2**20)))  # type: ignore[arg-type, type-var]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(line.raw, line.too_long, line.offset) for line in lines] == [(b"", True, 0), (b"end", False, 100_000_001)]
    assert peak < 8 * LINE_LIMIT


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\xff", b"\xe2\x80\xa8", b"\xef\xbb\xbf"])))
def test_counting_agrees_with_reading(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    content = b"".join(parts)
    path = tmp_path_factory.mktemp("c") / "a"
    path.write_bytes(content)
    assert count_lines(path) == len(list(read_lines(io.BytesIO(content))))


@pytest.mark.parametrize(
    ("raw", "text", "replaced"),
    [
        (b"abc", "abc", False),
        (b"abc\r", "abc", False),
        (b" a\r\r", " a\r", False),
        (b"", "", False),
        (b"a\xffb", "a\ufffdb", True),
        (b"a\0b", "a\ufffdb", True),
        (b"\xed\xa0\x80", "\ufffd" * 3, True),
        ("\ufffd".encode(), "\ufffd", False),
    ],
)
def test_a_line_to_translate_is_always_text(raw: bytes, text: str, replaced: bool) -> None:
    assert decode_line(raw) == (text, replaced)


def test_a_string_to_translate_can_always_be_written() -> None:
    assert repair(json.loads('"a\\ud800\\u0000b"')) == ("a\ufffd\ufffdb", True)
    assert repair("😀") == ("😀", False)
