"""The loop: exact repetition, what it writes, when it stops."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

import regarde
from regarde.data.batch import collate
from regarde.errors import RegardeError, UsageError
from regarde.folder import model as folder
from regarde.training.loss import word_loss
from regarde.training.presets import presets
from regarde.training.recipe import SGD, Adadelta, Adam, AdamW, Constant, Cosine, InverseSqrt, TrainingConfig
from regarde.training.start import Run
from regarde.training.step import Stepper, seeded

TINY = [
    "model.embedding=16",
    "model.hidden=24",
    "model.maxout=16",
    "model.attention.score.size=16",
    "training.steps=60",
    "training.valid_every=20",
    "training.valid_pairs=20",
]


def train(out: Path, *settings: str) -> Run:
    return regarde.train("copy", out=out, settings=[*TINY, *settings])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("runs") / "copy")


def weights(path: Path) -> bytes:
    return (path / "weights.safetensors").read_bytes()


def records(run: Run) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]


def test_the_same_seed_gives_the_same_weights_bit_for_bit(run: Run, tmp_path: Path) -> None:
    torch.manual_seed(12345)  # whatever the global random state is
    again = train(tmp_path / "again")
    assert weights(again.folder) == weights(run.folder)


def test_a_run_has_a_short_repr(run: Run) -> None:
    best = run.outcome.best
    assert repr(run) == f"<Run {run.folder}, best after step {best.step}, exact match {best.value:.1%}>"


def test_another_seed_gives_other_weights(run: Run, tmp_path: Path) -> None:
    assert weights(train(tmp_path / "other", "training.seed=2").folder) != weights(run.folder)


def test_training_leaves_the_global_random_state_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    train(tmp_path / "run", "training.steps=2")
    assert torch.get_rng_state().equal(before)


def test_the_loss_falls(run: Run) -> None:
    losses = [record["loss"] for record in records(run) if "loss" in record]
    assert losses[-1] < losses[0]


def test_metrics_hold_training_and_validation(run: Run) -> None:
    validations = [record for record in records(run) if "valid_loss" in record]
    assert [record["step"] for record in validations] == [20, 40, 60]
    assert all(0 <= record["exact_match"] <= 1 for record in validations)
    steps = [record for record in records(run) if "loss" in record]
    assert all(record["tokens_per_second"] > 0 and math.isfinite(record["norm"]) for record in steps)


def test_the_last_two_checkpoints_are_kept_and_load(run: Run) -> None:
    kept = sorted(path.name for path in (run.folder / "checkpoints").iterdir())
    assert kept == ["step-40", "step-60"]
    for name in kept:
        folder.load(run.folder / "checkpoints" / name).translate("abc")


def test_the_model_of_a_run_is_the_best_one(run: Run) -> None:
    best = run.outcome.best.step
    assert f"{best:,} steps, of 60 steps" in (run.folder / "README.md").read_text()
    validations = [record for record in records(run) if "valid_loss" in record]
    assert run.outcome.best.value == max(record["exact_match"] for record in validations)


def test_patience_stops_a_run_that_gets_no_better(tmp_path: Path) -> None:
    stopped = train(tmp_path / "run", "training.patience=2", "training.optimizer.rate=1e-12", "training.valid_every=10")
    assert stopped.outcome.last.step == 30
    assert "no better exact match in 2 validations" in (stopped.folder / "train.log").read_text()


def test_a_run_folder_is_never_overwritten(run: Run) -> None:
    before = weights(run.folder)
    with pytest.raises(UsageError, match="never overwritten"):
        train(run.folder)
    assert weights(run.folder) == before


def test_a_loss_that_is_not_finite_stops_before_the_update() -> None:
    from regarde.models import SutskeverConfig

    model = SutskeverConfig(embedding=3, hidden=4, layers=1).build(9, 9)
    with torch.no_grad():
        model.decoder.W.bias.fill_(float("nan"))
    before = [parameter.clone() for parameter in model.encoder.parameters()]
    stepper = Stepper(model, TrainingConfig(), total=10)
    with pytest.raises(RegardeError, match=r"Step 4: loss nan, .*not finite\. Lower"):
        stepper(collate([[5]], [[6]]), 3)
    assert all(a.equal(b) for a, b in zip(before, model.encoder.parameters(), strict=True))


def test_clipping_bounds_the_gradient() -> None:
    from regarde.models import SutskeverConfig

    with seeded(1):
        model = SutskeverConfig(embedding=3, hidden=4, layers=1).build(9, 9)
    Stepper(model, TrainingConfig(clip=0.01, optimizer=SGD()), total=10)(collate([[5]], [[6]]), 0)
    norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
    assert norm == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("optimizer", [Adam(), AdamW(), Adadelta(), SGD()], ids=lambda o: o.kind)
def test_every_optimizer_lowers_the_loss(optimizer: Adam | AdamW | Adadelta | SGD) -> None:
    from regarde.models import SutskeverConfig

    with seeded(1):
        model = SutskeverConfig(embedding=8, hidden=16, layers=1, init="torch").build(9, 9)
    stepper = Stepper(model, TrainingConfig(optimizer=optimizer), total=100)
    batch = collate([[5, 6], [7]], [[6], [8, 4]])
    losses = [stepper(batch, step).loss for step in range(60)]
    assert losses[-1] < 0.9 * losses[0]


def test_label_smoothing_equals_its_formula() -> None:
    with seeded(4):
        logits = torch.randn(2, 3, 7, dtype=torch.float64).float()
    batch = collate([[5], [6]], [[4, 5], [6]])
    found = word_loss(logits.clone(), batch.target_ids, smoothing=0.1).item()
    expected = 0.0
    for b, target in enumerate([[4, 5, 3], [6, 3]]):
        for t, word in enumerate(target):
            p = logits[b, t].double().softmax(-1)
            expected -= 0.9 * math.log(p[word]) + 0.1 * sum(math.log(q) for q in p.tolist()) / 7
    assert found == pytest.approx(expected, rel=1e-5)


def test_schedules_follow_their_curves() -> None:
    assert [Constant(warmup=4).at(n, 100) for n in (0, 1, 3, 50)] == [0.25, 0.5, 1.0, 1.0]
    cosine = Cosine(warmup=0, floor=0.1)
    assert [round(cosine.at(n, 100), 3) for n in (0, 50, 100)] == [1.0, 0.55, 0.1]
    vaswani = InverseSqrt(warmup=100)
    assert vaswani.at(99, 1) == 1.0
    assert vaswani.at(49, 1) == 0.5
    assert vaswani.at(399, 1) == 0.5


def test_every_preset_is_a_valid_recipe() -> None:
    from regarde.training import recipe

    for name, preset in presets().items():
        assert recipe.parse(preset.recipe), name


def test_the_papers_presets_hold_the_papers_settings() -> None:
    from regarde.training import recipe

    bahdanau = recipe.parse(presets()["rnnsearch-50"].recipe)
    assert bahdanau.training.optimizer == Adadelta(rate=1.0, rho=0.95, epsilon=1e-6)
    assert (bahdanau.training.batch_pairs, bahdanau.training.clip, bahdanau.data.max_source) == (80, 1.0, 50)
    sutskever = recipe.parse(presets()["sutskever-4"].recipe)
    assert sutskever.training.optimizer == SGD(rate=0.7, momentum=0.0)
    assert (sutskever.training.batch_pairs, sutskever.training.clip) == (128, 5.0)
