"""What a training minimizes: words with class weights, and a decoder's penalty."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from regarde.data.batch import Batch, collate
from regarde.data.formats import Pair
from regarde.models import BahdanauConfig, ClassifierConfig
from regarde.text import TextConfig, WordsConfig
from regarde.text.labels import LabelsConfig
from regarde.training.objective import Objective, balanced
from regarde.training.prepare import prepare
from regarde.training.recipe import SGD, TrainingConfig
from regarde.training.step import Stepper, seeded

PAIRS = [Pair("a b c", "x"), Pair("b d", "y"), Pair("c", "x"), Pair("a a d e", "z"), Pair("e", "x")]
TEXT = TextConfig(WordsConfig(), LabelsConfig()).train(PAIRS)
SIZES = (len(TEXT.source), len(TEXT.target))


def batch() -> Batch:
    rows = [(TEXT.source.encode(source), TEXT.target.encode(target)) for source, target in PAIRS]
    return collate([source for source, _ in rows], [target for _, target in rows], ends=False)


def classifier(**settings: object) -> torch.nn.Module:
    with seeded(3):
        config = ClassifierConfig(embedding=3, hidden=2, size=4, **settings)  # type: ignore[arg-type]
        return config.build(*SIZES).double()


def test_balanced_weights_are_n_over_classes_times_count() -> None:
    ids = batch().target_ids.flatten().numpy().astype(np.int32)
    weights = balanced(np.bincount(ids, minlength=SIZES[1]))
    x, y, z = (TEXT.target.encode(label)[0] for label in "xyz")
    assert weights[x].item() == pytest.approx(5 / (3 * 3))
    assert weights[y].item() == weights[z].item() == pytest.approx(5 / (3 * 1))
    assert weights[:4].tolist() == [1, 1, 1, 1]
    assert weights[ids].mean().item() == pytest.approx(1)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_class_weights_are_those_of_torch(smoothing: float) -> None:
    weights = torch.tensor([1, 1, 1, 1, 0.25, 4, 1.5], dtype=torch.double)
    one, two = classifier(), classifier()
    loss = Objective(smoothing=smoothing, weights=weights).backward(one, batch(), tokens=5)
    logits = two.logits(batch())[:, 0]
    words = batch().target_ids[:, 0]
    wanted = functional.cross_entropy(logits, words, weights, label_smoothing=smoothing, reduction="sum") / 5
    wanted.backward()
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-12)
    for mine, theirs in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_truncated_targets_are_weighted_too() -> None:
    pairs = collate([[5, 4], [6]], [[4, 5, 6], [6, 4]])
    weights = torch.tensor([1, 1, 1, 0.5, 0.25, 4, 1.5], dtype=torch.double)
    losses = []
    for truncate in (0, 2):
        with seeded(2):
            model = BahdanauConfig(embedding=3, hidden=2).build(7, 7).double()
        losses.append(Objective(weights=weights, truncate=truncate).backward(model, pairs, tokens=7).item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


def test_the_penalty_is_that_of_lin_et_al() -> None:
    """|A A^T - I|_F^2 by a slow loop (equation 8), added to the loss with its weight."""
    plain, punished = classifier(queries=3), classifier(queries=3, penalty=0.7)
    attention = plain(batch()).attention  # (B, R, N, T, S)
    wanted = 0.0
    for text in attention[:, :, 0, 0].tolist():
        for i, a in enumerate(text):
            for j, b in enumerate(text):
                wanted += (sum(p * q for p, q in zip(a, b, strict=True)) - (i == j)) ** 2
    without, loss = (Objective().loss(model, batch(), tokens=5).item() for model in (plain, punished))
    assert loss - without == pytest.approx(0.7 * wanted / 5, rel=1e-9)


def test_the_penalty_makes_queries_look_at_different_words() -> None:
    def overlap(penalty: float) -> float:
        model = classifier(queries=2, penalty=penalty).float()
        stepper = Stepper(model, TrainingConfig(optimizer=SGD(rate=1.0)), total=80)
        for step in range(80):
            stepper(batch(), step)
        one, two = model(batch()).attention[[0, 3], :, 0, 0].unbind(1)  # of the longer texts
        return (one * two).sum().item()

    assert overlap(1.0) < 0.6 * overlap(0.0)


def test_a_run_counts_its_classes_in_the_training_rows(tmp_path) -> None:
    rows = ["good fun\tyes", "bad day\tno", "fine\tyes", "so good\tyes"]
    (tmp_path / "train.tsv").write_text("".join(f"{row}\n" for row in rows))
    (tmp_path / "valid.tsv").write_text("bad\tno\n")
    tables = {
        "task": {"kind": "classification"},
        "model": {"kind": "classifier"},
        "data": {"name": str(tmp_path / "train.tsv"), "valid": [str(tmp_path / "valid.tsv")]},
        "training": {"class_weights": "balanced", "steps": 1},
    }
    prepared = prepare(tables)
    weights = prepared.objective("cpu").weights
    assert weights is not None
    yes, no = (prepared.text.target.encode(label)[0] for label in ("yes", "no"))
    assert (weights[yes].item(), weights[no].item()) == (pytest.approx(4 / (2 * 3)), pytest.approx(4 / 2))
    assert prepare(tables | {"training": {"steps": 1}}).objective("cpu").weights is None
