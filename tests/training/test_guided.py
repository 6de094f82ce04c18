"""Attention taught by given links."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import regarde
from regarde.data.batch import collate
from regarde.data.formats import Pair
from regarde.errors import ConfigError, DataError
from regarde.models import BahdanauConfig, LuongConfig, TransformerConfig
from regarde.native import library
from regarde.text import CharactersConfig, TextConfig, WordsConfig
from regarde.training.guided import Guide, GuidedConfig, read_guide
from regarde.training.objective import Objective
from regarde.training.recipe import Adam, TrainingConfig
from regarde.training.step import NumberedBatch, Stepper, seeded
from tests.bitexts import invented

PAIRS = [Pair("a b c", "C B"), Pair("b", "B A"), Pair("c a", "A")]
TEXT = TextConfig(WordsConfig(), WordsConfig()).train(PAIRS)


def guide(tmp_path: Path, lines: str, *, chosen: list[int] | None = None, text=TEXT, **settings: object) -> Guide:
    (tmp_path / "links").write_text(lines)
    config = GuidedConfig(links=str(tmp_path / "links"), **settings)  # type: ignore[arg-type]
    return read_guide(config, PAIRS, [0, 1, 2] if chosen is None else chosen, text)


def test_gold_rows_sum_to_one_or_are_zero(tmp_path: Path) -> None:
    found = guide(tmp_path, "2-0 0-1 1-1\n\n1-0\n")
    batch = collate([TEXT.source.encode(s) for s, _ in PAIRS], [TEXT.target.encode(t) for _, t in PAIRS])
    gold = found.gold([0, 1, 2], batch)
    assert gold.shape == (3, 3, 4)  # EOS in both
    assert gold[0].tolist() == [[0, 0, 1, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 0]]
    assert not gold[1].any()
    assert gold[2, 0].tolist() == [0, 1, 0, 0]


def test_links_follow_their_pairs_when_some_are_left_out(tmp_path: Path) -> None:
    found = guide(tmp_path, "2-0\n0-0\n1-0\n", chosen=[2, 0])
    assert found.links.tolist() == [[1, 0], [2, 0]]
    assert found.starts.tolist() == [0, 1, 2]


def test_words_stand_for_all_their_pieces_and_tokens_for_themselves(tmp_path: Path) -> None:
    text = TextConfig(CharactersConfig(), CharactersConfig()).train(PAIRS)
    words = guide(tmp_path, "2-0 0-1\n0-0 0-1\n1-0\n", text=text)
    assert words.links[: words.starts[1]].tolist() == [[0, 2], [4, 0]]
    tokens = guide(tmp_path, "4-0 0-2\n0-0\n2-0\n", text=text, unit="tokens")
    assert tokens.links[: tokens.starts[1]].tolist() == [[0, 2], [4, 0]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("0-0\n", "has links for 1 pair, and the data has 3"),
        ("0-0\n1-0\n0-0\n", "line 2: link 1-0 lies outside 1 source and 2 target words"),
        ("0-0\nx\n0-0\n", "line 2: 'x' is no link"),
    ],
)
def test_links_of_other_pairs_are_refused(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        guide(tmp_path, lines)


def test_the_loss_is_that_of_a_slow_loop_with_the_models_offset(tmp_path: Path) -> None:
    found = guide(tmp_path, "2-0 0-1 1-1\n\n1-0\n", weight=0.5)
    batch = collate([TEXT.source.encode(s) for s, _ in PAIRS], [TEXT.target.encode(t) for _, t in PAIRS])
    gold = found.gold([0, 1, 2], batch).double()
    generator = torch.Generator().manual_seed(1)
    attention = torch.rand((3, 2, 2, 3, 4), generator=generator, dtype=torch.float64).softmax(dim=-1)
    mean = attention.mean(dim=(1, 2))
    for offset in (0, 1):
        slow = 0.0
        for b in range(3):
            for t in range(3 - offset):
                for s in range(4):
                    slow -= 0.5 * float(gold[b, t, s]) * math.log(float(mean[b, t + offset, s]))
        assert float(found.loss(attention, gold, offset)) == pytest.approx(slow, rel=1e-6)


def test_one_head_of_one_layer_can_be_taught(tmp_path: Path) -> None:
    found = guide(tmp_path, "2-0\n\n\n", layer=2, head=1)
    attention = torch.full((3, 2, 2, 3, 4), 0.25, requires_grad=True)
    gold = torch.zeros(3, 3, 4)
    gold[0, 0, 2] = 1.0
    found.loss(attention, gold, 0).backward()
    assert attention.grad is not None
    assert attention.grad.nonzero().tolist() == [[0, 1, 0, 0, 2]]
    with pytest.raises(ConfigError, match=r"guided_alignment.layer = 2: this model has 1"):
        found.loss(attention[:, :1], gold, 0)


SMALL = {
    "bahdanau": BahdanauConfig(embedding=8, hidden=12, maxout=6, init="torch"),
    "luong": LuongConfig(embedding=8, hidden=12, layers=1, dropout=0.0, init="torch"),
    "transformer": TransformerConfig(size=8, layers=1, heads=2, feed_forward=16, dropout=0.0, tying="none"),
}


@pytest.mark.parametrize("name", SMALL)
def test_every_model_learns_where_to_look(name: str, tmp_path: Path) -> None:
    found = guide(tmp_path, "2-0 1-1\n0-0\n1-0\n", weight=5.0)
    batch = collate([TEXT.source.encode(s) for s, _ in PAIRS], [TEXT.target.encode(t) for _, t in PAIRS])
    gold = found.gold([0, 1, 2], batch)
    with seeded(1):
        model = SMALL[name].build(len(TEXT.source), len(TEXT.target))
    stepper = Stepper(model, TrainingConfig(optimizer=Adam(rate=0.03)), total=60, objective=Objective(guide=found))

    def looked() -> float:
        with torch.no_grad():
            return float(found.loss(model.eval()(batch).attention, gold, model.decoder.offset))

    before = looked()
    for step in range(60):
        stepper.update([NumberedBatch(batch, step, gold)], step, tokens=8)
    assert looked() < 0.6 * before


def test_a_run_is_taught_from_a_file_and_says_so(tmp_path: Path) -> None:
    texts = [f"{a}{b}{c}" for a in "abc" for b in "abc" for c in "abcd"]
    (tmp_path / "data.tsv").write_text("".join(f"{text}\t{text}\n" for text in texts))
    (tmp_path / "links").write_text("0-0 1-1 2-2\n" * len(texts))
    sizes = ["model.embedding=8", "model.hidden=12", "model.maxout=6", "model.attention.score.size=8"]
    shared = [*sizes, "training.steps=100", "training.valid_every=100", "training.optimizer.rate=0.02"]
    taught = [
        f"training.guided_alignment.links={tmp_path / 'links'}",
        "training.guided_alignment.unit=tokens",
        "training.guided_alignment.weight=1.0",
    ]

    def diagonal(settings: list[str], name: str) -> float:
        run = regarde.train(str(tmp_path / "data.tsv"), settings=settings, out=tmp_path / name)
        mass = []
        for out in run.load().score(zip(texts, texts, strict=True)):
            assert out.attention is not None
            mass.append(np.diag(out.attention)[:3].mean())
        return float(np.mean(mass))

    assert diagonal([*shared, *taught], "taught") > diagonal(shared, "alone") + 0.1
    log = (tmp_path / "taught" / "train.log").read_text()
    assert "attention learns from" in log
    assert "sha256" in (tmp_path / "taught" / "config.toml").read_text()


@pytest.mark.parametrize(
    ("preset", "more", "message"),
    [
        ("sutskever-small", [], "sutskever has none"),
        ("rnnsearch-small", ["training.truncate=3"], "Switch one of them off"),
        ("rnnsearch-small", [], "not readable"),
    ],
)
def test_what_cannot_be_taught_is_said_before_training(
    tmp_path: Path, preset: str, more: list[str], message: str
) -> None:
    settings = ["training.guided_alignment.links=nowhere", *more]
    (tmp_path / "data.tsv").write_text("".join(f"{n:03}\t{n:03}\n" for n in range(60)))
    with pytest.raises((ConfigError, DataError), match=message):
        regarde.train(str(tmp_path / "data.tsv"), preset=preset, settings=settings, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not library.built(), reason="needs the native library")
def test_links_are_found_by_statistics(tmp_path: Path) -> None:
    pairs, gold = invented(200)
    text = TextConfig(WordsConfig(), WordsConfig()).train(pairs)
    found = read_guide(GuidedConfig(links="auto"), pairs, list(range(200)), text)
    links = [found.links[start:end].tolist() for start, end in itertools.pairwise(found.starts)]
    assert sum(one == list(map(list, other)) for one, other in zip(links, gold, strict=True)) > 190
    assert found.config.sha256 == read_guide(GuidedConfig(links="auto"), pairs, [0], text).config.sha256
    tokens = read_guide(GuidedConfig(links="auto", unit="tokens"), pairs, list(range(200)), text)
    assert tokens.links.tolist() == found.links.tolist()  # a word is a token here


@pytest.mark.skipif(not library.built(), reason="needs the native library")
def test_statistics_need_words() -> None:
    pairs = [Pair("abc", "ABC"), Pair("b", "B")]
    text = TextConfig(CharactersConfig(), CharactersConfig()).train(pairs)
    with pytest.raises(ConfigError, match="unit=tokens"):
        read_guide(GuidedConfig(links="auto"), pairs, [0, 1], text)
    assert len(read_guide(GuidedConfig(links="auto", unit="tokens"), pairs, [0, 1], text).starts) == 3


@pytest.mark.skipif(not library.built(), reason="needs the native library")
def test_a_training_aligns_its_data_first_and_resumes_with_the_same_links(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    (tmp_path / "my.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in invented(60)[0]))
    sizes = ["model.embedding=8", "model.hidden=12", "model.maxout=6", "model.attention.score.size=8"]
    settings = [*sizes, "training.guided_alignment.links=auto", "training.guided_alignment.weight=1"]
    run = regarde.train(tmp_path / "my.tsv", settings=settings, steps=2, out=tmp_path / "run")
    assert 'sha256 = "' in (run.folder / "config.toml").read_text()
    regarde.train(run.folder, resume=True, settings=["training.steps=4"])
    assert not [warning for warning in recwarn if "links differ" in str(warning.message)]
