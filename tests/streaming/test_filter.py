"""The filter behind `regarde translate`, fed with bytes in this process: one line out for each line in."""

from __future__ import annotations

import io
import itertools
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from regarde.data.lines import LINE_LIMIT, refuse_foreign
from regarde.errors import DataError
from regarde.folder.loading import load
from regarde.native import library
from regarde.search import Beam, Greedy, Rules, Search
from regarde.streaming.endpoints import InputStream, Output
from regarde.streaming.filter import LONGEST, WINDOW, WINDOW_BYTES, Counts, Filter, Long
from regarde.streaming.forms import Form, Json, Plain, Ranked
from regarde.translate import Translator

SHORT = Rules(max_ratio=1.0, max_extra=2)  # few steps: what is said does not matter here
GREEDY = Greedy(rules=SHORT)


@pytest.fixture(scope="module", params=["native", "torch"])
def translator(tiny: Path, request: pytest.FixtureRequest) -> Translator:
    if request.param == "native" and not library.available():
        pytest.skip("the native library was not built")
    return load(tiny, engine=request.param)


def answers(
    translator: Translator, content: bytes, form: Form | None = None, search: Search = GREEDY, long: Long = "refuse"
) -> tuple[bytes, Counts]:
    with tempfile.TemporaryFile() as file:
        out = Output(file.fileno(), "a file", regular=True)
        counts = Filter(translator, search, form or Plain(), long).run(InputStream(io.BytesIO(content), "input"), out)
        file.seek(0)
        return file.read(), counts


LINES = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.text(max_size=8).map(lambda text: text.encode("utf-8", errors="surrogatepass")),
        st.sampled_from(
            [b"abc", b" ", b"\t", b"\r", b"\0", b"</s>", b"\xff\xfe", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b\x0c\x1c"]
        ),
        st.sampled_from([b'{"source": "ab", "n": 1}', b'{"source": "a\\nb\\ud800"}', b"{}", b"[[[[", b'{"source": 1}']),
    ),
    max_size=6,
)


def begins_as_text(content: bytes) -> bool:
    try:
        refuse_foreign("input", content[: content.find(b"\n") + 1] or content)
    except DataError:
        return False
    return True


ENDINGS = st.sampled_from([b"\n", b"\r\n", b"\n\n", b""])


@given(lines=LINES, ending=ENDINGS, last=st.booleans())
@example(lines=[b"\xef\xbb\xbf"], ending=b"", last=False)
@example(lines=[b"\xef\xbb\xbf\xef\xbb\xbf", b"\xef\xbb\xbf"], ending=b"\n", last=True)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_give_as_many_lines_out_as_in(
    translator: Translator, lines: list[bytes], ending: bytes, last: bool
) -> None:
    content = ending.join(lines) + (ending if last else b"")
    assume(begins_as_text(content))
    given_text = content.removeprefix(b"\xef\xbb\xbf")
    for form in (Plain(), Json()):
        out, _ = answers(translator, content, form)
        assert out.count(b"\n") == content.count(b"\n")
        out.decode("utf-8")
    plain, _ = answers(translator, content)
    for before, after in zip(given_text.split(b"\n"), plain.split(b"\n"), strict=True):
        assert before.endswith(b"\r") <= after.endswith(b"\r")
        if not before.decode("utf-8", errors="replace").strip():
            assert after in (b"", b"\r")


