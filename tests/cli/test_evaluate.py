"""`regarde evaluate`: the numbers of the field's own command lines, and mistakes that end in one line."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import regarde as package
from regarde.native import library
from regarde.text.sides import normalized


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "test.tsv"
    path.write_text("abc\tabc\nhgf\thgf\nab\tab\nfedcb\tfedcb\n")
    return path


def record(done: Any) -> dict[str, Any]:
    assert (done.code, done.error) == (0, "")
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_metrics_are_those_of_the_command_lines_of_sacrebleu_and_jiwer(cli, wordy: Path, tmp_path: Path) -> None:
    said, reference = tmp_path / "said", wordy / "test.trg"
    files = ["--source", wordy / "test.src", "--target", reference]
    found = record(
        cli("evaluate", wordy / "run", *files, "--metrics", "bleu,chrf,ter,cer,wer", "--hypotheses", said, "--json")
    )["metrics"]
    theirs = [sys.executable, "-m", "sacrebleu", reference, "-i", said, "-m", "bleu", "chrf", "ter", "-w", "10"]
    for score in json.loads(subprocess.run(theirs, capture_output=True, check=True).stdout):
        name = score["name"].lower().removesuffix("2")
        assert found[name]["value"] == pytest.approx(score["score"], abs=1e-9)
        assert found[name]["signature"] == score["signature"]
    for name, option in (("cer", ["--cer"]), ("wer", [])):
        line = [sys.executable, "-m", "jiwer.cli", "-r", reference, "-h", said, *option]
        rate = float(subprocess.run(line, capture_output=True, check=True).stdout)
        assert found[name]["value"] == pytest.approx(rate, abs=1e-12)
    assert 0 < found["bleu"]["value"] < 100  # a model that is neither perfect nor silent


def test_each_value_lies_in_its_interval_and_groups_add_up(cli, wordy: Path) -> None:
    files = ["--source", wordy / "test.src", "--target", wordy / "test.trg"]
    found = record(cli("evaluate", wordy / "run", *files, "--samples", 200, "--json"))
    assert list(found["metrics"]) == ["exact_match", "wer", "perplexity"]
    for result in found["metrics"].values():
        assert result["low"] <= result["value"] <= result["high"]
    lengths = found["by"]["source length in words"]
    assert [group["group"] for group in lengths] == ["3 to 4", "5 to 6", "7 to 8", "9 to 10"]
    assert sum(group["pairs"] for group in lengths) == found["pairs"] == 60
    right = sum(group["pairs"] * group["exact_match"] for group in lengths)
    assert right / 60 == pytest.approx(found["metrics"]["exact_match"]["value"])


def test_a_seed_gives_the_same_intervals_again(cli, tiny: Path, table: Path) -> None:
    def once(seed: int) -> bytes:
        out: bytes = cli("evaluate", tiny, "--data", table, "--seed", seed, "--json").out
        return out

    assert once(5) == once(5)


def test_perplexity_is_that_of_forced_decoding(cli, tiny: Path, table: Path) -> None:
    pairs = [tuple(line.split("\t")) for line in table.read_text().splitlines()]
    scored = list(package.load(tiny).score(pairs))  # type: ignore[arg-type]
    wanted = math.exp(-sum(out.score for out in scored) / sum(len(out.tokens) for out in scored))
    found = record(cli("evaluate", tiny, "--data", table, "--json", "--engine", "torch"))
    assert found["metrics"]["perplexity"]["value"] == pytest.approx(wanted, rel=1e-4)
    assert "perplexity" not in record(cli("evaluate", tiny, "--data", table, "--json", "--no-perplexity"))["metrics"]


def test_a_person_reads_tables(cli, tiny: Path, table: Path) -> None:
    done = cli("evaluate", tiny, "--data", table)
    assert done.code == 0
    text = done.out.decode()
    assert text.startswith(f"4 pairs of {table}, greedy, {package.load(tiny).engine.name} engine\n")
    assert "references are short strings: exact_match, cer\n" in text
    assert re.search(r"^exact match +[\d.]+% +[\d.]+% to [\d.]+%$", text, re.MULTILINE)
    assert re.search(r"^character error rate .* jiwer [\d.]+$", text, re.MULTILINE)
    assert re.search(r"^source length in characters +pairs +exact match", text, re.MULTILINE)


def test_unknown_tokens_make_a_group_of_their_own(cli, tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "odd.tsv"
    path.write_text("abc\tabc\naéc\tabc\nabc\tÄ\n")
    done = cli("evaluate", tiny, "--data", path)
    assert "the model does not know all tokens of 2 pairs" in done.error
    assert re.search(r"^at least one +2 ", done.out.decode(), re.MULTILINE)


def test_any_of_several_answers_is_right(cli, tiny: Path, tmp_path: Path) -> None:
    sources = ["abc", "hgf"]
    said = [out.text for out in package.load(tiny).translate(sources)]
    rows, files = tmp_path / "rows.tsv", [tmp_path / name for name in ("src", "one", "two")]
    rows.write_text(f"abc\tno\t{said[0]}\tneither\nhgf\t{said[1]}\n")
    for file, lines in zip(files, (sources, [said[0], "no"], ["no", said[1]]), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines))
    by_rows = record(cli("evaluate", tiny, "--data", rows, "--several", "--json"))
    by_files = record(cli("evaluate", tiny, "--source", files[0], "--target", files[1], "--target", files[2], "--json"))
    for found, most in ((by_rows, 3), (by_files, 2)):
        assert found["metrics"]["exact_match"]["value"] == 1.0
        assert found["references"] == most
    one = record(cli("evaluate", tiny, "--source", files[0], "--target", files[1], "--json"))
    assert one["metrics"]["exact_match"]["value"] == 0.5


def test_text_that_looks_the_same_is_the_same() -> None:
    assert normalized("cafe\u0301", "NFC") == "café"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 2, "Expected --data, or both --source and --target"),
        (["--source", "a"], 2, "--source and --target belong together"),
        (["--data", "nowhere.tsv"], 3, "nowhere.tsv: no such file or data set"),
        (["--data", "TABLE", "--metrics", "blue"], 2, 'Did you mean "bleu"?'),
        (["--data", "TABLE", "--tokenize", "14a"], 2, "--tokenize 14a: expected one of"),
        (["--data", "TABLE", "--tokenise", "14a"], 2, "--tokenize 14a: expected one of"),
        (["--data", "TABLE", "--hypotheses", "TABLE"], 2, "exists and is not overwritten"),
        (["--data", "TABLE", "--several", "--columns", "1:2"], 2, "Leave out one"),
        (["--data", "copy", "--columns", "1:2"], 2, "an embedded data set has no columns"),
        (["--data", "TABLE", "--samples", "-1"], 2, "--samples"),
        (["--data", "LONG"], 3, "Pair 1: A sentence of 1001 tokens"),
    ],
)
def test_a_mistake_is_one_line(
    cli, tiny: Path, table: Path, tmp_path: Path, options: list[str], code: int, message: str
) -> None:
    (tmp_path / "long.tsv").write_text(f"{'a' * 1001}\ta\n")
    given = [{"TABLE": table, "LONG": tmp_path / "long.tsv"}.get(option, option) for option in options]
    assert message in cli("evaluate", tiny, *given).fails(code)


def test_nothing_is_translated_where_a_package_is_missing(cli, tiny: Path, table: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jiwer", None)
    line = cli("evaluate", tiny, "--data", table).fails(1)
    assert line.endswith("pip install 'regarde[evaluate]'")


@pytest.mark.skipif(not library.available(), reason="only the native engine needs no torch")
def test_torch_is_not_needed(regarde, tiny: Path, table: Path) -> None:
    code = f"""
import sys
from regarde.cli.main import run
sys.modules["torch"] = None
sys.argv = ["regarde", "evaluate", {str(tiny)!r}, "--data", {str(table)!r}]
run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
