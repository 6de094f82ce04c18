"""Files whose rows are not lines, compressed files, and the conversion of each format into each other."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from regarde.data.corpus import Report, read_pairs
from regarde.data.formats import Pair
from regarde.data.kinds import first_lines, infer_task
from regarde.data.records import files_in
from regarde.data.writing import write_pairs
from regarde.errors import DataError, UsageError

PAIRS = [Pair('le "chat", dort', "the cat; sleeps"), Pair("<b> & 'été'", "a ]]> b"), Pair("今日", "today")]
SUFFIXES = [".tsv", ".jsonl", ".csv", ".tmx", ".parquet", ".arrow", ".tsv.gz", ".jsonl.xz", ".csv.bz2", ".tmx.zst"]


def read(path: Path, **options: object) -> list[Pair]:
    return list(read_pairs([path], report=Report(), **({"quotes": False, "header": ".csv" in path.name} | options)))  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_in_every_format(tmp_path: Path, suffix: str) -> None:
    assert write_pairs(iter(PAIRS), tmp_path / f"a{suffix}") == 3
    assert read(tmp_path / f"a{suffix}") == PAIRS
    assert [path.name for path in tmp_path.iterdir()] == [f"a{suffix}"]


def test_a_format_without_tabs_refuses_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a text with a TAB"):
        write_pairs([Pair("a\tb", "c")], tmp_path / "a.tsv")
    assert list(tmp_path.iterdir()) == []
    write_pairs([Pair("a\tb", "c")], tmp_path / "a.jsonl")
    assert read(tmp_path / "a.jsonl") == [("a\tb", "c")]
    with pytest.raises(UsageError, match="unknown format"):
        write_pairs([], tmp_path / "a.pdf")


@pytest.mark.parametrize("separator", [",", ";"])
def test_cells_of_csv_hold_separators_quotes_and_line_breaks(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'a{separator}"b {separator} ""c"""\n"x\ny"{separator}z\n1{separator}2\n')
    with pytest.raises(DataError, match=r"line 3: the source holds a line break"):
        read(path, header=False)
    assert read(path, header=False, on_error="skip-any") == [("a", f'b {separator} "c"'), ("1", "2")]


