"""`regarde quantize`: what it writes and what it says of it."""

from __future__ import annotations

import re
from pathlib import Path


def test_both_models_are_compared(cli, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "small"
    done = cli("quantize", tiny, "--out", out)
    assert done.code == 0, done.error
    exact, rough, equal = done.out.decode().splitlines()
    assert re.fullmatch(rf"{re.escape(str(tiny))}: [\d,]+ bytes of weights, exact match [\d.]+%", exact)
    assert re.fullmatch(rf"{re.escape(str(out))}: [\d,]+ bytes of weights, exact match [\d.]+%", rough)
    assert re.fullmatch(r"\d+ of 30 answers equal \([\d.]+%\)", equal)  # one in twenty of 600 pairs was held out
    assert cli("show", out, "abc").code == 0


def test_other_pairs_may_be_given(cli, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("abc\tabc\nno pair\nxyz\txyz\n")
    asked = ("quantize", tiny, "--out", tmp_path / "small", "--data", tmp_path / "pairs.tsv")
    assert "--on-error skip" in cli(*asked).fails(3)
    assert "1 of 3 lines skipped (33.3%)" in cli(*asked, "--on-error", "skip").fails(3)
    done = cli(*asked, "--on-error", "skip-any")
    assert "warning: 1 of 3 lines skipped" in done.error
    assert done.out.decode().splitlines()[-1].startswith(("0 of 2", "1 of 2", "2 of 2"))


def test_without_readable_data_sizes_are_said_alone(cli, plain: Path, tmp_path: Path) -> None:
    import shutil

    run = Path(shutil.copytree(plain, tmp_path / "run"))
    shutil.move(plain.parent / "pairs.tsv", tmp_path / "away")
    try:
        done = cli("quantize", run)
    finally:
        shutil.move(tmp_path / "away", plain.parent / "pairs.tsv")
    assert done.code == 0
    assert "not compared" in done.error
    assert [line.rsplit(": ", 1)[0] for line in done.out.decode().splitlines()] == [str(run), f"{run}-int8"]


def test_what_is_there_is_never_overwritten(cli, tiny: Path, tmp_path: Path) -> None:
    assert "never overwritten" in cli("quantize", tiny, "--out", tmp_path).fails(2)
    assert "no such folder" in cli("quantize", tmp_path / "none").fails(4)


def test_nothing_is_written_where_the_pairs_cannot_be_read(cli, tiny: Path, tmp_path: Path) -> None:
    assert "no such file" in cli("quantize", tiny, "--out", tmp_path / "small", "--data", tmp_path / "none").fails(3)
    assert not (tmp_path / "small").exists()
