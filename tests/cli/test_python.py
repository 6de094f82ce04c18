"""What Python shows of a model: short reprs, public names, pictures; and n-best lists led by the model's own answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import regarde as package
from regarde.errors import UsageError
from regarde.native import library
from regarde.search import Beam

TEXTS = ["abc", "hgfedcba", "bb", "afgh", "cabbagecabbage"]


def test_dir_shows_the_public_names() -> None:
    assert set(package.__all__) <= set(dir(package))
    assert {name for name in dir(package) if not name.startswith("_")} == set(package.__all__)


def test_reprs_are_short(tiny: Path) -> None:
    model = package.load(tiny)
    found = model.translate(TEXTS, n_best=3)
    assert all(len(repr(each)) < 120 for each in (model, *found))
    assert repr(found[0]).startswith(f"<Translation {found[0].text!r}, score ")
    trace = model.trace(TEXTS[1], beam=4)
    assert len(repr(trace)) < 160
    assert all(len(repr(step)) < 80 for step in trace.steps)
    assert all(len(repr(each)) < 80 for step in trace.steps for each in (*step.branches, *trace.hypotheses))


@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<svg"), ("a.html", b"<!"), ("a.png", b"\x89PNG")])
def test_a_translation_saves_itself(tiny: Path, tmp_path: Path, name: str, start: bytes) -> None:
    package.load(tiny).translate("abc").save(tmp_path / name)
    assert (tmp_path / name).read_bytes().lower().startswith(start.lower())


def test_without_attention_or_with_another_suffix_nothing_is_saved(tiny: Path, plain: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no attention"):
        package.load(plain).translate("007").save(tmp_path / "a.svg")
    with pytest.raises(UsageError, match="unknown picture format"):
        package.load(tiny).translate("abc").save(tmp_path / "a.gif")


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_the_first_of_several_is_the_answer_without_others(tiny: Path, engine) -> None:
    if engine == "native" and not library.available():
        pytest.skip("the native library was not built")
    model = package.load(tiny, engine=engine)
    wide = [found.text for found in model.translate(TEXTS, search=Beam(size=5, n_best=4))]
    alone = model.translate(TEXTS)
    assert wide != [found.text for found in alone]  # or this test would show nothing
    for own, found in zip(alone, model.translate(TEXTS, n_best=4), strict=True):
        assert (found.text, len(found.alternatives)) == (own.text, 3)
        assert len({found.tokens, *(other.tokens for other in found.alternatives)}) == 4
        assert all(not other.alternatives for other in found.alternatives)


def test_the_command_prints_the_model_s_own_answer_first(regarde, tiny: Path) -> None:
    lines = "".join(f"{text}\n" for text in TEXTS).encode()
    alone = regarde("translate", tiny, stdin=lines).out.decode().splitlines()
    rows = [row.split("\t") for row in regarde("translate", tiny, "--n-best", 3, stdin=lines).out.decode().splitlines()]
    assert [text for _, rank, _, text in rows if rank == "1"] == alone


def test_beta_changes_the_ranking(regarde, tiny: Path) -> None:
    def scores(*options: object) -> list[str]:
        done = regarde("translate", tiny, "--beam", 4, "--n-best", 2, *options, stdin=b"abcdefgh\n")
        return [row.split("\t")[2] for row in done.out.decode().splitlines()]

    assert scores("--beta", 0) == scores()
    assert not {*scores("--beta", 5)} & {*scores()}
