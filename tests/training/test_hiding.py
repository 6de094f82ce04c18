"""Symbols hidden from a model that copies: on both sides of a sentence, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import regarde
from regarde.data.batch import collate
from regarde.errors import ConfigError
from regarde.models.copying import PointerDecoder, target_columns
from regarde.text import EOS, TextConfig
from regarde.training.hiding import Hiding
from regarde.training.recipe import parse

TEXT = replace(TextConfig().train([("abcd", "abcx")]), copies=True)
S, V = len(TEXT.source), len(TEXT.target)
PAIRS = [("abca", "caab"), ("dab?", "b?ax")]
SOURCES = [TEXT.source_ids(source) for source, _ in PAIRS]
TARGETS = [TEXT.target_ids(target, source) for source, target in PAIRS]
HIDING = Hiding.of(TEXT)


def hidden(*symbols: str, rare: str = "") -> list[tuple[list[int], list[int], list[int]]]:
    """Source ids, target ids and previous words of each row, without padding, where these symbols are drawn."""
    batch = collate(SOURCES, TARGETS)

    def marked(chosen: tuple[str, ...], first: bool) -> torch.Tensor:
        rows = [[c in chosen and (not first or text.index(c) == i) for i, c in enumerate(text)] for text, _ in PAIRS]
        return torch.tensor([[*row, False] for row in rows])

    found = HIDING.hidden(batch, marked(tuple(rare), first=False), marked(symbols, first=True))
    sides = zip(found.source.ids.tolist(), found.target_ids.tolist(), found.previous.tolist(), strict=True)
    return [(source[:-1], target[:-1], previous[1:]) for source, target, previous in sides]


def test_nothing_is_hidden_where_nothing_is_drawn() -> None:
    for row, (source, target, previous) in enumerate(hidden()):
        assert (source, target, previous) == (SOURCES[row], TARGETS[row], TARGETS[row])


@pytest.mark.parametrize("how", [{"symbols": "a"}, {"rare": "a"}])
def test_a_hidden_symbol_is_unknown_everywhere_in_its_sentence(how: dict[str, str]) -> None:
    rows = hidden(*how.get("symbols", ""), rare=how.get("rare", ""))
    for row, (source, target, previous) in enumerate(rows):
        text = PAIRS[row][0]
        assert [i >= S + V for i in source] == [c in "a?" for c in text]
        assert len({i for i, c in zip(source, text, strict=True) if c == "a"}) == 1
        columns = target_columns(torch.tensor([[*source, EOS]]), HIDING.same, V)[0].tolist()
        for c, one, other in zip(PAIRS[row][1], target, previous, strict=True):
            assert one == other == (columns[text.index(c)] if c in text else TEXT.target.encode(c)[0])
            assert (one >= V) == (c in "a?d")


def test_hiding_one_symbol_numbers_the_others_anew() -> None:
    """d and ? are symbols that the target lacks anyway: a, between them, moves the second one on."""
    _, target, _ = hidden("a")[1]
    assert TARGETS[1][1] == V + 1  # ?
    assert target[1] == V + 2


def test_a_new_model_knows_which_symbols_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.tsv").write_text("abcd\tabcx\ndcba\txcba\nab\tba\n")
    tiny = ["model.hidden=4", "model.embedding=3", "model.maxout=2", "model.attention.score.size=3"]
    run = regarde.train("my.tsv", preset="copying-small", settings=[*tiny, "training.steps=2"], out="run")
    model = run.load()
    decoder = model.model.decoder if hasattr(model, "model") else regarde.load("run", engine="torch").model.decoder
    assert isinstance(decoder, PointerDecoder)
    assert decoder.same.tolist() == model.text.extended.same()


def test_hiding_is_for_models_that_copy() -> None:
    with pytest.raises(ConfigError, match=r"training\.hide = 0\.1 is for a model that copies"):
        parse({"training": {"hide": 0.1}})


def test_sampled_words_and_smoothing_do_not_go_with_copying() -> None:
    training = {"sampling": 0.1, "label_smoothing": 0.1}
    with pytest.raises(ConfigError, match="Switch one of them off"):
        parse({"training": training, "model": {"kind": "bahdanau", "copying": {"kind": "mapped"}}})
