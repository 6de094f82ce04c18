"""Reading corpora: what is a line, what is a pair, and what is said of the rest."""

import gzip
import io
from pathlib import Path

import pytest

from regarde.data.corpus import OnError, Report, read_pairs, read_parallel
from regarde.data.formats import Pair
from regarde.data.lines import LINE_LIMIT
from regarde.errors import DataError, UsageError


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def read(
    path: Path,
    content: bytes,
    columns: str | None = None,
    on_error: OnError = "stop",
    quotes: bool | None = None,
) -> tuple[list[Pair], Report]:
    report = Report()
    file = write(path, content)
    return list(read_pairs([file], columns=columns, quotes=quotes, on_error=on_error, report=report)), report


def complaint(
    path: Path,
    content: bytes,
    columns: str | None = None,
    on_error: OnError = "stop",
    quotes: bool | None = None,
) -> str:
    with pytest.raises(DataError) as raised:
        read(path, content, columns, on_error, quotes)
    message = str(raised.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a.tsv.gz", "a.txt.gz"])
def test_two_columns_are_a_pair(name: str, tmp_path: Path) -> None:
    pairs, report = read(tmp_path / name, "un chat\ta cat\nété\tsummer\n".encode())
    assert pairs == [("un chat", "a cat"), ("été", "summer")]
    assert report.summary() == "2 pairs kept"


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_json_lines_have_two_keys_and_others_are_ignored(name: str, tmp_path: Path) -> None:
    content = b'{"source": "a\\tX", "target": "\\u00e9", "id": 7}\n'
    assert read(tmp_path / name, content)[0] == [("a\tX", "é")]


def test_standard_input_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\nc\n")))
    report = Report()
    pairs = read_pairs(["-"], report=report)
    assert next(pairs) == ("a", "b")
    with pytest.raises(DataError, match="standard input, line 2: 1 column, expected 2"):
        next(pairs)


def test_files_follow_one_another(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.tsv", b"a\tb"), write(tmp_path / "b.jsonl", b'{"source": "c", "target": "d"}')]
    assert list(read_pairs(files, report=Report())) == [("a", "b"), ("c", "d")]


# fast_align's source ||| target


@pytest.mark.parametrize("name", ["text.fr-en", "a.txt", "a.tsv", "a", "text.fr-en.gz", "a.fast_align"])
def test_bars_make_pairs_in_a_file_of_any_name(name: str, tmp_path: Path) -> None:
    content = "un chat ||| a cat\nl' été  |||  summer | ||\nx|||y ||| z\n".encode()
    pairs, _ = read(tmp_path / name, content)
    assert pairs == [("un chat", "a cat"), ("l' été", "summer | ||"), ("x|||y", "z")]


def test_bars_come_through_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b ||| c\n")))
    assert list(read_pairs(["-"], report=Report())) == [("a b", "c")]


def test_a_table_may_hold_bars(tmp_path: Path) -> None:
    assert read(tmp_path / "a.tsv", b"a ||| b\tc\nd\te ||| f\n")[0] == [("a ||| b", "c"), ("d", "e ||| f")]
    assert read(tmp_path / "a.tsv", b"a ||| b\tc\tx\n", columns="1:3")[0] == [("a ||| b", "x")]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("a b", "0 times |||, expected source ||| target"),
        ("0 ||| a ||| b", "2 times |||"),
        ("a ||| ", "the target is blank"),
        (" ||| a", "the source is blank"),
        ("|||", "the source is blank"),
        ("a\t||| b", "0 times |||"),
        ("a\tb ||| c", "a TAB in a line of source ||| target"),
        ("", "the line is blank"),
    ],
)
def test_a_bad_line_among_bars_is_named_by_its_number(line: str, told: str, tmp_path: Path) -> None:
    content = f"a ||| b\n{line}\nc ||| d\n".encode()
    message = complaint(tmp_path / "text.fr-en", content)
    assert f"text.fr-en, line 2: {told}" in message
    pairs, report = read(tmp_path / "text.fr-en", content, on_error="skip-any")
    assert (pairs, report.skipped.total()) == ([("a", "b"), ("c", "d")], 1)


