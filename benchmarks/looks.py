"""Where a forecaster looks: the mean weight of a past value by how long ago it was, and how much is a season away.

    python benchmarks/looks.py RUN --out docs/looks.svg

RUN is a forecaster with attention. Prints the share of the weight that is on the same place of earlier seasons or next
to it, in how many forecasts the heaviest value is there, and what both would be if attention were spread evenly.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from regarde.folder.forecasting import load_forecaster
from regarde.visualize.curves import Chart, Curve, draw

PATHS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="the picture: .svg, .png or .pdf")
    given = parser.parse_args()
    model = load_forecaster(given.run)
    weights = np.stack([one.attention for one in model.forecast(paths=PATHS)])  # (N, T, S)
    N, T, S = weights.shape
    ago = S + np.arange(T)[:, None] - np.arange(S)  # (T, S) steps between a forecast and what it looks at
    season = model.task.season
    near = (ago + 1) % season <= 2
    heaviest = np.take_along_axis(np.broadcast_to(near, weights.shape), weights.argmax(axis=2)[..., None], axis=2)
    print(f"{N} series, {T} forecasts each, {S} past values; season {season}")
    print(f"weight at the same place of earlier seasons or next to it: {(weights * near).sum(axis=2).mean():.1%}")
    print(f"forecasts whose heaviest value is there: {heaviest.mean():.1%}; evenly: {near.mean():.1%}")
    places = np.arange(1, S + 1)
    means = [weights[:, ago == steps].mean() for steps in places]
    curves = [Curve("attention", places, means), Curve("spread evenly", places, [1 / S] * S)]
    chart = Chart(curves, across="steps ago", up="mean weight of a past value", from_zero=True)
    draw(chart).save(given.out)


if __name__ == "__main__":
    main()
