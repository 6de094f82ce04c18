"""Language models of running text: carried state, exact resuming, what is inferred and what is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import regarde
from regarde.data.batch import Batch
from regarde.errors import ConfigError, DataError
from regarde.models import RecurrentLanguageConfig
from regarde.training.checkpoint import read
from regarde.training.distributed import World
from regarde.training.prepare import Prepared, prepare
from regarde.training.recipe import SGD, TrainingConfig
from regarde.training.start import compose
from regarde.training.step import Stepper
from regarde.training.trainer import Trainer
from regarde.training.validate import validation_loss
from tests.training.test_resume import assert_same, forget

TEXT = "\n\n".join(f"Paragraph {n}:\nit has {n * 7 % 5} lines." for n in range(60))
SHORT = ["training.steps=12", "training.valid_every=4", "training.save_every=3", "training.batch_pairs=5"]
MODELS = {
    "lstm-lm-small": ["model.hidden=6", "model.embedding=6"],
    "attentive-lm-small": ["model.hidden=9", "model.embedding=3", "model.score.size=4", "model.window=3"],
    "transformer-lm-small": ["model.size=8", "model.feed_forward=6", "model.heads=2", "model.layers=2"],
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(TEXT)


def prepared(preset: str, *settings: str, name: str = "text.txt") -> Prepared:
    settings = (*SHORT, *MODELS[preset], "training.keep=9", "task.context=16", *settings)
    return prepare(compose({"name": name}, preset=preset, settings=settings))


@pytest.mark.parametrize("preset", MODELS)
@pytest.mark.parametrize("step", [3, 8, 9])
def test_a_run_on_running_text_goes_on_bit_for_bit(preset: str, step: int) -> None:
    settings = [*SHORT, *MODELS[preset], "training.keep=9", "task.context=16"]
    whole = regarde.train("text.txt", preset=preset, settings=settings, out="whole")
    shutil.copytree("whole", "cut")
    forget(Path("cut"), step)
    assert_same(whole.folder, regarde.train("cut", resume=True, exact=True).folder)


def test_a_checkpoint_within_an_epoch_holds_the_carried_state() -> None:
    settings = [*SHORT, *MODELS["lstm-lm-small"], "training.keep=9", "task.context=16"]
    run = regarde.train("text.txt", preset="lstm-lm-small", settings=settings, out="run").folder
    checkpoint = read(run / "checkpoints/step-3")
    model = checkpoint_model = regarde.folder.model.load(run / "checkpoints/step-3").model
    state = checkpoint.carried(checkpoint_model, "cpu")
    assert state is not None
    assert state.past.shape[3] == 0
    assert any(tensor.abs().sum() > 0 for tensor in state.tensors())
    assert read(run / "checkpoints/step-0").carried(model, "cpu") is None


@torch.no_grad()
@pytest.mark.parametrize("preset", ["lstm-lm-small", "attentive-lm-small"])
def test_carried_state_is_one_long_unroll(preset: str) -> None:
    """In float64: the logits of an epoch, piece by piece, are those of its streams in one piece."""
    given = prepared(preset)
    model = given.recipe.model.build(len(given.text.source), len(given.text.target)).double().eval()
    batches = [given.train.batch(rows) for rows in given.train.epoch(seed=1, epoch=0, pairs=3, tokens=0)]
    state, pieces = None, []
    for batch in batches:
        logits, state = model.carry(batch, None if batch.starts else state)
        pieces.append(logits)
    whole = replace(batches[0], previous=torch.cat([batch.previous for batch in batches], dim=1))
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(whole).logits, rtol=0, atol=1e-12)
    alone, _ = model.carry(batches[1], None)
    assert (alone - pieces[1]).abs().max() > 1e-4  # it matters


def test_gradients_do_not_pass_from_batch_to_batch() -> None:
    """A step after a carried state has the gradients of that batch with the state as a constant."""
    given = prepared("lstm-lm-small", "model.dropout=0.0")
    first, second, *_ = (given.train.batch(rows) for rows in given.train.epoch(seed=1, epoch=0, pairs=3, tokens=0))
    model = given.recipe.model.build(len(given.text.source), len(given.text.target))
    stepper = Stepper(model, TrainingConfig(optimizer=SGD(rate=1e-9), clip=0.0), total=10, carries=True)
    stepper(first, 0)
    constant = stepper.carried
    assert constant is not None
    assert not any(tensor.requires_grad for tensor in constant.tensors())
    loss = stepper(second, 1).loss
    logits, _ = model.carry(second, constant)
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), second.target_ids.flatten(), ignore_index=0)
    assert loss == pytest.approx(expected.item(), rel=1e-5)


def test_a_new_epoch_begins_anew() -> None:
    given = prepared("lstm-lm-small")
    model = given.recipe.model.build(len(given.text.source), len(given.text.target))
    first = given.train.batch(given.train.epoch(seed=1, epoch=0, pairs=3, tokens=0)[0])

    def loss_after(others: list[Batch]) -> float:
        stepper = Stepper(model, TrainingConfig(optimizer=SGD(rate=1e-12)), total=10, carries=True)
        for batch in others:
            stepper(batch, 3)
        return stepper(first, 0).loss

    assert loss_after([]) == pytest.approx(loss_after([first, first]), rel=1e-9)


@pytest.mark.parametrize("preset", MODELS)
def test_validation_carries_state_too(preset: str) -> None:
    given = prepared(preset)
    model = given.recipe.model.build(len(given.text.source), len(given.text.target))
    loss = validation_loss(given.valid, model, "cpu", World())
    ids = given.valid.targets.ids.tolist()
    pieces = [ids] if given.valid.carries else [ids[i : i + 16] for i in range(0, len(ids), 16)]
    total = 0.0
    for piece in pieces:
        source = given.valid.batch(given.valid.in_order(pairs=1, tokens=100)[0][:1]).source
        encoding = model.encode(source)
        previous = torch.tensor([[2, *piece[:-1]]])
        logits, _ = model.decoder.unroll(previous, model.decoder.start(encoding), model.decoder.remember(encoding))
        total += float(torch.nn.functional.cross_entropy(logits[0], torch.tensor(piece), reduction="sum").detach())
    assert loss == pytest.approx(total / len(ids), rel=1e-5)


def test_running_text_is_inferred_and_said() -> None:
    found = prepare(compose({"name": "text.txt"}, preset="lstm-lm-small", settings=SHORT))
    assert found.recipe.task.context == 128
    assert found.notes[0].startswith("text: 59 of 179 lines are blank: one running text")
    assert "\n" in found.text.target.vocabulary.symbols
    assert (
        found.text.target.decode(found.train.targets.ids) + "".join(p.target for p in found.valid_pairs) == f"{TEXT}\n"
    )


def test_a_list_of_lines_stays_one() -> None:
    Path("lines.txt").write_text("".join(f"line {n}\n" for n in range(40)))
    found = prepare(compose({"name": "lines.txt"}, preset="lstm-lm-small", settings=SHORT))
    assert found.recipe.task.context == 0
    assert len(found.train) + len(found.valid) == 40


def test_lines_can_be_asked_for() -> None:
    found = prepare(compose({"name": "text.txt"}, preset="lstm-lm-small", settings=[*SHORT, "task.context=0"]))
    assert found.recipe.task.context == 0


@pytest.mark.parametrize("setting", ["training.truncate=4", "training.sampling=0.5", "data.max_target=9"])
def test_what_is_for_lines_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=r"is for texts that begin and end, task.context = 16 for running text"):
        prepared("lstm-lm-small", setting)


def test_several_processes_are_refused_where_state_is_carried() -> None:
    with pytest.raises(ConfigError, match="2 processes, but the state is carried"):
        Trainer(prepared("lstm-lm-small"), world=World(rank=0, size=2))


def test_one_line_without_a_validation_set_is_refused() -> None:
    Path("one.txt").write_text("x y z " * 900)
    with pytest.raises(DataError, match="no end can be held out"):
        prepared("lstm-lm-small", name="one.txt")


def test_a_context_of_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="context = 1"):
        prepared("lstm-lm-small", "task.context=1")


def test_the_state_of_another_model_is_refused() -> None:
    one = RecurrentLanguageConfig(embedding=3, hidden=4, layers=1).build(5, 5).decoder
    other = RecurrentLanguageConfig(embedding=3, hidden=4, layers=2, dropout=0.0).build(5, 5).decoder
    from regarde.data.batch import collate_source
    from regarde.models.language import NoSource

    encoding = NoSource()(collate_source([[], []]))
    state = one.start(encoding)
    with pytest.raises(ValueError, match="other tensors"):
        state.filled(other.start(encoding).tensors()[:2])


@pytest.mark.parametrize(
    ("preset", "settings", "context"),
    [
        ("transformer-lm-small", (), 16),
        ("transformer-lm-small", ("task.context=0", "model.positions=learned", "model.longest=40"), 40),
        ("transformer-lm-small", ("task.context=0", "model.positions=sinusoidal"), 10**6),
        ("transformer-lm-small", ("search.kind=greedy", "search.rules.context=9"), 9),
        ("lstm-lm-small", (), 10**6),
    ],
)
def test_the_context_of_a_model_with_positions_is_inferred(
    preset: str, settings: tuple[str, ...], context: int
) -> None:
    assert prepared(preset, *settings).recipe.search.rules.context == context
