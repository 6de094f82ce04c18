"""Training as it was before there were tasks, written out: to the last bit what a run of translation ends with.

Also a folder of that time, whose configuration names no task.
"""

from __future__ import annotations

import itertools
import math
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

import regarde
from regarde.attention import GlobalConfig
from regarde.attention.scores import AdditiveConfig
from regarde.config import as_text
from regarde.data import sampling
from regarde.data.batch import collate
from regarde.folder import manifest
from regarde.folder.manifest import CONFIG, WEIGHTS
from regarde.models import BahdanauConfig
from regarde.text import Text
from regarde.text.tokenizers import Characters, SymbolTokenizer
from regarde.training.loss import word_loss
from regarde.training.start import Run

STEPS, PAIRS, SEED, RATE, WARMUP, FLOOR = 7, 8, 5, 2e-3, 2, 0.02
TRAIN = [(f"{n:03}", f"{n:03}"[::-1]) for n in range(30)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("identical")
    for name, pairs in (("train", TRAIN), ("valid", TRAIN[:4])):
        (folder / f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    settings = [
        *(f"training.steps={STEPS}", f"training.batch_pairs={PAIRS}", f"training.seed={SEED}"),
        *(f"training.valid_every={STEPS}", "model.hidden=12", "model.embedding=10", "model.maxout=8"),
        *(
            f"training.schedule.warmup={WARMUP}",
            "model.attention.score.size=6",
            f'data.valid=["{folder / "valid.tsv"}"]',
        ),
        *("text.source.kind=characters", "text.target.kind=characters"),
        "task.kind=translation",
    ]
    return regarde.train(folder / "train.tsv", preset="rnnsearch-small", settings=settings, out=folder / "run")


def by_hand(config: BahdanauConfig) -> dict[str, torch.Tensor]:
    """Adam with a cosine schedule, gradients clipped at 1; everything random is a function of (seed, batch)."""
    sides = [SymbolTokenizer.train(Characters(), side, 1000) for side in zip(*TRAIN, strict=True)]
    text = Text(*sides, normalize="NFC")
    rows = [(text.source.encode(source), text.target.encode(target)) for source, target in TRAIN]
    lengths = [np.array([len(row[side]) + 1 for row in rows]) for side in (0, 1)]
    torch.manual_seed(SEED * 1_000_003)
    model = config.build(len(text.source), len(text.target)).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.999), eps=1e-8, fused=True)
    epochs = (sampling.batches(*lengths, seed=SEED, epoch=n, pairs=PAIRS, tokens=0) for n in itertools.count())
    for step, chosen in zip(range(STEPS), itertools.chain.from_iterable(epochs), strict=False):
        batch = collate(*zip(*(rows[row] for row in chosen), strict=True))
        fall = 0.5 * (1 + math.cos(math.pi * max(0.0, (step - WARMUP) / (STEPS - WARMUP))))
        rate = RATE * (min(1.0, (step + 1) / WARMUP) * (FLOOR + (1 - FLOOR) * fall))
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        torch.manual_seed(SEED * 1_000_003 + step)
        word_loss(model.logits(batch), batch.target_ids, scale=1 / int(batch.target_mask.sum())).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.state_dict()


def test_a_run_ends_with_the_weights_of_a_loop_that_knows_no_task(run: Run) -> None:
    found = safetensors.torch.load_file(run.folder / "checkpoints" / f"step-{STEPS}" / WEIGHTS)
    translator = regarde.load(run.folder, engine="torch")
    attention = GlobalConfig(score=AdditiveConfig(size=6))
    sizes = BahdanauConfig(embedding=10, hidden=12, maxout=8, dropout=0.1, init="torch", attention=attention)
    expected = by_hand(sizes)
    assert expected.keys() == translator.model.state_dict().keys()
    assert {name for name, tensor in expected.items() if not torch.equal(tensor, found[name])} == set()


def test_a_folder_without_a_task_translates_as_before(run: Run, tmp_path: Path) -> None:
    old = Path(shutil.copytree(run.folder, tmp_path / "old"))
    tables = tomllib.loads((run.folder / CONFIG).read_text())
    assert tables.pop("task") == {"kind": "translation"}
    manifest.add_file(old, CONFIG, as_text(tables).encode())
    for engine in ("auto", "torch"):
        before, after = (regarde.load(folder, engine=engine) for folder in (old, run.folder))
        one, other = before.translate("123"), after.translate("123")
        assert (one.text, one.token_scores) == (other.text, other.token_scores)
        assert before.task == after.task
