"""`regarde inspect`: what it prints of a real model."""

from __future__ import annotations

import json
import math
from pathlib import Path

import regarde as package


def test_it_sees_what_forced_decoding_says(cli, wordy: Path) -> None:
    files = ["--source", wordy / "test.src", "--target", wordy / "test.trg"]
    found = json.loads(cli("inspect", wordy / "run", *files, "--most", 20, "--json").out)
    texts = (wordy / "test.src").read_text().splitlines()[:20]
    scored = list(package.load(wordy / "run").score(zip(texts, texts, strict=True)))
    peaks = [float(row.max()) for out in scored for row in out.heads[0, 0]]
    assert found["pairs"] == 20
    assert abs(found["attention"]["peak"][0][0] - sum(peaks) / len(peaks)) < 1e-6
    bits = sum(-score for out in scored for score in out.token_scores) / sum(len(out.tokens) for out in scored)
    assert abs(found["perplexity"] - math.exp(bits)) < 1e-3
    assert found["uncertain"] == sorted(found["uncertain"], key=lambda one: (-one["surprise"], one["word"]))


def test_a_text_in_another_case_is_diagnosed(cli, wordy: Path, tmp_path: Path) -> None:
    for name in ("src", "trg"):
        (tmp_path / name).write_text((wordy / "test.src").read_text().upper())
    done = cli("inspect", wordy / "run", "--source", tmp_path / "src", "--target", tmp_path / "trg", "--most", 5)
    text = done.out.decode()
    assert done.code == 0
    assert "unknown source words are known in another case.\n  Use the case of the training data" in text
    assert "this text is unlike the training data" in text


def test_a_person_reads_tables(cli, wordy: Path) -> None:
    files = ["--source", wordy / "test.src", "--target", wordy / "test.trg"]
    text = cli("inspect", wordy / "run", *files, "--words", 3).out.decode()
    assert text.startswith(f"60 pairs of {wordy / 'test.src'} and {wordy / 'test.trg'}, perplexity ")
    assert "layer 1, head 1" in text
    assert "most uncertain words  count" in text


def test_a_model_without_attention_has_no_table_of_it(cli, plain: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("001\t001\n")
    assert json.loads(cli("inspect", plain, "--data", tmp_path / "pairs.tsv", "--json").out)["attention"] is None
    assert "attention " not in cli("inspect", plain, "--data", tmp_path / "pairs.tsv").out.decode().split("tokens")[0]
