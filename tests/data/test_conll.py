"""Reading tagged sentences: what is a token, what ends a sentence, and what is said of the rest."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from regarde.data.corpus import OnError, Report, read_tagged
from regarde.data.formats import Pair
from regarde.data.lines import LINE_LIMIT
from regarde.errors import DataError, UsageError

TWO = [("Wolff plays", "B-PER O"), ("No", "O")]


def read(
    path: Path,
    content: bytes,
    columns: str | None = None,
    header: bool | None = None,
    on_error: OnError = "stop",
    report: Report | None = None,
) -> list[Pair]:
    path.write_bytes(content)
    report = Report() if report is None else report
    return list(read_tagged([path], columns=columns, header=header, on_error=on_error, report=report))


@pytest.mark.parametrize(
    "content",
    [
        b"Wolff\tB-PER\nplays\tO\n\nNo\tO\n\n",
        b"Wolff B-PER\nplays O\n\nNo O\n\n",
        b"Wolff   B-PER \nplays   O\n\nNo      O\n",
        b"Wolff\tB-PER\r\nplays\tO\r\n\r\nNo\tO\r\n",
        b"Wolff\tB-PER\nplays\tO\n\nNo\tO",  # no blank line at the end, nor a line end
        b"\n\nWolff\tB-PER\nplays\tO\n \t\n\n\nNo\tO\n\n\n",
        b"\xef\xbb\xbfWolff\tB-PER\nplays\tO\n\nNo\tO\n",
        b"# sent_id = 1\n# text = Wolff plays\nWolff\tB-PER\nplays\tO\n\n# 2\nNo\tO\n",
        b"# sent_id = 1\nWolff B-PER\nplays O\n\n# sent_id = 2\nNo O\n",
        b"-DOCSTART- -X- O O\n\nWolff B-PER\nplays O\n-DOCSTART-\nNo O\n",
    ],
)
def test_a_blank_line_or_the_end_of_the_file_ends_a_sentence(content: bytes, tmp_path: Path) -> None:
    assert read(tmp_path / "a.conll", content) == TWO


def test_a_compressed_file_and_several_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    first, second = tmp_path / "a.tsv.gz", tmp_path / "b.txt"
    first.write_bytes(gzip.compress(b"Wolff\tB-PER\nplays\tO\n"))
    second.write_bytes(b"No O\n")  # another separator
    report = Report()
    assert list(read_tagged([first, second], report=report)) == TWO
    assert report.summary() == "2 pairs kept"


@pytest.mark.parametrize("separator", ["\t", " "])
def test_a_number_sign_with_a_tag_is_a_token(separator: str, tmp_path: Path) -> None:
    content = f"#tag{separator}X\n#{separator}SYM\n1{separator}NUM\n"
    assert read(tmp_path / "a.tsv", content.encode()) == [("#tag # 1", "X SYM NUM")]
    assert read(tmp_path / "a.tsv", b"#\tSYM\n") == [("#", "SYM")]


def test_a_comment_with_as_many_words_as_columns_is_no_token(tmp_path: Path) -> None:
    """# sent_id = 2 has four words, as a token of CoNLL-2003 has four columns."""
    content = b"# sent_id = 1\nWolff NNP I-NP B-PER\nplays VBZ I-VP O\n\n# sent_id = 2\nNo UH I-INTJ O\n"
    assert read(tmp_path / "a.txt", content, "1:4") == TWO
    assert read(tmp_path / "a.txt", b"a DT I-NP O\n# SYM I-NP O\n", "1:2") == [("a #", "DT SYM")]


def test_columns_choose_tokens_and_tags(tmp_path: Path) -> None:
    content = b"Wolff NNP I-NP B-PER\nplays VBZ I-VP O\n\nNo UH I-INTJ O\n"
    assert read(tmp_path / "a.txt", content, "1:4") == TWO
    assert read(tmp_path / "a.txt", content, "1:2")[0] == ("Wolff plays", "NNP VBZ")


