"""DeepAR, ours and GluonTS's, one thread each: training steps per second, and how good the forecasts are.

    python benchmarks/forecast.py --peer VENV/bin/python                 # steps; a Python with gluonts[torch]
    python benchmarks/forecast.py                                        # ours alone
    python benchmarks/forecast.py --peer VENV/bin/python --seeds 3 --steps 1000 --out runs/deepar [--data DIR]

Both read the same windows of the embedded `waves`, or with --data of DIR/forecast-m4-hourly: the same history, horizon,
layers, cells and batch, values of 1, 24 and 168 hours ago, no dropout, Student-t, the loss over past and horizon. A
step is all that is done for a batch: drawing and cutting windows, forward, backward, clipping, the update. Steps are
measured in turns, by the time of the processor, which others on the machine do not add to.

With --seeds, both are trained on series without their last horizon, as many steps, each by its own schedule of rates,
and one function computes CRPS, MASE and coverage of 100 paths of both: on the horizon that was held out, and on what
follows the series (test).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import regarde
from regarde.data.datasets import DATASETS
from regarde.data.series import SeriesSet
from regarde.data.tables import read_series, series_of_lines
from regarde.evaluation.forecasts import LEVELS, Outcomes, Predicted, counts, following, seasonal_naive, split_end
from regarde.process import command, environment

HERE = Path(__file__).parent
HISTORY, HORIZON, LAYERS, HIDDEN, BATCH = 168, 48, 3, 40, 32
WARM = 5
SETTINGS = [
    *(f"task.history={HISTORY}", f"task.horizon={HORIZON}", "task.lags=[24, 168]", f"model.layers={LAYERS}"),
    *(f"model.hidden={HIDDEN}", f"training.batch_pairs={BATCH}"),
]


def ours(steps: int) -> float:
    """The median of seconds for each step."""
    import torch

    from regarde.training.prepare import prepare
    from regarde.training.prepared import Order
    from regarde.training.start import compose
    from regarde.training.step import Stepper

    torch.set_num_threads(1)
    settings = [*SETTINGS, f"training.steps={steps}"]
    prepared = prepare(compose({"name": "waves"}, preset="deepar-small", settings=settings))
    stepper = Stepper(prepared.build(), prepared.recipe.training, steps, objective=prepared.objective("cpu"))
    order, seconds = Order(prepared.recipe, prepared.corpus), []
    for step in range(steps):
        began = time.process_time()
        (rows,) = order.take(1)
        stepper.update([prepared.batch(step, rows, "cpu")], step, tokens=prepared.corpus.count(rows))
        seconds.append(time.process_time() - began)
    return statistics.median(seconds[WARM:])


def theirs(python: str, file: Path, steps: int, *more: object) -> float:
    """The same of the peer; `more`: a seed, and pairs of a file of histories and one for quantiles of what follows."""
    given = map(str, (HISTORY, HORIZON, LAYERS, HIDDEN, BATCH, steps, *more))
    done = subprocess.run(
        [python, str(HERE / "forecasters" / "by_gluonts.py"), str(file), *given],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def speed(peer: str, steps: int, turns: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = lines_of(waves("train"), Path(folder) / "waves.jsonl")
        print("| turn | ours, ms a step | GluonTS | times as fast |\n|---|---|---|---|")
        ratios = []
        for turn in range(1, turns + 1):
            own = ours(steps)
            other = theirs(peer, file, steps) if peer else float("nan")
            ratios.append(other / own)
            print(f"| {turn} | {1000 * own:.1f} | {1000 * other:.1f} | {other / own:.2f} |", flush=True)
        print(f"| median | | | {statistics.median(ratios):.2f} |")


def waves(split: str) -> SeriesSet:
    return series_of_lines([one.target for one in DATASETS["waves"].split(split)], "waves")  # type: ignore[arg-type]


def lines_of(among: SeriesSet, file: Path) -> Path:
    file.write_text("".join(f"{line}\n" for line in among.as_lines()), encoding="utf-8")
    return file


def judged(data: str) -> dict[str, Outcomes]:
    """What is measured: the horizon that was held out, and what follows the series."""
    if not data:
        return {"held out": split_end(waves("valid"), HORIZON), "test": split_end(waves("test"), HORIZON)}
    folder = Path(data) / "forecast-m4-hourly"
    known, came = (read_series(folder / name, season=24) for name in ("train.csv.gz", "test.csv"))
    return {"held out": split_end(known, HORIZON), "test": following(known, came)}


def quality(peer: str, data: str, seeds: int, steps: int, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    outcomes = judged(data)
    whole = replace(outcomes["test"].histories, series=outcomes["test"].histories.series)
    known = lines_of(whole, out / "known.jsonl")  # its last horizon is held out by both
    print("| | | seed | " + " | ".join(("CRPS", "MASE", "sMAPE", "inside 80 %")) + " |\n|---|---|---|---|---|---|---|")
    for name, each in outcomes.items():
        shown(name, seasonal_naive(each), each, "")
    for seed in range(1, seeds + 1):
        run = out / f"ours-{seed}"
        if not (run / "weights.safetensors").exists():
            told = ["--preset", "deepar-small", "--seed", seed, "--steps", steps, "--out", run]
            told += ["--set", f"training.valid_every={steps}", *(word for one in SETTINGS for word in ("--set", one))]
            words = command("regarde", "train", *map(str, (known, *told)))
            subprocess.run(words, check=True, env={**os.environ, **environment()}, stdout=sys.stderr)
        model = regarde.load(run)
        for name, each in outcomes.items():
            shown(name, Predicted.of("ours", model.forecast(each.histories, horizon=HORIZON)), each, str(seed))
        if not peer:
            continue
        pairs = [(out / f"{name}.jsonl", out / f"theirs-{seed}-{name}.npy") for name in outcomes]
        for (file, _), each in zip(pairs, outcomes.values(), strict=True):
            lines_of(each.histories, file)
        if not all(found.exists() for _, found in pairs):
            theirs(peer, pairs[0][0], steps, seed, *(path for pair in pairs for path in pair))
        for (_, found), (name, each) in zip(pairs, outcomes.items(), strict=True):
            quantiles = np.load(found)
            shown(name, Predicted("GluonTS", quantiles, quantiles[:, LEVELS.index(0.5)]), each, str(seed))


def shown(where: str, predicted: Predicted, outcomes: Outcomes, seed: str) -> None:
    found = {metric.name: table.value() for metric, table in counts(predicted, outcomes).items()}
    cells = [f"{found[name]:.4f}" if name in found else "-" for name in ("crps", "mase", "smape", "coverage")]
    print(f"| {where} | {predicted.name} | {seed} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="", help="a Python that has gluonts[torch]")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=0, help="compare forecasts instead of steps, of so many trainings")
    parser.add_argument(
        "--data", default="", help="the folder of M4 hourly, for --seeds; the embedded waves if not given"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/deepar"))
    given = parser.parse_args()
    if given.seeds:
        quality(given.peer, given.data, given.seeds, given.steps, given.out)
    else:
        speed(given.peer, given.steps, given.turns)


if __name__ == "__main__":
    main()
