"""Files that are not UTF-8 text are named by what they are."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regarde.alignment.gold import read_gold
from regarde.data.corpus import Report, read_pairs, read_parallel
from regarde.data.lines import count_lines, encoding_of, lines_of, refuse_foreign
from regarde.errors import DataError

WIDE = ["UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32", "UTF-32LE", "UTF-32BE"]
TEXTS = [
    "a\tb\nc\td\n",
    "été\tsummer\n",
    "Привет мир\tHello\n",
    "今日は\t天気\n",
    '{"source": "猫", "target": "chat"}\n',
]


def first_line(content: bytes) -> bytes:
    return content[: content.find(b"\n") + 1]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("encoding", WIDE)
def test_wide_encodings_are_known_by_their_first_line(encoding: str, text: str) -> None:
    assert encoding_of(first_line(text.encode(encoding))) == encoding


@pytest.mark.parametrize(("codec", "name"), [("UTF-16BE", "UTF-16"), ("UTF-32BE", "UTF-32"), ("UTF-32LE", "UTF-32")])
def test_a_byte_order_mark_decides_in_either_order(codec: str, name: str) -> None:
    assert encoding_of("\ufeffa\tb\n".encode(codec)) == name


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_text_in_utf_8_without_nul_is_never_taken_for_another_encoding(text: str) -> None:
    assert encoding_of(text.replace("\0", "").encode()) is None


@pytest.mark.parametrize("line", ["a\tb", "the cat sat\ton the mat", "Il a été là.\tHe was there.", "今日は\t天気"])
def test_a_stray_nul_is_not_taken_for_another_encoding(line: str) -> None:
    content = f"{line}\n".encode()
    for place in range(len(content)):
        assert encoding_of(content[:place] + b"\0" + content[place:]) is None


FILES = {
    "gzip-compressed": gzip.compress(b"a\tb\n"),
    "bzip2-compressed": b"BZh91AY&SY\x12",
    "xz-compressed": b"\xfd7zXZ\x00\x00",
    "zstd-compressed": b"\x28\xb5\x2f\xfd\x04",
    "a zip archive or an Office document (.xlsx, .docx, .ods)": b"PK\x03\x04\x14\x00",
    "an Office document (.xls, .doc)": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00",
    "a PDF document": b"%PDF-1.7\n",
    "a Parquet file": b"PAR1\x15\x04",
    "an SQLite database": b"SQLite format 3\x00\x10",
}


@pytest.mark.parametrize("kind", FILES)
def test_archives_and_documents_are_named(kind: str) -> None:
    with pytest.raises(DataError) as raised:
        refuse_foreign("my.tsv", FILES[kind])
    assert str(raised.value).startswith(f"my.tsv: {kind}, expected UTF-8 text. ")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("my.tsv", "iconv -f UTF-16 -t UTF-8 my.tsv > my.utf8.tsv"),
        ("a b/my.tsv.gz", "gzip -dc 'a b/my.tsv.gz' | iconv -f UTF-16 -t UTF-8 > 'a b/my.utf8.tsv'"),
        ("standard input", "… | iconv -f UTF-16 -t UTF-8 | regarde …"),
    ],
)
def test_the_command_that_converts_a_file_is_given(name: str, command: str) -> None:
    with pytest.raises(DataError) as raised:
        refuse_foreign(name, "a\tb\n".encode("UTF-16"))
    assert str(raised.value) == f"{name}: UTF-16, expected UTF-8. Convert it: {command}"


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a", "a.jsonl", "a.fr-en", "a.csv", "a.tsv.gz", "a.jsonl.gz"])
@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16BE", "UTF-32LE"])
def test_every_format_of_pairs_names_a_wide_encoding(encoding: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    content = "a\tb\nc\td\n".encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    with pytest.raises(DataError, match=rf"{name}: {encoding}, expected UTF-8\. Convert it: .*iconv -f {encoding} "):
        list(read_pairs([path], on_error="skip", report=Report()))


def test_parallel_files_name_a_wide_encoding_before_they_are_counted(tmp_path: Path) -> None:
    source, target = tmp_path / "a.fr", tmp_path / "a.en"
    source.write_text("un\ndeux\n")
    target.write_text("今日は\n天気\n雨\n", encoding="UTF-16LE")  # no NUL in its first line, and another count
    with pytest.raises(DataError, match=r"a\.en: UTF-16LE, expected UTF-8"):
        read_parallel(source, target, report=Report())


def test_links_name_a_wide_encoding_and_may_be_compressed(tmp_path: Path) -> None:
    path = tmp_path / "test.gold"
    path.write_text("0-0 1-1\n", encoding="UTF-16")
    with pytest.raises(DataError, match=r"test\.gold: UTF-16, expected UTF-8"):
        read_gold(path)
    path = tmp_path / "test.gold.gz"
    path.write_bytes(gzip.compress(b"0-0 1-1\n"))
    assert len(read_gold(path).pairs) == 1


def test_a_long_first_line_is_named_too(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"%PDF-" + b"x" * 2**21)
    for read in (count_lines, lambda file: list(lines_of(file))):
        with pytest.raises(DataError, match="a PDF document"):
            read(path)
