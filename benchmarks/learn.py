"""What each small preset learns of the embedded tasks, in a stated number of steps, one thread.

    python benchmarks/learn.py --out runs/learn            # trains what is not there yet; a second call goes on

Prints exact match on the test split, and on `reverse` also by length: without attention it falls, with it it holds
(Bahdanau et al. 2015, figure 2). Writes results.json and by-length.svg into the folder.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import matplotlib
import torch
from matplotlib.figure import Figure

import regarde
from regarde.data.datasets import DATASETS
from regarde.training.presets import presets

WITHOUT_ATTENTION = ["sutskever-small", "cho-small", "stacked-small"]
TASKS = ("copy", "reverse", "dates")
SMALL = {name: preset for name, preset in presets().items() if name.endswith("-small")}


def train(preset: str, data: str, steps: int, out: Path) -> float:
    """Train into a folder of its own unless it is there; seconds of training."""
    note = out / f"{preset}-{data}.seconds"
    if not note.exists():
        settings = [f"training.steps={steps}", f"training.valid_every={steps // 4}", "training.patience=0"]
        began = time.perf_counter()
        regarde.train(data, preset=preset, out=out / f"{preset}-{data}", settings=settings)
        note.write_text(str(time.perf_counter() - began))
    return float(note.read_text())


def measure(preset: str, data: str, out: Path) -> tuple[float, dict[int, float]]:
    """Exact match on the test split, and by length of the source."""
    model = regarde.load(out / f"{preset}-{data}")
    test = list(DATASETS[data].split("test"))
    found = model.translate([example.source for example in test])
    right: dict[int, list[bool]] = defaultdict(list)
    for example, translation in zip(test, found, strict=True):
        right[len(example.source)].append(translation.text == example.target)
    everything = [answer for answers in right.values() for answer in answers]
    return sum(everything) / len(everything), {n: sum(r) / len(r) for n, r in sorted(right.items())}


def draw(by_length: dict[str, dict[int, float]], path: Path) -> None:
    """Bahdanau's figure 2, for strings: exact match by length."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    colours = matplotlib.colormaps["tab20"].colors
    for colour, (preset, points) in zip(colours[::2] + colours[1::2], by_length.items(), strict=False):
        dash = "--" if preset in WITHOUT_ATTENTION else "-"
        axes.plot(points.keys(), points.values(), dash, color=colour, marker="o", markersize=3, label=preset)
    axes.set(xlabel="length of the string", ylabel="exact match", title="reverse: dashed lines have no attention")
    axes.set_ylim(-0.03, 1.03)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    with matplotlib.rc_context({"svg.hashsalt": "regarde", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/learn"))
    parser.add_argument("--only", nargs="*", default=list(SMALL), help="presets")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    results = []
    by_length = {}
    print("| preset | data | steps | seconds | exact match on test |\n|---|---|---|---|---|")
    for preset in arguments.only:
        for data in TASKS:
            steps = getattr(SMALL[preset].about.steps, data)
            if not steps:
                continue
            seconds = train(preset, data, steps, arguments.out)
            exact, lengths = measure(preset, data, arguments.out)
            results.append({"preset": preset, "data": data, "steps": steps, "seconds": seconds, "exact_match": exact})
            print(f"| {preset} | {data} | {steps} | {seconds:.0f} | {exact:.1%} |", flush=True)
            if data == "reverse":
                by_length[preset] = lengths
    (arguments.out / "results.json").write_text(json.dumps({"results": results, "by_length": by_length}, indent=2))
    draw(by_length, arguments.out / "by-length.svg")


if __name__ == "__main__":
    main()