@given(st.binary(max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_json_lines_out_are_json_whatever_comes_in(translator: Translator, content: bytes) -> None:
    assume(begins_as_text(content))
    out, _ = answers(translator, content, Json())
    for line in out.split(b"\n")[: content.count(b"\n")]:
        record = json.loads(line, parse_constant=pytest.fail)
        assert isinstance(record["text"], str)


def test_more_lines_than_a_window_come_back_in_order(translator: Translator) -> None:
    words = [bytes([97 + n % 26]) * (1 + n % 5) for n in range(2 * WINDOW + 7)]
    out, _ = answers(translator, b"\n".join(words), Json())
    assert [json.loads(line)["source"].encode() for line in out.split(b"\n")] == words


def test_fewer_long_lines_than_short_ones_are_held_at_once(translator: Translator) -> None:
    line = b"a" * (LONGEST // 2) + b"\n"
    content, read = 3 * WINDOW_BYTES // len(line) * line, [0]
    with tempfile.TemporaryFile() as file:
        out = Output(file.fileno(), "a file", regular=True)
        source = InputStream(io.BytesIO(content), "input", size=len(content))
        Filter(translator, GREEDY, Plain()).run(source, out, progress=lambda _, place: read.append(place))
    assert max(after - before for before, after in itertools.pairwise(read)) < WINDOW_BYTES + len(line)


def test_a_last_line_without_newline_is_mirrored(translator: Translator) -> None:
    assert answers(translator, b"abc\nabc")[0].count(b"\n") == 1
    with_end, _ = answers(translator, b"abc\nabc\n")
    without, _ = answers(translator, b"abc\nabc")
    assert with_end == without + b"\n"


def test_crlf_is_mirrored_and_no_part_of_the_sentence(translator: Translator) -> None:
    plain, _ = answers(translator, b"abc\n")
    assert answers(translator, b"abc\r\n") == (plain[:-1] + b"\r\n", Counts())


def test_a_lone_cr_is_text_and_counted(translator: Translator) -> None:
    assert answers(translator, b"a\rb\n", Json())[1] == Counts(lone_cr=1)


def test_a_byte_order_mark_is_left_out_at_the_start_only(translator: Translator) -> None:
    out, _ = answers(translator, "\ufeffabc\n\ufeffabc\n".encode(), Json())
    assert [json.loads(line)["source"] for line in out.splitlines()] == ["abc", "\ufeffabc"]


def test_blank_lines_are_answered_by_empty_lines(translator: Translator) -> None:
    assert answers(translator, "\n \t\n\u2028\n\u3000\r\n".encode()) == (b"\n\n\n\r\n", Counts())


def test_what_is_no_text_is_replaced_and_counted(translator: Translator) -> None:
    out, counts = answers(translator, b'a\xffb\na\0b\n{"source": "a\\ud800b"}\nab\n', Json())
    assert [json.loads(line)["source"] for line in out.splitlines()] == ["a\ufffdb"] * 3 + ["ab"]
    assert counts == Counts(replaced=3)


def test_line_separators_that_are_no_newline_are_text(translator: Translator) -> None:
    text = "a\u2028b\u2029c\u0085d\ve\ff\x1cg"
    out, _ = answers(translator, f"{text}\n".encode(), Json())
    assert json.loads(out)["source"] == text
    assert len(answers(translator, f"{text}\n".encode())[0].split(b"\n")) == 2


def test_both_ways_to_type_an_accent_are_one_text(translator: Translator) -> None:
    composed, _ = answers(translator, "é\n".encode(), Json())
    decomposed, _ = answers(translator, "e\u0301\n".encode(), Json())
    assert composed == decomposed


def test_control_symbols_typed_by_a_user_are_text(translator: Translator) -> None:
    out, _ = answers(translator, b"<s>\n</s>\n<pad>\n", Json())
    for line, typed in zip(out.splitlines(), ["<s>", "</s>", "<pad>"], strict=True):
        record = json.loads(line)
        assert len(record["source_tokens"]) == len(typed) + 1  # a token for each character, and one EOS
        assert record["source_tokens"].count("</s>") == 1


def test_bidirectional_controls_pass_through(translator: Translator) -> None:
    text = "\u202eabc\u202c\u2066d\u2069"
    assert json.loads(answers(translator, f"{text}\n".encode(), Json())[0])["source"] == text


def test_a_line_over_the_limit_is_refused_and_the_others_are_not(translator: Translator) -> None:
    out, counts = answers(translator, b"x" * (LONGEST + 1) + b"\nabc\n" + b"y" * 1_001 + b"\nabc\n")
    abc = answers(translator, b"abc\n")[0]
    assert out == b"\n" + abc + b"\n" + abc
    assert counts == Counts(refused=2)


def test_a_refused_line_says_so_in_json(translator: Translator) -> None:
    line = json.dumps({"id": 7, "source": "y" * 1_001}).encode()
    assert json.loads(answers(translator, line, Json())[0]) == {"id": 7, "source": "", "text": "", "refused": True}


# Lines that are too long, split or truncated


@pytest.fixture(scope="module")
def narrow(translator: Translator) -> Translator:
    return replace(translator, longest=6)


def test_a_long_line_is_split_and_its_answers_are_joined(narrow: Translator) -> None:
    out, counts = answers(narrow, b"abc. de? fghabc\r\nabc\n", long="split")
    pieces, _ = answers(narrow, b"abc.\nde?\nfghabc\nabc\n")
    *cut, abc = pieces.split(b"\n")[:-1]
    assert out == b" ".join(piece for piece in cut if piece) + b"\r\n" + abc + b"\n"
    assert counts == Counts(split=1)


def test_json_of_a_split_line_has_its_pieces_and_what_they_make(narrow: Translator) -> None:
    line = json.dumps({"id": 7, "pieces": "old", "source": "abc. de? fgh"}).encode()
    record = json.loads(answers(narrow, line, Json(), long="split")[0])
    alone = [json.loads(row) for row in answers(narrow, b"abc.\nde?\nfgh", Json())[0].splitlines()]
    assert record["pieces"] == alone
    assert (record["id"], record["source"]) == (7, "abc. de? fgh")
    assert record["text"] == " ".join(piece["text"] for piece in alone if piece["text"])
    assert record["score"] == pytest.approx(sum(piece["score"] for piece in alone), abs=1e-5)
    assert record["finished"] == all(piece["finished"] for piece in alone)


def test_ranks_of_a_split_line_join_ranks(narrow: Translator) -> None:
    search = Beam(size=3, n_best=2, rules=SHORT)
    rows = answers(narrow, b"\nabc. de", Ranked(), search, long="split")[0].decode().split("\n")[1:]
    alone = [row.split("\t") for row in answers(narrow, b"abc.\nde", Ranked(), search)[0].decode().split("\n")]
    for rank, row in enumerate(rows, start=1):
        number, given, score, text = row.split("\t")
        pieces = [piece for piece in alone if piece[1] == given]
        assert (number, given) == ("2", str(rank))
        assert float(score) == pytest.approx(sum(float(piece[2]) for piece in pieces), abs=2e-4)
        assert text == " ".join(piece[3] for piece in pieces if piece[3])
    assert len(rows) == 2


def test_a_long_line_is_truncated_to_its_first_tokens(narrow: Translator) -> None:
    out, counts = answers(narrow, b"abcdefgh\nabc", Json(), long="truncate")
    cut, whole = (json.loads(row) for row in out.splitlines())
    first = json.loads(answers(narrow, b"abcdef\nabc", Json())[0].splitlines()[0])  # with the same neighbor
    assert cut == first | {"truncated": True}
    assert "truncated" not in whole
    assert counts == Counts(truncated=1)


@pytest.mark.parametrize("long", ["split", "truncate"])
def test_between_64_kib_and_a_mebibyte_lines_can_be_cut_and_above_they_are_refused(
    translator: Translator, long: Long
) -> None:
    few = replace(GREEDY, rules=Rules(max_ratio=0.0, max_extra=1))
    out, counts = answers(
        translator, b"x" * (LONGEST + 1) + b"\n" + b"x" * (LINE_LIMIT + 1) + b"\n", search=few, long=long
    )
    assert out.count(b"\n") == 2
    assert out.endswith(b"\n\n")
    assert counts.refused == 1
    assert counts.split + counts.truncated == 1


# What was answered before


@pytest.mark.parametrize("form", [Plain(), Ranked(), Json()])
def test_every_form_knows_its_own_rows_and_not_those_of_others(translator: Translator, form: Form) -> None:
    out, _ = answers(translator, b"abc\n\nde\n", form, Beam(size=3, n_best=2, rules=SHORT))
    number = 0
    for row in out.splitlines(keepends=True):
        number += not (number and form.several_rows and form.recognizes(row, number))
        assert form.recognizes(row, number)
        others = {Plain, Ranked, Json} - {type(form)}
        assert type(form) is Plain or not any(other().recognizes(row, number) for other in others)
    assert number == 3


@pytest.mark.parametrize("answered", [0, 1, 255, 256, 300, 520])
def test_lines_that_were_answered_are_left_out_and_the_rest_is_the_same(translator: Translator, answered: int) -> None:
    content = b"".join(b"%s\n" % (b"abcdefgh" * 2)[: 1 + n % 9] for n in range(520))

    def written(answered: int) -> list[bytes]:
        with tempfile.TemporaryFile() as file:
            out = Output(file.fileno(), "a file", regular=True, answered=answered)
            Filter(translator, GREEDY, Json()).run(InputStream(io.BytesIO(content), "input", size=len(content)), out)
            file.seek(0)
            return file.read().splitlines()

    whole = written(0)
    assert len(whole) == 520
    assert written(answered) == whole[answered:]


def test_fewer_lines_than_to_leave_out_are_refused(translator: Translator) -> None:
    with tempfile.TemporaryFile() as file:
        out = Output(file.fileno(), "a file", regular=True, answered=2)
        with pytest.raises(DataError, match="The input has 2 lines, fewer than the 3 to leave out"):
            Filter(translator, GREEDY, Plain()).run(InputStream(io.BytesIO(b"a\nb\n"), "input"), out, skip=1)


# JSON lines


def test_json_has_scores_tokens_and_a_row_of_attention_for_each_of_them(translator: Translator) -> None:
    record = json.loads(answers(translator, b"abc\n", Json(), Greedy())[0])
    assert record["source_tokens"] == ["a", "b", "c", "</s>"]
    assert record["tokens"][-1] == "</s>"
    assert len(record["attention"]) == len(record["tokens"]) == len(record["token_scores"])
    for row in record["attention"]:
        assert len(row) == 4
        assert sum(row) == pytest.approx(1, abs=1e-4)
    assert record["score"] == pytest.approx(sum(record["token_scores"]), abs=1e-4)
    assert record["text"] == "".join(record["tokens"][:-1])
    assert all(source < 3 and target < len(record["tokens"]) - 1 for source, target in record["links"])


def test_json_fields_pass_through(translator: Translator) -> None:
    fields = {"id": 7, "meta": {"x": [1, None, "é\u2028"]}, "flag": True, "": ""}
    out, _ = answers(translator, json.dumps({"source": "abc"} | fields).encode(), Json())
    assert json.loads(out).items() >= fields.items()
    assert json.loads(out)["text"] == json.loads(answers(translator, b"abc", Json())[0])["text"]


def test_json_fields_that_we_write_are_ours(translator: Translator) -> None:
    line = json.dumps(
        {"source": "abc", "text": "old", "score": "old", "refused": "old", "alternatives": "old"}
    ).encode()
    assert answers(translator, line, Json()) == answers(translator, b'{"source": "abc"}', Json())


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999"])
def test_json_without_a_number_for_it_gets_null(translator: Translator, value: str) -> None:
    out, _ = answers(translator, f'{{"source": "a", "x": {value}}}'.encode(), Json())
    assert json.loads(out, parse_constant=pytest.fail)["x"] is None


@pytest.mark.parametrize("depth", [100, 900, *range(940, 1_000, 3), 5_000, 20_000])
def test_json_of_any_depth_is_answered(translator: Translator, depth: int) -> None:
    line = b'{"source": "a", "x": ' + b"[" * depth + b"]" * depth + b"}"
    out, counts = answers(translator, line + b"\nabc\n", Json())
    assert out.count(b"\n") == 2
    assert json.loads(out.split(b"\n")[1])["source"] == "abc"
    assert counts.replaced == 0


def test_a_number_of_thousands_of_digits_is_answered(translator: Translator) -> None:
    assert answers(translator, b'{"source": "a", "x": ' + b"9" * 5_000 + b"}\n", Json())[0].count(b"\n") == 1


# The n best


def test_the_n_best_are_numbered_and_sorted(translator: Translator) -> None:
    out, _ = answers(translator, b"abc\n\nde\n", Ranked(), Beam(size=4, n_best=3))
    rows = [line.split("\t") for line in out.decode().split("\n")[:-1]]
    assert [row[:2] for row in rows] == [
        ["1", "1"],
        ["1", "2"],
        ["1", "3"],
        ["2", "1"],
        ["3", "1"],
        ["3", "2"],
        ["3", "3"],
    ]
    scores = [float(row[2]) for row in rows if row[0] == "1"]
    assert scores == sorted(scores, reverse=True)
    assert rows[3][3] == ""


def test_an_empty_or_refused_line_has_one_row_among_the_n_best(translator: Translator) -> None:
    long = b"x" * (LONGEST + 1)
    out, counts = answers(translator, b"\n" + long + b"\n" + long + b"\r\nabc", Ranked(), Beam(size=2, n_best=2))
    rows = out.decode().split("\n")
    assert rows[:3] == ["1\t1\t0.0000\t", "2\t1\t0.0000\t", "3\t1\t0.0000\t"]
    assert [row.split("\t")[:2] for row in rows[3:]] == [["4", "1"], ["4", "2"]]
    assert counts.refused == 2


def test_the_n_best_are_n_even_where_the_length_limit_cuts_them(translator: Translator) -> None:
    rules = Rules(max_ratio=0.0, max_extra=3)  # at most two words and EOS: few answers end in time
    out, _ = answers(translator, b"abc\nde\n", Ranked(), Beam(size=5, n_best=5, rules=rules))
    rows = [line.split("\t")[:2] for line in out.decode().splitlines()]
    assert rows == [[line, rank] for line in "12" for rank in "12345"]


def test_the_n_best_of_a_crlf_line_all_end_in_crlf(translator: Translator) -> None:
    out, _ = answers(translator, b"abc\r\n", Ranked(), Beam(size=3, n_best=3, rules=SHORT))
    assert out.count(b"\r\n") == out.count(b"\n") == 3


def test_the_n_best_in_json_are_alternatives(translator: Translator) -> None:
    record = json.loads(answers(translator, b"abc", Json(), Beam(size=3, n_best=3))[0])
    assert len(record["alternatives"]) == 2
    assert all(len(other["attention"]) == len(other["tokens"]) for other in record["alternatives"])
