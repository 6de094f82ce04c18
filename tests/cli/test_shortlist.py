"""`regarde shortlist`, and translating with what it wrote."""

from __future__ import annotations

import fcntl
import shutil
import unicodedata
from pathlib import Path

import pytest

from regarde import config as configs
from regarde.folder import model as folder
from regarde.folder.model import Blueprint
from regarde.models import BahdanauConfig
from regarde.native import library
from regarde.text import TextConfig

pytestmark = pytest.mark.skipif(not library.available(), reason="the native library was not built")


@pytest.fixture
def run(tiny: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "run"))


def test_a_shortlist_is_learned_written_and_used(regarde, tiny: Path, run: Path) -> None:
    data = tiny.parent / "copy.tsv"
    assert regarde("translate", run, "--shortlist", stdin=b"abc\n").code == 2  # there is none yet
    done = regarde("shortlist", run, "--data", data, "--best", 1000, "--frequent", 1000)
    assert (done.code, done.out) == (0, b"")
    plain, short = (regarde("translate", run, *option, stdin=b"abc\nhello\n") for option in ((), ("--shortlist",)))
    assert short.code == 0, short.error
    assert short.out == plain.out
    assert regarde("shortlist", run, "--data", data, "--best", 1, "--frequent", 0).code == 0  # in place of the first
    few = regarde("translate", run, "--shortlist", stdin=b"zzz\n").out.decode().strip()
    assert set(few) <= {"z"}  # the translation of z, and nothing else


def test_pairs_are_normalized_as_the_model_is(regarde, tmp_path: Path) -> None:
    text = TextConfig().train([("é", "à")])
    config = BahdanauConfig(embedding=3, hidden=4, maxout=2)
    folder.save(tmp_path / "run", configs.as_table(Blueprint(model=config)), text, config.build(5, 5), "a card")
    decomposed = unicodedata.normalize("NFD", "é\tà\n").encode()
    done = regarde("shortlist", tmp_path / "run", "--data", "-", stdin=decomposed)
    assert done.code == 0, done.error
    assert (tmp_path / "run" / "shortlist.txt").read_text().splitlines()[1:] == ["frequent\t4", "4\t4"]


def test_a_model_in_bytes_keeps_the_shortlist(regarde, tiny: Path, run: Path) -> None:
    assert regarde("shortlist", run, "--data", tiny.parent / "copy.tsv").code == 0
    assert regarde("quantize", run, "--data", tiny.parent / "copy.tsv").code == 0
    done = regarde("translate", f"{run}-int8", "--shortlist", stdin=b"abc\n")
    assert done.code == 0, done.error


def test_pairs_must_be_given_and_a_folder_in_use_is_left_alone(regarde, tiny: Path, run: Path) -> None:
    assert regarde("shortlist", run).code == 2
    assert regarde("shortlist", run, "--source", tiny.parent / "copy.tsv").code == 2
    both = ("--source", tiny.parent / "copy.tsv", "--target", tiny.parent / "copy.tsv")
    assert "--columns" in regarde("shortlist", run, *both, "--columns", "1:2").error
    assert regarde("shortlist", run, "--data", "-", stdin=b"abc\nabc\tabc\n").code == 3
    skipping = regarde("shortlist", run, "--data", "-", "--on-error", "skip-any", stdin=b"abc\nabc\tabc\n")
    assert skipping.code == 0
    assert "1 skipped" in skipping.error
    with (run / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = regarde("shortlist", run, "--data", tiny.parent / "copy.tsv")
    assert done.code == 2
    assert "is training here" in done.error
