"""Training steps per second of DeepAR, ours and GluonTS's, one thread each, in turns in one run.

    python benchmarks/forecast.py --peer VENV/bin/python            # a Python with gluonts[torch]
    python benchmarks/forecast.py                                   # ours alone

Both read windows of the embedded `waves`: the same history, horizon, layers, cells and batch, values of 1, 24 and 168
hours ago, no dropout, Student-t, the loss over past and horizon. A step is all that is done for a batch: drawing and
cutting windows, forward, backward, clipping, the update. Ratios are of medians; on a busy machine only these mean
something.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
HISTORY, HORIZON, LAYERS, HIDDEN, BATCH = 168, 48, 3, 40, 32
WARM = 5


def ours(steps: int) -> float:
    """The median of seconds for each step."""
    import torch

    from regarde.training.prepare import prepare
    from regarde.training.prepared import Order
    from regarde.training.start import compose
    from regarde.training.step import Stepper

    torch.set_num_threads(1)
    settings = [f"task.history={HISTORY}", f"task.horizon={HORIZON}", "task.lags=[24, 168]", f"model.layers={LAYERS}"]
    settings += [f"model.hidden={HIDDEN}", f"training.batch_pairs={BATCH}", f"training.steps={steps}"]
    prepared = prepare(compose({"name": "waves"}, preset="deepar-small", settings=settings))
    stepper = Stepper(prepared.build(), prepared.recipe.training, steps, objective=prepared.objective("cpu"))
    order, seconds = Order(prepared.recipe, prepared.corpus), []
    for step in range(steps):
        began = time.perf_counter()
        (rows,) = order.take(1)
        stepper.update([prepared.batch(step, rows, "cpu")], step, tokens=prepared.corpus.count(rows))
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[WARM:])


def theirs(python: str, file: Path, steps: int) -> float:
    sizes = map(str, (HISTORY, HORIZON, LAYERS, HIDDEN, BATCH, steps))
    done = subprocess.run(
        [python, str(HERE / "forecasters" / "by_gluonts.py"), str(file), *sizes],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="", help="a Python that has gluonts[torch]")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    from regarde.data.waves import examples

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "waves.jsonl"
        file.write_text("".join(f"{example.target}\n" for example in examples("train")), encoding="utf-8")
        print("| turn | ours, ms a step | GluonTS | times as fast |\n|---|---|---|---|")
        ratios = []
        for turn in range(1, given.turns + 1):
            own = ours(given.steps)
            peer = theirs(given.peer, file, given.steps) if given.peer else float("nan")
            ratios.append(peer / own)
            print(f"| {turn} | {1000 * own:.1f} | {1000 * peer:.1f} | {peer / own:.2f} |", flush=True)
        print(f"| median | | | {statistics.median(ratios):.2f} |")


if __name__ == "__main__":
    main()
