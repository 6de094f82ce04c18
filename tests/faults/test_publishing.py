"""A folder that is loaded while it is published to; and what is said of files that cannot be read or written."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import regarde
from regarde import config
from regarde.errors import DiskError, FolderError, unreadable
from regarde.folder import model as folder
from regarde.folder.loading import EngineName, load
from regarde.folder.model import Blueprint
from regarde.models import BahdanauConfig
from regarde.native import library
from regarde.search import Beam
from regarde.text import TextConfig
from regarde.training.step import seeded

native = pytest.mark.skipif(not library.available(), reason="the native library was not built")
ENGINES = ["torch", pytest.param("native", marks=native)]
PUBLISHER = """
import itertools, shutil, sys, time
from pathlib import Path
from regarde.folder import manifest
run, *generations = map(Path, sys.argv[1:])
for generation in itertools.cycle(generations):
    staging = run / ".model.new"
    shutil.copytree(generation, staging, ignore=shutil.ignore_patterns("manifest.json"))
    manifest.replace_files(run, staging)
    print("published", flush=True)
    time.sleep(0.02)
"""


def saved(path: Path, hidden: int, letters: str) -> Path:
    """Another size, another vocabulary and another search for each generation."""
    model = BahdanauConfig(embedding=5, hidden=hidden, maxout=4)
    text = TextConfig().train([("abc", letters)])
    with seeded(hidden):
        built = model.build(len(text.source), len(text.target))
    folder.save(path, config.as_table(Blueprint(model=model, search=Beam(size=hidden))), text, built, f"{hidden}")
    return path


@pytest.mark.parametrize("engine", ENGINES)
def test_a_folder_is_loaded_as_one_generation_while_a_run_publishes(engine: EngineName, tmp_path: Path) -> None:
    generations = {6: saved(tmp_path / "six", 6, "xyz"), 7: saved(tmp_path / "seven", 7, "uvwxyz")}
    expected = {size: load(path, engine=engine).translate("abcab") for size, path in generations.items()}
    run = saved(tmp_path / "run", 6, "xyz")
    publisher = subprocess.Popen(
        [sys.executable, "-c", PUBLISHER, str(run), *map(str, generations.values())], stdout=subprocess.PIPE
    )
    try:
        assert publisher.stdout is not None
        assert publisher.stdout.readline() == b"published\n"
        seen = set()
        until = time.monotonic() + 2
        while time.monotonic() < until or len(seen) < 2:
            loaded = load(run, engine=engine)
            (size,) = {loaded.search.width}
            seen.add(size)
            assert len(loaded.text.target) == 4 + (3 if size == 6 else 6)
            found = loaded.translate("abcab")
            assert (found.text, found.score) == (expected[size].text, pytest.approx(expected[size].score, abs=1e-5))
            assert time.monotonic() < until + 60
    finally:
        publisher.kill()
        publisher.communicate()


def test_a_folder_left_between_two_manifests_is_loaded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a process that was killed when it had said what it would do."""
    from regarde.folder import manifest

    monkeypatch.setattr(manifest, "PATIENCE", 0.05)
    run, other = saved(tmp_path / "run", 6, "xyz"), saved(tmp_path / "other", 6, "xyz")
    held = {name: manifest.Content(entry.bytes, entry.sha256) for name, entry in manifest.read(run).items()}
    changed = {**held, "README.md": manifest.Content(5, "0" * 64)}
    manifest.replace_file(run / "manifest.json", manifest._text(changed, held))
    assert load(run, engine="torch").translate("abc").text == load(other, engine="torch").translate("abc").text


@contextmanager
def limited(kind: int, soft: int) -> Iterator[None]:
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


@pytest.mark.parametrize("engine", ENGINES)
def test_too_few_file_handles_are_not_taken_for_damage(engine: EngineName, tmp_path: Path) -> None:
    path = saved(tmp_path / "model", 6, "xyz")
    load(path, engine=engine)  # imports what it needs
    free = os.open(path, os.O_RDONLY)
    os.close(free)
    with limited(resource.RLIMIT_NOFILE, free), pytest.raises(FolderError) as raised:
        load(path, engine=engine)
    assert "not readable (Too many open files). This process has too many files open: raise the limit" in str(
        raised.value
    )
    assert "train again" not in str(raised.value)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES])
def test_only_what_is_wrong_with_a_file_is_said_to_be(number: int) -> None:
    told = unreadable("model/weights", OSError(number, os.strerror(number)), "Restore it.")
    assert told.startswith(f"model/weights: not readable ({os.strerror(number)}). ")
    assert "Restore" not in told
    assert unreadable("f", OSError(errno.EIO, "broken"), "Restore it.") == "f: not readable (broken). Restore it."


def test_a_first_save_that_fails_does_not_advise_to_resume(tmp_path: Path) -> None:
    (tmp_path / "my.tsv").write_text("".join(f"{n:02}\t{n:02}\n" for n in range(40)))
    sizes = ["model.hidden=6", "model.embedding=5", "training.valid_pairs=4", "training.steps=2"]
    with limited(resource.RLIMIT_FSIZE, 8000), pytest.raises(DiskError) as raised:
        regarde.train(tmp_path / "my.tsv", out=tmp_path / "run", settings=sizes)
    run = tmp_path / "run"
    assert str(raised.value).endswith(
        f"Nothing was saved yet. Free some space, remove {run} and train again, or give another --out."
    )
    assert "--resume" not in str(raised.value)