def test_the_first_line_that_shows_a_format_decides(tmp_path: Path) -> None:
    assert read(tmp_path / "a.txt", b"\nnothing\na ||| b\n", on_error="skip-any")[0] == [("a", "b")]
    assert "line 2: 1 column, expected 2" in complaint(tmp_path / "a.txt", b"a\tb\nc ||| d\n")


def test_another_suffix_without_bars_is_refused_with_what_is_known(tmp_path: Path) -> None:
    assert "or lines of source ||| target" in complaint(tmp_path / "a.doc", b"a,b\n")
    assert "unknown format" in complaint(tmp_path / "a.doc", b"")


def test_a_line_without_a_tab_is_told_which_separator_it_may_have(tmp_path: Path) -> None:
    assert "separated by TAB, not by commas" in complaint(tmp_path / "a.txt", b"a,b\n")
    assert "separated by TAB, not by semicolons" in complaint(tmp_path / "a.txt", b"a;b\n")


def test_the_lines_of_a_large_file_are_read_as_those_of_a_small_one(tmp_path: Path) -> None:
    """Behind the first 64 KiB, lines are read many at a time."""
    odd = [
        b"x\ty\r\n",
        b"a\tb\tc\n",
        b"\xff\tb\n",
        b" \tb\n",
        b"a\0\tb\n",
        b"alone\n",
        b"\n",
        b"a\t" + b"b" * 2**20 + b"\n",
    ]
    plain = [f'line {i}\tthe "{i}"\n'.encode() for i in range(20_000)]
    for line in odd:
        lines = [*plain[:9_000], line, *plain[9_000:]]
        large, told = read(tmp_path / "a.tsv", b"".join(lines), on_error="skip-any", quotes=False)
        small, reference = read(tmp_path / "b.tsv", b"a\tb\n" + line, on_error="skip-any", quotes=False)
        assert len(large) == told.kept == 20_000 + len(small) - 1
        assert (told.skipped, told.crlf) == (reference.skipped, reference.crlf)
        if reference.skipped:
            assert "a.tsv:9001 " in told.first[0]
    content = b"".join([*plain, b"\xff\tb\n"])
    assert f"at offset {content.index(0xFF):,} of the file" in complaint(tmp_path / "a.tsv", content, quotes=False)


def test_quotes_behind_the_first_lines_are_asked_for_too(tmp_path: Path) -> None:
    lines = ["a\tb\n"] * 20_000 + ['"c"\t"d"\n'] * 20_000
    assert "double quotes enclose fields (40,000 of 80,000; line 20,001" in complaint(
        tmp_path / "a.tsv", "".join(lines).encode()
    )


# Lines


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c", "\x1d", "\x1e"])
def test_lines_end_at_newline_only(character: str, tmp_path: Path) -> None:
    text = f"a{character}b"
    assert read(tmp_path / "a.tsv", f"{text}\t{text}\n".encode())[0] == [(text, text)]


def test_one_carriage_return_before_a_newline_is_removed_and_counted(tmp_path: Path) -> None:
    pairs, report = read(tmp_path / "a.tsv", b"a\tb\r\nc\td\r\r\ne\tf\n")
    assert pairs == [("a", "b"), ("c", "d\r"), ("e", "f")]
    assert (report.crlf, report.lone_cr) == (2, 1)
    assert report.summary() == "3 pairs kept; 2 lines ended in CRLF; warning: 1 have a lone CR inside, kept as text"


def test_a_lone_carriage_return_is_data(tmp_path: Path) -> None:
    pairs, report = read(tmp_path / "a.tsv", b"a\rb\tc\n")
    assert pairs == [("a\rb", "c")]
    assert (report.crlf, report.lone_cr) == (0, 1)


