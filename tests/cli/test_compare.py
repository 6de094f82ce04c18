"""`regarde compare`: differences, how sure they are, and where they lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regarde


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Path:
    """Pairs on which `tiny` is always right, for they are its own answers."""
    path = tmp_path_factory.mktemp("compare") / "test.tsv"
    words = ["abc", "hgf", "ab", "fedcb", "gg", "cdcd", "ha", "bcdefg", "dab", "efa"]
    answers = [out.text for out in regarde.load(tiny).translate(words)]
    assert all(answers)
    path.write_text("".join(f"{word}\t{answer}\n" for word, answer in zip(words, answers, strict=True)))
    return path


def test_a_model_against_itself_does_not_differ(cli, tiny: Path, table: Path) -> None:
    found = json.loads(cli("compare", tiny, tiny, "--data", table, "--json").out)
    assert [row["metric"] for row in found["metrics"]] == ["exact_match", "cer", "perplexity"]
    for row in found["metrics"]:
        first, second = row["models"]
        assert first["difference"] is None
        assert (second["difference"]["value"], second["difference"]["p"]) == (0, 1)
    (apart,) = found["disagreements"]
    assert (apart["ahead"], apart["behind"], apart["better"], apart["worse"]) == (0, 0, [], [])


def test_a_better_model_is_significantly_better_and_examples_show_it(cli, tiny: Path, plain: Path, table: Path) -> None:
    done = cli("compare", plain, tiny, "--data", table, "--json", "--examples", 2)
    found = json.loads(done.out)
    error = next(row for row in found["metrics"] if row["metric"] == "cer")
    difference = error["models"][1]["difference"]
    assert difference["value"] == pytest.approx(error["models"][1]["value"] - error["models"][0]["value"])
    assert difference["value"] < 0
    assert difference["interval"]["high"] < 0
    assert difference["p"] < 0.05
    (apart,) = found["disagreements"]
    assert len(apart["better"]) == 2 <= apart["ahead"]
    for example in apart["better"]:
        assert example["scores"][1] > example["scores"][0]
        assert len(example["answers"]) == 2
    gaps = [example["scores"][1] - example["scores"][0] for example in apart["better"]]
    assert gaps == sorted(gaps, reverse=True)
    assert "perplexity" not in {row["metric"] for row in found["metrics"]}  # their tokens are not the same


def test_a_person_reads_a_table_and_sentences(cli, tiny: Path, plain: Path, table: Path) -> None:
    done = cli("compare", plain, tiny, "--data", table)
    text = done.out.decode()
    assert done.code == 0
    assert "perplexity is left out" in done.error
    assert f"against {plain}" in text  # both folders are called run, so their paths tell them apart
    assert "*" in text
    assert " is ahead of " in text
    assert "pair " in text


@pytest.mark.parametrize(("runs", "message"), [([], "RUN"), (["one"], "One model given, expected two or more")])
def test_one_model_alone_is_exit_code_2(cli, table: Path, runs: list[str], message: str) -> None:
    assert message in cli("compare", *runs, "--data", table).fails(2)
