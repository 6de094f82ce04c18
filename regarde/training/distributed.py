"""Training with several processes: torchrun starts them, and each computes its share of every update.

    torchrun --nproc-per-node 2 -m regarde train my.tsv --out runs/mine

Only rank 0 reads and writes files; it sends what it read to the others. An update uses training.accumulate batches for
each process; rank r computes every `size`-th of them. The loss is the sum over the tokens of a batch, divided by the
tokens of the whole update, and gradients are added up. So n processes compute the same update as one process with
training.accumulate = n. Gradients are sent in buckets, those of the last layers first, while the backward pass computes
the others.

Values other than tensors are sent as JSON. Connections are not authenticated: see docs/distributed.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from regarde.errors import RegardeError, is_out_of_memory

BUCKET = 2**20  # elements that are sent together, at least
PATIENCE = timedelta(minutes=30)  # timeout for a process that hangs; one that has ended is noticed at once


@dataclass(frozen=True)
class World:
    """The rank of this process, and the number of processes."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"
    restarted: bool = False  # whether torchrun restarted the processes after losing one

    @property
    def writes(self) -> bool:
        """Whether this process writes the run folder; exactly one does."""
        return self.rank == 0

    def spread(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by that of rank 0."""
        if self.size > 1:
            with _connected():
                for tensor in tensors:
                    dist.broadcast(tensor, src=0)

    def share(self, value: Any) -> Any:
        """The value of rank 0, in every process."""
        return value if self.size == 1 else self.gather(value if self.writes else None)[0]

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, by rank."""
        if self.size == 1:
            return [value]
        content = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).to(self.device)
        sizes = [torch.zeros(1, dtype=torch.int64, device=self.device) for _ in range(self.size)]
        with _connected():
            dist.all_gather(sizes, torch.tensor([len(content)], device=self.device))
        longest = max(int(size) for size in sizes)
        found = [torch.empty(longest, dtype=torch.uint8, device=self.device) for _ in range(self.size)]
        with _connected():
            dist.all_gather(found, torch.nn.functional.pad(content, (0, longest - len(content))))
        return [json.loads(bytes(f[: int(n)].tolist())) for f, n in zip(found, sizes, strict=True)]

    def agree(self, what: str, value: Any) -> None:
        """Raise an error if the processes have different values of `what`."""
        found = self.gather(value)
        for rank, other in enumerate(found):
            if other != found[0]:
                given = f"rank {rank} has {str(other)[:40]}, rank 0 has {str(found[0])[:40]}"
                raise RegardeError(
                    f"{what} must be the same in all processes: {given}. Give all machines the same files."
                )


ALONE = World()


class GradientSum:
    """The sum of the gradients of all processes, in buckets that are the same in all of them.

    A bucket is sent when all its gradients are there, and those before it are sent. Parameters near the output have
    theirs first, so buckets are in reverse order.
    """

    def __init__(self, world: World, parameters: Sequence[Tensor]) -> None:
        self.world = world
        self.sent_early = 0  # buckets of the last update that were sent during its backward pass
        self._buckets: list[list[Tensor]] = [[]]
        self._bucket_of: dict[Tensor, int] = {}
        for parameter in reversed(parameters):
            if sum(each.numel() for each in self._buckets[-1]) >= BUCKET:
                self._buckets.append([])
            self._buckets[-1].append(parameter)
            self._bucket_of[parameter] = len(self._buckets) - 1
        self._missing: list[int] = []  # gradients of each bucket, during the last backward pass of an update
        self._flying: list[tuple[Any, Tensor]] = []
        if world.size > 1:
            for parameter in parameters:
                parameter.register_post_accumulate_grad_hook(self._arrived)  # type: ignore[no-untyped-call]

    @contextmanager
    def during(self) -> Iterator[None]:
        """Around the last backward pass of an update, which must be a single one."""
        self._missing = [len(bucket) for bucket in self._buckets]
        try:
            yield
        finally:
            self._missing = []

    def finish(self, others: Tensor) -> None:
        """Send the rest, and `others`; at the end all are sums. A parameter without gradient counts as zero."""
        self.sent_early = len(self._flying)
        for bucket in self._buckets[len(self._flying) :]:
            for parameter in bucket:
                if parameter.grad is None:  # not used by this process, but perhaps by another
                    parameter.grad = torch.zeros_like(parameter)
            self._send(bucket)
        flying, self._flying = self._flying, []
        with _connected():
            dist.all_reduce(others)
            for work, _ in flying:
                work.wait()
        for bucket, (_, flat) in zip(self._buckets, flying, strict=True):
            parts = torch.split(flat, [parameter.numel() for parameter in bucket])
            for parameter, total in zip(bucket, parts, strict=True):
                parameter.grad = total.view_as(parameter)

    def _arrived(self, parameter: Tensor) -> None:
        if not self._missing:
            return
        self._missing[self._bucket_of[parameter]] -= 1
        while len(self._flying) < len(self._buckets) and not self._missing[len(self._flying)]:
            self._send(self._buckets[len(self._flying)])

    def _send(self, bucket: Sequence[Tensor]) -> None:
        flat = torch.cat([parameter.grad.reshape(-1) for parameter in bucket if parameter.grad is not None])
        with _connected():
            self._flying.append((dist.all_reduce(flat, async_op=True), flat))


@contextmanager
def joined(device: str) -> Iterator[World]:
    """The processes that torchrun started, or this process alone."""
    restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield World(device=device, restarted=restarted)
        return
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with _connected():
        dist.init_process_group("nccl" if device == "cuda" else "gloo", timeout=PATIENCE)
    yield World(dist.get_rank(), dist.get_world_size(), device, restarted)
    dist.destroy_process_group()  # not after an error: it would wait for a lost process


@contextmanager
def _connected() -> Iterator[None]:
    """Report a lost connection in one line; torch raises a RuntimeError for it."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        reason = str(error).partition("\n")[0].partition(". ")[0][:200]
        remedy = "torchrun restarts all of them if --max-restarts allows it; otherwise continue with --resume."
        raise RegardeError(
            f"Lost the connection to the other processes of this training ({reason}). {remedy}"
        ) from None