def test_a_byte_order_mark_is_removed_at_the_start_of_a_file_only(tmp_path: Path) -> None:
    pairs, report = read(tmp_path / "a.tsv", "\ufeffa\tb\n\ufeffc\td\n".encode())
    assert pairs == [("a", "b"), ("\ufeffc", "d")]
    assert report.bom == 1
    assert "1 byte order mark removed" in report.summary()


def test_a_last_line_without_newline_is_kept(tmp_path: Path) -> None:
    assert read(tmp_path / "a.tsv", b"a\tb\nc\td")[0] == [("a", "b"), ("c", "d")]


# What is no pair


@pytest.mark.parametrize(
    ("line", "reason", "said"),
    [
        (b"c\td\xff", "invalid UTF-8", "not valid UTF-8 (byte 0xff at offset 7 of the file)"),
        (b"c\xed\xa0\x80\td", "invalid UTF-8", "offset 5"),
        (b"c\0\td", "NUL", "the source holds a NUL"),
        (b"\td", "blank side", "the source is blank"),
        (b"c\t \xe2\x80\xa8 ", "blank side", "the target is blank"),
        (b"", "blank line", "the line is blank"),
        (b"c", "wrong column count", "1 column, expected 2: columns are separated by TAB"),
        (b"c\td\te", "wrong column count", "3 columns, expected 2"),
        (b"c\t" + b"d" * LINE_LIMIT, "too long", "longer than 1,048,576 bytes"),
    ],
)
def test_a_bad_line_stops_or_is_skipped_and_counted(line: bytes, reason: str, said: str, tmp_path: Path) -> None:
    content = b"a\tb\n" + line + b"\ne\tf\n"
    message = complaint(tmp_path / "a.tsv", content)
    assert "line 2: " in message
    assert said in message
    assert "--on-error skip" in message
    pairs, report = read(tmp_path / "a.tsv", content, on_error="skip-any")
    assert pairs == [("a", "b"), ("e", "f")]
    assert report.skipped == {reason: 1}
    assert report.summary() == f"2 pairs kept; 1 skipped (1 {reason})"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"source": "a"', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"source": "a", "target": "b", "n": ' + "9" * 5000 + "}", "not JSON"),
        ('["a", "b"]', "no source and target"),
        ('{"source": "a"}', "no source and target"),
        ('{"source": "a", "target": 3}', "not a string"),
        ('{"source": "a", "target": "\\ud83d"}', "lone surrogate"),
        ('{"source": "a\\u0000", "target": "b"}', "NUL"),
        ('{"source": "a\\nb", "target": "b"}', "line break"),
        ('{"source": " ", "target": "b"}', "blank side"),
    ],
)
def test_a_bad_record_stops_or_is_skipped_and_counted(record: str, reason: str, tmp_path: Path) -> None:
    content = f'{record}\n{{"source": "\\ud83d\\ude00", "target": "b"}}\n'.encode()
    assert "line 1: " in complaint(tmp_path / "a.jsonl", content)
    pairs, report = read(tmp_path / "a.jsonl", content, on_error="skip-any")
    assert pairs == [("😀", "b")]
    assert report.skipped == {reason: 1}


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"a\n\n"])
def test_a_corpus_without_pairs_is_said_plainly(content: bytes, tmp_path: Path) -> None:
    assert "no pairs (0 pairs kept" in complaint(tmp_path / "a.tsv", content, on_error="skip-any")


