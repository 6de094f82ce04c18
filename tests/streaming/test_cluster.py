"""Translation in parts on a cluster of Ray with two nodes: the bytes of one process, whatever is killed meanwhile."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from regarde.folder import manifest

cluster_utils = pytest.importorskip("ray.cluster_utils")

FULL = """
import errno, os, pathlib
write = pathlib.Path.write_bytes
def full(path, content):
    if "regarde-" in str(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return write(path, content)
pathlib.Path.write_bytes = full
"""  # for a sitecustomize.py: where the models are copied to, the disk is full


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """A node with one core; tests add others."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", ":".join(sys.path))
        head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 << 20}
        made = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
        yield made
        made.shutdown()


@pytest.fixture
def node(cluster) -> Callable[..., object]:
    """Adds a node with one core."""
    added = []

    def add(**variables: str) -> object:
        added.append(cluster.add_node(num_cpus=1, object_store_memory=80 << 20, env_vars=variables))
        return added[-1]

    yield add
    for each in added:
        if each in cluster.worker_nodes:
            cluster.remove_node(each)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dice = random.Random(1)
    path = tmp_path_factory.mktemp("source") / "in.txt"
    rows = ("".join(dice.choices("abcdefgh", k=dice.randint(1, 7))) for _ in range(8000))
    long = "ab " * 22_000  # refused, and larger than two shards
    path.write_text("".join(f"{long}\n" if number % 256 == 0 else f"{row}\n" for number, row in enumerate(rows)))
    return path


@pytest.fixture(scope="module")
def expected(source: Path, tiny: Path, regarde) -> bytes:
    done = regarde("translate", tiny, "--input", source)
    assert "32 lines too long" in done.fails(3)
    return done.out


@pytest.fixture
def driver(cluster, start, source: Path, tiny: Path, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts the command."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_ADDRESS", cluster.address)
        yield lambda: start("translate", tiny, "--input", source, "--output", tmp_path / "out", "--on", "ray")


def recorded(folder: Path) -> int:
    path = folder / "parts.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not happened():
        assert time.monotonic() < end, "it did not happen within 90 seconds"
        time.sleep(0.002)


def workers(node) -> list[int]:
    """The processes of a node that answer lines."""
    (raylet,) = (each.process.pid for each in node.all_processes["raylet"])
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            title = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == raylet and title.startswith(b"ray::_answered"):
            found.append(int(path.name))
    return found


def together(folder: Path) -> bytes:
    listed = manifest.read(folder)
    for name, entry in listed.items():
        manifest.check_file(folder / name, entry)
    return b"".join((folder / name).read_bytes() for name in sorted(listed))


def test_a_worker_a_driver_and_a_node_are_killed_and_the_bytes_are_those_of_one_process(
    cluster, node, driver, tmp_path: Path, expected: bytes
) -> None:
    second, out = node(), tmp_path / "out"
    with driver() as process:
        until(lambda: recorded(out) >= 2 and bool(workers(second)))
        os.kill(workers(second)[0], signal.SIGKILL)
        at = recorded(out)
        until(lambda: recorded(out) >= at + 4)
        process.kill()
    at = recorded(out)
    assert 6 <= at < 32
    with driver() as process:
        until(lambda: recorded(out) >= at + 3 and bool(workers(second)))
        cluster.remove_node(second, allow_graceful=False)
        error = process.communicate(timeout=100)[1].decode()
    assert process.returncode == 3, error
    assert "so they are given to another worker" in error, "the node had a shard"
    assert f"{at} were there already" in error
    assert together(out) == expected


def test_a_node_whose_disk_is_full_gets_no_more_lines_and_the_others_do_the_work(
    node, driver, tmp_path: Path, expected: bytes
) -> None:
    (tmp_path / "sitecustomize.py").write_text(FULL)
    node(PYTHONPATH=":".join([str(tmp_path), *sys.path]))
    with driver() as process:
        error = process.communicate(timeout=100)[1].decode()
    assert process.returncode == 3, error
    assert error.count("no copy of the model could be written (No space left on device)") == 1
    assert together(tmp_path / "out") == expected
    assert len(json.loads((tmp_path / "out" / "plan.json").read_text())["shards"]) == 32


def test_without_a_cluster_it_says_how_to_start_one(regarde, tiny: Path, source: Path, tmp_path: Path) -> None:
    command = ("translate", tiny, "--input", source, "--output", tmp_path / "out", "--on", "ray://127.0.0.1:9")
    assert "no cluster of Ray" in regarde(*command).fails(2)