def test_contractions_and_unwritten_words_of_conll_u_are_no_tokens(tmp_path: Path) -> None:
    rest = "\t_" * 6
    rows = [f"1-2\tvom\t_\t_{rest}", f"1\tvon\t_\tADP{rest}", f"2\tdem\t_\tDET{rest}", f"2.1\tx\t_\tX{rest}"]
    assert read(tmp_path / "a.conllu", "\n".join(rows).encode(), "2:4") == [("von dem", "ADP DET")]
    assert read(tmp_path / "a.tsv", b"1-2\tNUM\n", None) == [("1-2", "NUM")]  # not of ten columns


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (b"a\tX\n\nb\tY\tZ\n", None, "line 3: 3 columns, expected 2 as on line 1, separated by TAB. Repair the line"),
        (b"a X\nb\n", None, "line 2: 1 column, expected 2 as on line 1, separated by spaces. Repair the line"),
        (b"a X\nb\tY\n", None, "line 2: 1 column, expected 2"),
        (b"word\n", None, "line 1: 1 column, expected a token and its tag, separated by TAB or a space. Repair"),
        (
            b"a\tX\tY\n",
            None,
            '3 columns (1 "a", 2 "X", 3 "Y"). Choose token and tag, for example --columns 1:3.',
        ),
        (b"1" + b"\t_" * 9 + b"\n", None, "…). Choose token and tag, for example --columns 2:4."),
        (b"a\tX\tY\n", "1:4", "but --columns names more"),
        (b"1 000\tNUM\n", None, "line 1: the token has a space inside, expected none: write _ for it. Repair"),
        (b"a\tX Y\n", None, "line 1: the tag has a space inside"),
        (b"a\t\n", None, "line 1: the tag is blank"),
        (b"a\tX\n\tY\n", None, "line 2: the token is blank"),
        (b"a\tX\n\xff\tY\n", None, "line 2: not valid UTF-8 (byte 0xff at offset 4 of the file). Repair"),
        (b"a\0\tX\n", None, "line 1: the sentence holds a NUL"),
        (b"# text\n\n", None, "no pairs (0 pairs kept)"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_remedy(
    content: bytes, columns: str | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as raised:
        read(tmp_path / "a.tsv", content, columns)
    assert str(raised.value).startswith(str(tmp_path / "a.tsv"))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_sentence_with_wrong_lines_is_skipped_whole_and_counted_once(tmp_path: Path) -> None:
    good = b"c\tZ\nd\tZ\n\n" * 9
    report = Report()
    pairs = read(tmp_path / "a.tsv", b"a\tX\nb\nb b\tY\na\tX\n\n" + good, on_error="skip", report=report)
    assert pairs == [("c d", "Z Z")] * 9
    assert report.summary() == "9 pairs kept; 1 skipped (1 wrong column count)"
    assert report.first == [f"{tmp_path / 'a.tsv'}:2 1 column, expected 2 as on line 1, separated by TAB"]


def test_a_file_without_blank_lines_is_not_one_sentence_of_any_size(tmp_path: Path) -> None:
    content = b"abcdefg\tX\n" * (LINE_LIMIT // 9 + 1)
    with pytest.raises(DataError, match=r"line 116509: a sentence of more than 1,048,576 bytes, expected blank lines"):
        read(tmp_path / "a.tsv", content)


def test_tokens_and_tags_are_one_column_each(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected one column of tokens and one of tags"):
        read(tmp_path / "a.tsv", b"a\tX\tY\n", "1+2:3")


def test_a_missing_file_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_tagged([tmp_path / "a.tsv"], report=Report())


def test_a_header_is_asked_about(tmp_path: Path) -> None:
    content = b"token\tner_tags\nNo\tO\n"
    with pytest.raises(DataError, match=r"line 1: token, ner_tags: this seems to name the columns.* --header to skip"):
        read(tmp_path / "a.tsv", content)
    report = Report()
    assert read(tmp_path / "a.tsv", content, header=True, report=report) == [("No", "O")]
    assert report.headers == ["token ner_tags"]
    assert read(tmp_path / "a.tsv", content, header=False) == [("token No", "ner_tags O")]


def test_line_ends_are_counted(tmp_path: Path) -> None:
    report = Report()
    read(tmp_path / "a.tsv", b"a\tX\r\n\r\n", report=report)
    assert report.crlf == 2


ILLEGAL = b"# 1\nAnna\tI-PER\nWolff\tI-PER\n\nin\tO\nNew\tB-LOC\nYork\tI-LOC\nBonn\tI-PER\n"


def test_illegal_tags_are_repaired_and_counted(tmp_path: Path) -> None:
    report = Report()
    assert read(tmp_path / "a.tsv", ILLEGAL, report=report) == [
        ("Anna Wolff", "B-PER I-PER"),
        ("in New York Bonn", "O B-LOC I-LOC B-PER"),
    ]
    assert list(report.notes()) == ["2 pairs kept; 2 illegal tags repaired, which --on-error strict refuses"]


def test_the_scheme_is_that_of_all_files(tmp_path: Path) -> None:
    """A last tag of BIOES in the second file makes a tag of the first one illegal."""
    first, second = tmp_path / "a.tsv", tmp_path / "b.tsv"
    first.write_bytes(b"Anna\tB-PER\nWolff\tI-PER\n")
    second.write_bytes(b"Bonn\tS-LOC\n")
    report = Report()
    tags = [pair.target for pair in read_tagged([first, second], report=report)]
    assert (tags, report.repaired) == (["B-PER E-PER", "S-LOC"], 1)


def test_tags_without_spans_and_the_older_scheme_stay_as_they_are(tmp_path: Path) -> None:
    older = b"Anna\tI-PER\n,\tO\nBonn\tI-LOC\nUlm\tB-LOC\n"
    for content, tags in [(b"a\tDET\nI\tPRON\n", "DET PRON"), (older, "I-PER O I-LOC B-LOC")]:
        report = Report()
        ((_, found),) = read(tmp_path / "a.tsv", content, report=report)
        assert (found, report.repaired) == (tags, 0)


def test_illegal_tags_are_refused_if_reading_is_strict(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    with pytest.raises(DataError) as error:
        read(path, ILLEGAL, on_error="strict")
    assert str(error.value) == (
        f"{path}, line 2: the tag of 'Anna', token 1 of this sentence, is I-PER, expected B-PER (BIO). "
        "Repair it, or leave out --on-error strict: then it is repaired and counted."
    )
    with pytest.raises(DataError, match="line 2: 1 column"):
        read(path, b"a\tO\nb\n", on_error="strict")