def test_one_pair_is_a_corpus(tmp_path: Path) -> None:
    assert read(tmp_path / "a.tsv", b"a\tb")[0] == [("a", "b")]


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: b"x" + data, lambda data: data[:30] + b"!" * 9]
)
def test_a_damaged_gzip_is_said_plainly(damage, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(damage(gzip.compress(b"a\tb\n" * 99 + bytes(range(100, 120)))))
    with pytest.raises(DataError, match=r"a\.tsv\.gz: damaged gzip"):
        list(read_pairs([path], on_error="skip-any", report=Report()))


def test_missing_files_and_unknown_formats_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_pairs([tmp_path / "a.tsv"], report=Report())
    with pytest.raises(DataError, match="unknown format"):
        read_pairs([write(tmp_path / "a.xml", b"a,b")], report=Report())


def test_a_folder_is_not_readable(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").mkdir()
    with pytest.raises(DataError, match="not readable"):
        list(read_pairs([tmp_path / "a.tsv"], report=Report()))


# Columns


def test_more_columns_are_listed_and_asked_for(tmp_path: Path) -> None:
    message = complaint(tmp_path / "a.tsv", b"gehen\tV;PST\tging\n", on_error="skip-any")
    assert message.endswith(
        '3 columns (1 "gehen", 2 "V;PST", 3 "ging"). Choose source and target, for example --columns 1+2:3.'
    )


def test_chosen_columns_are_joined_with_a_tab(tmp_path: Path) -> None:
    content = b"gehen\tV;PST\tging\n"
    assert read(tmp_path / "a.tsv", content, "1+2:3")[0] == [("gehen\tV;PST", "ging")]
    assert read(tmp_path / "a.tsv", content, "3:1")[0] == [("ging", "gehen")]


def test_every_line_has_as_many_columns_as_the_first(tmp_path: Path) -> None:
    content = b"\na\tb\tc\nd\te\n"
    assert "line 1: the line is blank" in complaint(tmp_path / "a.tsv", content, "1:3")
    assert read(tmp_path / "a.tsv", content, "1:2", on_error="skip-any")[0] == [("a", "b")]
    assert "line 2: 2 columns, expected 3" in complaint(tmp_path / "a.tsv", content[1:], "1:2")


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert '2 columns (1 "a", 2 "b"), but --columns names more' in complaint(tmp_path / "a.tsv", b"a\tb\n", "1:3")


@pytest.mark.parametrize("columns", ["", "1", "1:0", "0:1", "1:2:3", "a:b", "1+:2", "-1:2", "1:²", "1:2\n"])
def test_columns_that_say_nothing_are_refused(columns: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected source:target"):
        read_pairs([write(tmp_path / "a.tsv", b"a\tb")], columns=columns, report=Report())


def test_json_lines_have_no_columns(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Leave out --columns"):
        read_pairs([write(tmp_path / "a.jsonl", b"{}")], columns="1:2", report=Report())


# Parallel files


def test_parallel_files_are_read_line_by_line(tmp_path: Path) -> None:
    source, target = (
        write(tmp_path / "train.fr.gz", b"un\tdeux\r\ntrois"),
        write(tmp_path / "train.en", b"one\nthree\n"),
    )
    report = Report()
    assert list(read_parallel(source, target, report=report)) == [("un\tdeux", "one"), ("trois", "three")]
    assert (report.kept, report.crlf) == (2, 1)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_parallel_files_of_unequal_length_are_refused_at_once(ending: str, tmp_path: Path) -> None:
    source = write(tmp_path / f"a.fr{ending}", b"x\n" * 1_000)
    target = write(tmp_path / f"a.en{ending}", b"y\n" * 998 + b"y")
    with pytest.raises(DataError, match=r"a\.fr\S* has 1,000 lines and \S*a\.en\S* has 999"):
        read_parallel(source, target, report=Report())


def test_a_pair_of_parallel_lines_is_left_out_once(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.fr", b"a\n\n\xff\nd\n"), write(tmp_path / "a.en", b"a\n\xff\n\n \n")
    with pytest.raises(DataError, match=r"a\.fr, line 2: the source is blank"):
        list(read_parallel(source, target, report=Report()))
    report = Report()
    assert list(read_parallel(source, target, on_error="skip-any", report=report)) == [("a", "a")]
    assert report.skipped == {"blank side": 2, "invalid UTF-8": 1}


def test_damage_in_a_parallel_file_is_told_of_that_file(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.fr.gz", b"a\n" * 9), write(tmp_path / "a.en.gz", b"b\n" * 9)
    source.write_bytes(source.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"a\.fr\.gz: damaged gzip"):
        read_parallel(source, target, report=Report())


def test_parallel_files_must_be_files(tmp_path: Path) -> None:
    file = write(tmp_path / "a.fr", b"a\n")
    with pytest.raises(DataError, match="no such file"):
        read_parallel(file, tmp_path / "a.en", report=Report())
    with pytest.raises(DataError, match="not a regular file"):
        read_parallel(file, tmp_path, report=Report())


@pytest.mark.parametrize("other", [b"", b"\xef\xbb\xbf"])
def test_parallel_files_of_a_byte_order_mark_alone_have_no_pairs(other: bytes, tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.fr", b"\xef\xbb\xbf"), write(tmp_path / "a.en", other)
    with pytest.raises(DataError, match="no pairs"):
        list(read_parallel(source, target, report=Report()))
    target = write(tmp_path / "a.en", b"\n")
    with pytest.raises(DataError, match=r"a\.fr has 0 lines and \S*a\.en has 1"):
        read_parallel(source, target, report=Report())


def test_a_parallel_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.fr", b"a\nb\n"), write(tmp_path / "a.en", b"a\nb\n")
    pairs = read_parallel(source, target, report=Report())
    write(target, b"a\n")
    with pytest.raises(DataError, match="one of them changed while it was read"):
        list(pairs)


# Many lines that are no pairs


def lines_with(bad: int, good: int) -> bytes:
    return b"".join([b"a\tb\n"] * good + [b"c\n"] * bad)


def test_up_to_a_hundredth_of_the_lines_is_skipped_quietly(tmp_path: Path) -> None:
    _, report = read(tmp_path / "a.tsv", lines_with(1, 99), on_error="skip")
    assert not report.warning()
    assert list(report.notes()) == ["99 pairs kept; 1 skipped (1 wrong column count)"]


def test_more_than_a_hundredth_is_a_warning_with_count_share_and_the_first_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    _, report = read(path, lines_with(4, 196), on_error="skip")
    assert report.warning().startswith("warning: 4 of 200 lines skipped (2.0%): ")
    for number in (197, 198, 199):
        assert f"{path}:{number} 1 column, expected 2" in report.warning()
    assert report.warning().endswith("; …")


def test_more_than_a_fifth_is_refused_unless_any_share_is_allowed(tmp_path: Path) -> None:
    assert len(read(tmp_path / "a.tsv", lines_with(20, 80), on_error="skip")[0]) == 80
    message = complaint(tmp_path / "a.tsv", lines_with(21, 79), on_error="skip")
    assert message.startswith("21 of 100 lines skipped (21.0%): ")
    assert "--on-error skip-any" in message
    pairs, report = read(tmp_path / "a.tsv", lines_with(21, 79), on_error="skip-any")
    assert (len(pairs), report.skipped.total()) == (79, 21)
    assert "21.0%" in report.warning()


def test_too_many_skipped_lines_of_parallel_files_are_refused(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.fr", b"a\n\nb\n"), write(tmp_path / "a.en", b"a\nx\nb\n")
    with pytest.raises(DataError, match=r"1 of 3 lines skipped \(33\.3%\): \S*a\.fr:2 the source is blank"):
        list(read_parallel(source, target, on_error="skip", report=Report()))


# Headers and quotes


@pytest.mark.parametrize("row", ["source\ttarget", "English\tGerman", "en\tde", "source ||| target"])
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_header_is_asked_about(row: str, on_error: OnError, tmp_path: Path) -> None:
    content = f"{row}\n{row.replace('e', 'longer ')}\n".encode()
    message = complaint(tmp_path / "a.txt", content, on_error=on_error)
    assert "a.txt, line 1: " in message
    assert message.endswith("--header to skip the row, or --no-header to read it as a pair.")


def test_a_header_is_left_out_or_read_as_the_user_says(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b"\xef\xbb\xbfsource\ttarget\r\na\tb\r\n")
    report = Report()
    assert list(read_pairs([path, path], header=True, report=report)) == [("a", "b")] * 2
    assert "header row skipped (source target)" in report.summary()
    assert (report.bom, report.crlf) == (2, 4)
    assert list(read_pairs([path], header=False, report=Report())) == [("source", "target"), ("a", "b")]


def test_a_header_may_have_other_columns_than_the_rows_below(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b"my pairs\na\tb\n")
    assert list(read_pairs([path], header=True, report=Report())) == [("a", "b")]


def test_chosen_columns_and_several_targets_have_headers_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b"id\tEnglish\tFrench\n7\tcat\tchat\n")
    with pytest.raises(DataError, match="English, French: this seems to name the columns"):
        list(read_pairs([path], columns="2:3", report=Report()))
    path = write(tmp_path / "b.tsv", b"word\tpronunciation\tpronunciation\ncat\tK AE T\n")
    with pytest.raises(DataError, match="--header"):
        list(read_pairs([path], several=True, report=Report()))


def test_parallel_files_have_headers_and_quotes_too(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.fr", b'French\n"un ""x"""\n'), write(tmp_path / "a.en", b"English\none\n")
    with pytest.raises(DataError, match=r"a\.fr and \S*a\.en, line 1: French, English: .*--header"):
        list(read_parallel(source, target, report=Report()))
    with pytest.raises(DataError, match=r"a\.fr: double quotes enclose fields \(1 of 1; line 2: .*--quotes"):
        list(read_parallel(source, target, header=True, report=Report()))
    read_so = list(read_parallel(source, target, header=True, quotes=True, report=Report()))
    assert read_so == [('un "x"', "one")]
    assert list(read_parallel(source, target, header=False, quotes=False, report=Report()))[1][0] == '"un ""x"""'


@pytest.mark.parametrize("content", [b'"a"\t"b ""c"""\n', b'"a" ||| "b ""c"""\n'])
def test_quotes_around_fields_are_asked_about_removed_or_kept(content: bytes, tmp_path: Path) -> None:
    assert "--quotes to remove them, or --no-quotes to keep them" in complaint(tmp_path / "a.txt", content)
    path = tmp_path / "a.txt"
    assert list(read_pairs([path], quotes=True, report=Report())) == [("a", 'b "c"')]
    assert list(read_pairs([path], quotes=False, report=Report())) == [('"a"', '"b ""c"""')]


def test_an_enclosed_field_may_hold_a_tab_but_no_unmatched_quote(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b'"a\tb"\tc\n"d\te\n')
    pairs = read_pairs([path], quotes=True, report=Report())
    assert next(pairs) == ("a\tb", "c")
    with pytest.raises(DataError, match="line 2: a double quote that does not enclose its field"):
        next(pairs)


def test_quotes_throughout_are_asked_about_before_a_long_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b'"a"\t"b"\n' * 1_000)
    report = Report()
    with pytest.raises(DataError, match=r"double quotes enclose fields \(20 of 20; line 1: "):
        list(read_pairs([path], report=report))
    assert report.kept == 9


def test_json_lines_are_asked_nothing(tmp_path: Path) -> None:
    content = b'{"source": "source", "target": "target"}\n{"source": "\\"a\\"", "target": "\\"b\\""}\n'
    assert read(tmp_path / "a.jsonl", content)[0] == [("source", "target"), ('"a"', '"b"')]
    read_so = list(read_pairs([tmp_path / "a.jsonl"], header=True, quotes=True, report=Report()))
    assert read_so == [("source", "target"), ('"a"', '"b"')]


def test_a_line_in_another_encoding_is_told_how_to_convert_the_file(tmp_path: Path) -> None:
    assert "iconv -f WINDOWS-1252 -t UTF-8" in complaint(tmp_path / "a.tsv", "été\tsummer\n".encode("latin-1"))
