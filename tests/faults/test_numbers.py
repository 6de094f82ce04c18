"""Numbers that are too large for a float, or too many for the memory: a named error, by either engine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regarde import config
from regarde.errors import FolderError
from regarde.folder import model as folder
from regarde.folder.loading import EngineName, load
from regarde.folder.model import Blueprint
from regarde.models import BahdanauConfig
from regarde.native import library
from regarde.search import Beam, Greedy, Rules, Sampling, Search
from regarde.search.settings import Prefix
from regarde.text import TextConfig

native = pytest.mark.skipif(not library.available(), reason="the native library was not built")
ENGINES = ["torch", pytest.param("native", marks=native)]
SEARCHES: list[Search] = [Greedy(), Beam(size=3, n_best=2), Sampling(n_best=2)]
TOLD = "computes no finite scores: its weights are too large"


def saved(path: Path, weight: float) -> Path:
    model = BahdanauConfig(embedding=5, hidden=6, maxout=4)
    text = TextConfig().train([("abc ", "wxyz"), ("cba", "zyx")])
    built = model.build(len(text.source), len(text.target))
    for parameter in built.parameters():
        parameter.data.fill_(weight)
    folder.save(path, config.as_table(Blueprint(model=model)), text, built, "a card")
    return path


@pytest.fixture(scope="module")
def overflowing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("numbers") / "model", 3e38)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_finite_weights_that_overflow_are_a_named_error(engine: EngineName, search: Search, overflowing: Path) -> None:
    translator = load(overflowing, engine=engine)
    with pytest.raises(FolderError, match=f"Sentence 2: the model {TOLD}"):
        translator.translate(["", "abc"], search=search)
    with pytest.raises(FolderError, match=TOLD):
        translator.trace("abc", search=search)


@pytest.mark.parametrize("engine", ENGINES)
def test_words_that_are_given_have_no_score_that_is_no_number(engine: EngineName, overflowing: Path) -> None:
    translator = load(overflowing, engine=engine)
    with pytest.raises(FolderError, match=TOLD):
        list(translator.score([("abc", "xyz")]))
    with pytest.raises(FolderError, match=TOLD):
        translator.trace("abc", target="xyz")


@pytest.mark.parametrize("engine", ENGINES)
def test_json_lines_never_hold_nan(
    engine: EngineName, overflowing: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    (tmp_path / "in.txt").write_text("abc\n")
    ended = cli("translate", overflowing, "--json", "--engine", engine, "--input", tmp_path / "in.txt")
    assert TOLD in ended.fails(4)
    assert b"NaN" not in ended.out


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_where_nothing_is_left_to_say_the_answer_ends(engine: EngineName, search: Search, tmp_path: Path) -> None:
    """A prefix, all words barred after it, no unknown words, and too few words for an end."""
    translator = load(saved(tmp_path / "model", 0.1), engine=engine)
    prefix = Prefix((5,), barred=np.arange(4, len(translator.text.target)))
    strict = replace(search, rules=Rules(min_length=9, allow_unknown=False))
    (found,) = translator.engine.decode([[4, 5]], strict, [prefix])
    assert {hypothesis.ids for hypothesis in found} == {(5, 3)}
    assert all(hypothesis.finished and hypothesis.score > -20 for hypothesis in found)


CHILD = """
import resource, sys
from regarde.folder.loading import load
from regarde.search import Beam, Rules
from regarde.errors import OutOfMemoryError
translator = load(sys.argv[1], engine="native", threads=1)
translator.translate("abc")
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (6 << 20), resource.RLIM_INFINITY))
search = Beam(size=1000, n_best=1000, rules=Rules(max_ratio=1000.0, max_extra=60_000, min_length=10**6))
try:
    translator.translate("abc", search=search)
except OutOfMemoryError as error:
    print(error)
"""


@native
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of a process is not known here")
def test_the_native_engine_says_what_to_try_where_memory_does_not_suffice(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(saved(tmp_path / "model", 0.1))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout.startswith("Out of memory with "), done.stderr[-2000:]
    assert "1,000 hypotheses in a beam. Try 500 hypotheses in a beam." in done.stdout
