"""`regarde translate --on WHERE`: chooses the workers, shows the progress, and says what came of it.

local, local:N       processes of this machine, one for each core or N
ray, ray://H:P       a cluster of Ray: the one of RAY_ADDRESS, or the one whose client server listens there
"""

from __future__ import annotations

import glob
import re
import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from signal import Signals

from regarde.display.progress import PartsDisplay
from regarde.engines.devices import CORES
from regarde.errors import DataError, UsageError, counted, warn
from regarde.streaming.endpoints import SignalExit
from regarde.streaming.filter import FilterConfig, report
from regarde.streaming.shards import PartsFolder, Pool, ShardOutcome, translate_shards
from regarde.tasks import TaskConfig

NAMED = 5  # shards in a message
_PLACE = re.compile(r"local(?::([1-9]\d{0,3}))?|ray(?:://\S+)?")


def translate_on(place: str, config: FilterConfig, pattern: Path, output: Path) -> None:
    """Answer the lines of files in parts, on the workers of a place."""
    found = _PLACE.fullmatch(place)
    if not found:
        raise UsageError(f"--on {place}: expected local, local:N, ray or ray://HOST:PORT. Give one of them.")
    config = replace(config, threads=config.threads or 1)
    files = _files(pattern)
    with ExitStack() as stack, ExitStack() as shown:
        folder = stack.enter_context(PartsFolder.opened(output, config, files))
        speed = Throughput(folder)

        def stopped(number: Signals) -> str:
            shown.close()
            return f"stopped by {number.name} after {speed.parts()}. Repeat the command to continue."

        stack.enter_context(SignalExit(folder.whole, stopped))
        aside: dict[int, str] = {}
        if folder.missing():
            pool = stack.enter_context(closing(_pool(place, config, int(found[1] or CORES))))
            display = shown.enter_context(PartsDisplay(len(folder.plan.shards)))

            def progressed(outcome: ShardOutcome) -> None:
                speed.add(outcome)
                display.progressed(speed.done, speed.now())

            aside = translate_shards(folder, pool, progressed)
        else:
            folder.finish()
    warn(speed.summary())
    if aside:
        plan = folder.plan
        each = [f"{plan.named(plan.shards[number])} ({reason})" for number, reason in sorted(aside.items())]
        more = f" and {counted(len(each) - NAMED, 'more part')}" if len(each) > NAMED else ""
        given = f"{output}: {counted(len(each), 'part is', 'parts are')} missing: {'; '.join(each[:NAMED])}{more}"
        raise DataError(f"{given}. All others are whole. Repeat the command to try again.")
    report(folder.counts, _task(config))


class Throughput:
    """Lines and seconds, in all and of each node."""

    def __init__(self, folder: PartsFolder) -> None:
        self.folder = folder
        self.done = len(folder.plan.shards) - len(folder.missing())
        self._before, self._began = self.done, time.perf_counter()
        self._lines: Counter[str] = Counter()

    def add(self, outcome: ShardOutcome) -> None:
        self.done += 1
        self._lines[outcome.place] += self.folder.plan.shards[outcome.number].lines

    def parts(self) -> str:
        return f"{self.done:,} of {counted(len(self.folder.plan.shards), 'part')}"

    def now(self) -> str:
        """Lines per second; of each node, if there are several."""
        seconds = max(time.perf_counter() - self._began, 1e-3)
        nodes = ", ".join(f"{place} {lines / seconds:,.0f}" for place, lines in sorted(self._lines.items()))
        return f"{self._lines.total() / seconds:,.0f} lines/s" + (f" ({nodes})" if len(self._lines) > 1 else "")

    def summary(self) -> str:
        lines = sum(shard.lines for shard in self.folder.plan.shards)
        given = f"{self.folder.path}: {self.parts()}, of {counted(lines, 'line')}"
        if not self._lines:
            return f"{given}, were there already"
        before = f"; {self._before:,} were there already" if self._before else ""
        return f"{given}, in {time.perf_counter() - self._began:,.0f} s: {self.now()}{before}"


def _files(pattern: Path) -> list[Path]:
    if pattern.exists():
        return [pattern]
    found = [Path(name) for name in sorted(glob.glob(str(pattern), recursive=True))]  # noqa: PTH207  # absolute ones
    if not found:
        raise DataError(f"{pattern}: no such file. Give --input the path of a text file.")
    return found


def _pool(place: str, config: FilterConfig, processes: int) -> Pool:
    if place.startswith("local"):
        from regarde.streaming.local import ProcessPool

        return ProcessPool(config, processes)
    from regarde.streaming.cluster import RayPool

    return RayPool(config, "" if place == "ray" else place)


def _task(config: FilterConfig) -> TaskConfig:
    from regarde.folder.loading import load_scribe

    return load_scribe(Path(config.runs[0]), 0).task