def test_a_header_of_csv_is_asked_for_and_columns_are_chosen(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("en,de\nhouse,Haus\ngarden,Garten\n")
    with pytest.raises(DataError, match="--header"):
        read(path, header=None)
    assert read(path, header=True) == [("house", "Haus"), ("garden", "Garten")]
    path.write_text("1,house,Haus\n2,garden,Garten\n")
    with pytest.raises(DataError, match=r"3 columns.*--columns"):
        read(path, header=False)
    assert read(path, header=False, columns="3:2") == [("Haus", "house"), ("Garten", "garden")]


def test_csv_that_cannot_be_read_names_the_line_and_goes_on_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\n"c"d,e\n\xff,f\ng\nh,i\n')
    with pytest.raises(DataError, match=r"a.csv, line 2: not valid CSV"):
        read(path, header=False)
    assert read(path, header=False, on_error="skip-any") == [("a", "b"), ("h", "i")]


def memory(body: str, head: str = "", srclang: str = "en") -> str:
    return f'<?xml version="1.0"?>{head}<tmx version="1.4"><header srclang="{srclang}"/><body>{body}</body></tmx>'


def unit(**texts: str) -> str:
    return f"<tu>{''.join(f'<tuv xml:lang={chr(34)}{k}{chr(34)}><seg>{v}</seg></tuv>' for k, v in texts.items())}</tu>"


def test_a_translation_memory_is_read_from_the_language_of_its_header(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    markup = 'ein <bpt i="1">&lt;b&gt;</bpt>schönes<ept i="1">&lt;/b&gt;</ept>\n   <hi>Haus</hi>'
    path.write_text(memory(unit(de=markup, en="a fine house") + unit(de="Tür", en="door")))
    assert read(path) == [("a fine house", "ein schönes Haus"), ("door", "Tür")]
    assert read(path, columns="2:1")[1] == ("Tür", "door")
    path.write_bytes(path.read_text().replace('"1.0"', '"1.0" encoding="UTF-16"').encode("utf-16"))
    assert read(path)[1] == ("door", "Tür")


def test_a_unit_without_one_of_the_languages_is_an_error_or_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(memory(unit(en="a", de="b") + unit(en="c") + unit(en="d", de="e", fr="f")))
    with pytest.raises(DataError, match=r"a.tmx, row 2: no text in 'de'"):
        read(path)
    assert read(path, on_error="skip-any") == [("a", "b"), ("d", "e")]
    path.write_text(memory(unit(en="d", de="e", fr="f")))
    with pytest.raises(DataError, match=r"3 columns \(1 \"en\", 2 \"de\", 3 \"fr\"\).*--columns"):
        read(path)
    assert read(path, columns="3:1") == [("f", "d")]


LAUGHS = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("head", "text", "told"),
    [
        (LAUGHS, "&b;", "a DOCTYPE with declarations"),
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>', "&x;", "a DOCTYPE with declarations"),
        ('<!DOCTYPE tmx SYSTEM "http://127.0.0.1/tmx14.dtd">', "&eacute;t&eacute;", "the entity 'eacute'"),
        ("", "&eacute;", "not well-formed XML"),
        ("", "<a>" * 90 + "</a>" * 90, "64 deep"),
        ("", "</seg></tuv>", "not well-formed XML"),
    ],
)
def test_a_translation_memory_expands_nothing_and_reads_no_other_file(
    tmp_path: Path, head: str, text: str, told: str
) -> None:
    (tmp_path / "a.tmx").write_text(memory(unit(en=text, de="x"), head))
    with pytest.raises(DataError, match=told):
        read(tmp_path / "a.tmx", on_error="skip-any")


def test_a_doctype_that_declares_nothing_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(memory(unit(en="a", de="b"), '<!DOCTYPE tmx SYSTEM "tmx14.dtd">'))
    assert read(tmp_path / "a.tmx") == [("a", "b")]


def test_a_segment_that_is_too_long_is_an_error_and_not_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(memory(unit(en="a" * 2**21, de="b") + unit(en="c", de="d")))
    with pytest.raises(DataError, match="row 1: longer than"):
        read(tmp_path / "a.tmx")
    assert read(tmp_path / "a.tmx", on_error="skip-any") == [("c", "d")]


def saved(folder: Path, rows: list[dict[str, object]]) -> Path:
    """A folder as the library `datasets` writes it."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05}-of-00002.arrow" for i in range(2)]
    for name, part in zip(names, (rows[:2], rows[2:]), strict=True):
        table = pyarrow.Table.from_pylist(part)
        with pyarrow.ipc.new_stream(folder / name, table.schema) as writer:
            writer.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    return folder


def test_a_saved_data_set_is_the_files_that_its_state_names(tmp_path: Path) -> None:
    rows = [{"id": i, "translation": {"en": pair.source, "de": pair.target}} for i, pair in enumerate(PAIRS)]
    folder = saved(tmp_path / "set" / "train", rows)
    assert [pair for file in files_in(folder) for pair in read(file)] == PAIRS
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    with pytest.raises(DataError, match=r"a data set with splits \(train\).*set/train"):
        files_in(tmp_path / "set")
    with pytest.raises(DataError, match=r"a folder without state\.json"):
        files_in(tmp_path)


def test_columns_of_text_named_source_and_target_are_taken_without_a_choice(tmp_path: Path) -> None:
    rows = [{"n": 1, "target": "b", "note": "x", "source": "a"}, {"n": 2, "target": None, "note": "y", "source": "c"}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a.parquet, row 2: a cell is empty"):
        read(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", on_error="skip-any") == [("a", "b")]
    pyarrow.parquet.write_table(pyarrow.table({"n": [1]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="no column of text among n"):
        read(tmp_path / "b.parquet")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.tsv.xz", "a.tsv.zst", "a.tsv.bz2", "a.tsv.gz"])
@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_file_is_a_data_error_that_names_it(tmp_path: Path, name: str, damage: str) -> None:
    write_pairs([Pair(f"source {i}", f"target {i * i}") for i in range(3000)], tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2] if damage == "cut" else b"no such thing\n" * 9)
    with pytest.raises(DataError, match=name):
        read(tmp_path / name)


def test_the_task_of_a_table_is_judged_by_its_pairs(tmp_path: Path) -> None:
    labels = [Pair(f"a text number {i}", "good" if i % 2 else "bad") for i in range(40)]
    for name in ("a.csv", "a.parquet", "a.tmx"):
        write_pairs(labels, tmp_path / name)
        assert infer_task(first_lines(tmp_path / name), name).kind == "classification", name
    table = {
        "series": ["a"] * 30 + ["b"] * 30,
        "time": 2 * [f"2024-01-{n:02d}" for n in range(1, 31)],
        "value": 60 * [1.0],
    }
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "b.parquet")
    assert infer_task(first_lines(tmp_path / "b.parquet"), "b.parquet").kind == "forecasting"


def test_several_compressed_files_are_one_stream(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"a\tb\n"))
    (tmp_path / "b.tsv.xz").write_bytes(lzma.compress(b"c\td\n") + lzma.compress(b"e\tf\n"))
    paths = [tmp_path / "a.tsv.gz", tmp_path / "b.tsv.xz"]
    assert list(read_pairs(paths, report=Report())) == [("a", "b"), ("c", "d"), ("e", "f")]
