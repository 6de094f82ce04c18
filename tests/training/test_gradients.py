"""Gradients that several processes add up: in buckets, which are sent while the backward pass goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from regarde.data.batch import Batch, collate
from regarde.models.bahdanau import BahdanauConfig
from regarde.models.interface import Model
from regarde.training import distributed
from regarde.training.distributed import World
from regarde.training.prepared import NumberedBatch
from regarde.training.recipe import TrainingConfig
from regarde.training.step import Stepper


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A process that adds up with others, of which there are none here: a sum is what it was."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", world_size=1, rank=0)
    monkeypatch.setattr(distributed, "BUCKET", 60)
    yield World(size=2)
    dist.destroy_process_group()


@pytest.fixture
def model() -> Model:
    torch.manual_seed(1)
    return BahdanauConfig(embedding=5, hidden=4, maxout=3, dropout=0.0, init="torch").build(9, 8)


BATCHES = [collate([[5, 6], [7]], [[4, 5], [6, 7, 5]]), collate([[8]], [[6]])]
TOKENS = sum(int(batch.target_mask.sum()) for batch in BATCHES)


def gradients(
    model: Model, world: World, batches: list[Batch], **settings: object
) -> tuple[Stepper, list[torch.Tensor]]:
    stepper = Stepper(model, TrainingConfig(clip=0.0, **settings), 10, world)  # type: ignore[arg-type]
    stepper.update([NumberedBatch(batch, n) for n, batch in enumerate(batches)], 0, tokens=TOKENS)
    return stepper, [parameter.grad.clone() for parameter in stepper.parameters if parameter.grad is not None]


@pytest.mark.parametrize("truncate", [0, 2])
def test_sums_are_the_same_in_buckets(model: Model, two: World, truncate: int) -> None:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    _, alone = gradients(model, World(), BATCHES, truncate=truncate)
    model.load_state_dict(before)
    _, several = gradients(model, two, BATCHES, truncate=truncate)
    assert all(torch.equal(one, other) for one, other in zip(alone, several, strict=True))


def test_buckets_are_sent_during_the_last_backward_pass_alone(
    model: Model, two: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    stepper = Stepper(model, TrainingConfig(), 10, two)
    count = len(stepper.gradients._buckets)
    assert count > 5
    send, backward = stepper.gradients._send, stepper.objective.backward
    monkeypatch.setattr(stepper.gradients, "_send", lambda bucket: (sent.append(len(bucket)), send(bucket)))

    class Watched:
        def backward(self, *given: object, **named: object) -> torch.Tensor:
            found = backward(*given, **named)  # type: ignore[arg-type]
            after.append(len(sent))
            return found

    after: list[int] = []
    stepper.objective = Watched()
    stepper.update([NumberedBatch(batch, n) for n, batch in enumerate(BATCHES)], 0, tokens=TOKENS)
    assert after == [0, count]
    assert stepper.gradients.sent_early == count


def test_a_parameter_that_is_not_used_here_counts_as_zero(model: Model, two: World) -> None:
    model.register_parameter("unused", torch.nn.Parameter(torch.ones(3)))
    stepper, _ = gradients(model, two, BATCHES)
    assert stepper.gradients.sent_early == len(stepper.gradients._buckets) - 1, "it is in the last one"
    assert torch.equal(model.get_parameter("unused").grad, torch.zeros(3))
