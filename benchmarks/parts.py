"""Translation in parts against processes that share nothing: lines per second, processor time, and the same bytes.

    python benchmarks/parts.py RUN --lines 1000000 --ways two,local,ray,killed,spark

two     two processes, `regarde translate` on half of the lines each: what there is to reach
local   --on local:2
ray     --on ray, two nodes with one core each
killed  the same; a worker, the driver and a node are killed on the way, and another driver and node take their places
spark   regarde.spark.translate, local[2]

Lines are 1 to 8 letters, drawn by a fixed seed. The start of clusters is not counted, that of workers is.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")


def make(path: Path, lines: int) -> None:
    dice = random.Random(1)
    with path.open("w") as out:
        out.writelines("".join(dice.choices("abcdefgh", k=dice.randint(1, 8))) + "\n" for _ in range(lines))


def translate(run: Path, *more: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-P", "-m", "regarde", "translate", str(run), *map(str, more)])


def family(process: int) -> Iterator[int]:
    """A process and all that it has started."""
    yield process
    with suppress(OSError):
        for path in Path(f"/proc/{process}/task").glob("*/children"):
            for child in path.read_text().split():
                yield from family(int(child))


def used() -> float:
    """Seconds of processor time of all processes of this benchmark, those that have ended included."""
    total = 0
    for process in family(os.getpid()):
        with suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))  # its own and of children it has waited for
    return total / TICKS


@dataclass
class Trial:
    """Where a way finds its lines, and where it writes."""

    run: Path
    options: list[str]
    source: Path
    lines: int
    home: Path

    def two(self) -> bytes:
        halves = []
        with self.source.open("rb") as lines:
            for name, count in (("a", self.lines // 512 * 256), ("b", self.lines)):
                halves.append(self.home / name)
                halves[-1].write_bytes(b"".join(itertools.islice(lines, count)))
        self.begin()
        common = (self.run, *self.options, "--threads", 1)
        workers = [translate(*common, "--input", half, "--output", f"{half}.out") for half in halves]
        assert [worker.wait() for worker in workers] == [0, 0]
        return b"".join(Path(f"{half}.out").read_bytes() for half in halves)

    def local(self) -> bytes:
        self.begin()
        assert translate(*self.command("local:2")).wait() == 0
        return parts(self.home / "out")

    def ray(self, *, kills: bool = False) -> bytes:
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "object_store_memory": 100 << 20}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        second = cluster.add_node(**node)
        os.environ["RAY_ADDRESS"] = cluster.address
        out = self.home / "out"
        command = self.command("ray")
        total = -(-self.source.stat().st_size // (1 << 15))  # parts, about
        self.begin()
        driver = translate(*command)
        if kills:
            until(lambda: recorded(out) > total // 5)
            kill_worker(second)
            until(lambda: recorded(out) > 2 * total // 5)
            driver.kill()
            driver.wait()
            driver = translate(*command)
            until(lambda: recorded(out) > 3 * total // 5)
            cluster.remove_node(second, allow_graceful=False)
            cluster.add_node(**node)
        assert driver.wait() == 0
        self.end()
        cluster.shutdown()
        return parts(out)

    def killed(self) -> bytes:
        return self.ray(kills=True)

    def spark(self) -> bytes:
        from pyspark.sql import SparkSession

        import regarde.spark

        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        self.begin()
        frame = session.read.text(str(self.source))
        found = regarde.spark.translate(frame, self.run, column="value")
        found.select("translation").write.text(str(self.home / "out"))
        self.end()
        session.stop()
        return parts(self.home / "out")

    def command(self, place: str) -> tuple[object, ...]:
        return (self.run, *self.options, "--input", self.source, "--output", self.home / "out", "--on", place)

    def begin(self) -> None:
        self._since, self._before = time.perf_counter(), used()

    def end(self) -> None:
        self.seconds, self.processor = time.perf_counter() - self._since, used() - self._before


def parts(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("part-*")))


def recorded(folder: Path) -> int:
    with suppress(OSError):
        return (folder / "parts.jsonl").read_bytes().count(b"\n")
    return 0


def until(happened: Callable[[], bool]) -> None:
    while not happened():
        time.sleep(0.02)


def kill_worker(node: Any) -> None:
    (raylet,) = (each.process.pid for each in node.all_processes["raylet"])
    for process in family(raylet):
        if Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::_answered"):
            os.kill(process, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--options", default="", help="of regarde translate, for example '--beam 5'")
    parser.add_argument("--ways", default="two,local,ray,killed,spark")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = ":".join(sys.path)
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  # its name; like the other ways, where Ray's own is 15
    print("| way | seconds | lines/s | processor time, s | SHA-256 |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        source = Path(home) / "in.txt"
        make(source, given.lines)
        for way in given.ways.split(","):
            trial = Trial(given.run, given.options.split(), source, given.lines, Path(home) / "way")
            trial.home.mkdir()
            answers = getattr(trial, way)()
            if not hasattr(trial, "seconds"):
                trial.end()
            digest, rate = hashlib.sha256(answers).hexdigest()[:12], given.lines / trial.seconds
            print(f"| {way} | {trial.seconds:.1f} | {rate:,.0f} | {trial.processor:.1f} | {digest} |", flush=True)
            shutil.rmtree(trial.home)


if __name__ == "__main__":
    main()
