"""Workers for the shards of a file: tasks on a cluster of Ray.

A task gets the lines of a shard and returns their answers; Ray chooses the node. The files of the models are put into
Ray's object store, and each worker process copies them to its node once: the machines need no common disk, but the same
version of this package. Ray repeats nothing by itself: what is lost is submitted again by the driver.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import ray

from regarde.data.pipes import as_values, raise_in
from regarde.errors import DiskError, RegardeError, UsageError, warn
from regarde.streaming.copies import Files, RemoteWorker, files_of
from regarde.streaming.filter import Counts, FilterConfig
from regarde.streaming.shards import Shard, ShardOutcome


class RayPool:
    """As many tasks as the cluster has cores, and one that waits for the next free core."""

    def __init__(self, settings: FilterConfig, address: str) -> None:
        try:
            ray.init(address or None, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            reason = str(error).partition("\n")[0][:200]
            raise UsageError(
                f"--on {address or 'ray'}: no cluster of Ray ({reason}). Start one: ray start --head"
            ) from None
        self._threads = max(1, settings.threads)
        self._worker = RemoteWorker.of(settings)
        self._folders = [ray.put(files_of(run)) for run in settings.runs]
        self._task = ray.remote(num_cpus=self._threads, max_retries=0)(_answered)
        self._flying: dict[Any, int] = {}
        self._full: set[str] = set()  # nodes whose disk is

    @property
    def size(self) -> int:
        return int(ray.cluster_resources().get("CPU", 0)) // self._threads + 1

    def submit(self, number: int, shard: Shard, raw: bytes) -> None:
        task = self._task
        if self._full:
            task = task.options(label_selector={"ray.io/node-id": f"!in({','.join(sorted(self._full))})"})
        self._flying[task.remote(self._worker, shard.first, raw, *self._folders)] = number

    def take(self) -> ShardOutcome:
        (ready,), _ = ray.wait(list(self._flying), num_returns=1)
        number = self._flying.pop(ready)
        try:
            values: dict[str, Any] = ray.get(ready)
        except ray.exceptions.RayError as error:
            reason = str(error).strip().partition("\n")[0].partition(". ")[0][:200]
            return ShardOutcome(number, "", lost=f"a worker has ended ({reason})")
        node, place = values["node"], values["place"]
        if values.get("kind") == DiskError.__name__:
            if node not in self._full:
                self._full.add(node)
                warn(f"warning: node {place}: {values['error']} Until then it gets no lines.")
            if not any(each["Alive"] and each["NodeID"] not in self._full for each in ray.nodes()):
                raise_in(values)
            return ShardOutcome(number, place, lost="the disk of a node is full", blameless=True)
        raise_in(values)
        return ShardOutcome(number, place, values["answer"], Counts(**values["counts"]))

    def close(self) -> None:
        with suppress(Exception):  # of a cluster that is gone
            ray.shutdown()


def _answered(worker: RemoteWorker, first: int, raw: bytes, *folders: Files) -> dict[str, Any]:
    """What a task returns: an answer, or the error that it raised."""
    node = ray.get_runtime_context().get_node_id()
    values = {"node": node, "place": f"{ray.util.get_node_ip_address()}-{node[:6]}"}
    try:
        answer, counts = worker.here(folders).answer(raw, first)
        return values | {"answer": answer, "counts": asdict(counts)}
    except RegardeError as error:
        return values | as_values(error)
