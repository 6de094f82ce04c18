"""What each small preset learns of the embedded tasks, in a stated number of steps, one thread.

    python benchmarks/learn.py --out runs/learn            # trains what is not there yet; a second call goes on

Prints exact match on the test split and where attention looked, and on `reverse` also by length: without attention it
falls, with it it holds (Bahdanau et al. 2015, figure 2). Writes results.json and by-length.svg into the folder.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import torch
from matplotlib.figure import Figure

import regarde
from regarde.alignment.links import Link
from regarde.data.datasets import DATASETS
from regarde.evaluation.attention import attention_quality
from regarde.training.presets import presets
from regarde.translation import Translation

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


@dataclass(frozen=True)
class Measured:
    """On the test split; of the symbols that have gold links, where attention looked."""

    exact: float
    by_length: dict[int, float]  # of the source
    mass: float  # share of the attention that lies on gold characters
    pointed: float  # symbols for which the character that was looked at most is a gold one


def measure(preset: str, data: str, out: Path) -> Measured:
    model = regarde.load(out / f"{preset}-{data}")
    test = list(DATASETS[data].split("test"))
    found = model.translate([example.source for example in test])
    right: dict[int, list[bool]] = defaultdict(list)
    for example, translation in zip(test, found, strict=True):
        right[len(example.source)].append(translation.text == example.target)
    everything = [answer for answers in right.values() for answer in answers]
    gold = [[Link(*link) for link in example.links] for example in test]
    return Measured(
        sum(everything) / len(everything),
        {n: sum(r) / len(r) for n, r in sorted(right.items())},
        attention_quality(found, gold).share,
        pointed(found, gold),
    )


def pointed(found: Sequence[Translation], gold: Sequence[Sequence[Link]]) -> float:
    hits, symbols = 0, 0
    for translation, links in zip(found, gold, strict=True):
        if (weights := translation.explained) is None:
            return 0.0
        for target in {link.target for link in links if link.target < len(weights)}:
            hits += Link(int(weights[target].argmax()), target) in links
            symbols += 1
    return hits / symbols


def draw(by_length: dict[str, dict[int, float]], path: Path) -> None:
    """Bahdanau's figure 2, for strings: exact match by length."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    colors = matplotlib.colormaps["tab20"].colors
    for color, (preset, points) in zip(colors[::2] + colors[1::2], by_length.items(), strict=False):
        dash = "--" if preset in WITHOUT_ATTENTION else "-"
        axes.plot(points.keys(), points.values(), dash, color=color, marker="o", markersize=3, label=preset)
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
    parser.add_argument("--data", nargs="*", default=TASKS, choices=TASKS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    results = []
    by_length = {}
    print("| preset | data | steps | seconds | exact match on test | attention on gold | looked at most is gold |")
    print("|---|---|---|---|---|---|---|")
    for preset in arguments.only:
        for data in arguments.data:
            steps = getattr(SMALL[preset].about.steps, data)
            if not steps:
                continue
            seconds = train(preset, data, steps, arguments.out)
            found = measure(preset, data, arguments.out)
            about = {"preset": preset, "data": data, "steps": steps, "seconds": seconds}
            results.append(
                {**about, "exact_match": found.exact, "gold_mass": found.mass, "gold_pointed": found.pointed}
            )
            looked = f"{found.mass:.1%} | {found.pointed:.1%}" if found.mass else "|"
            print(f"| {preset} | {data} | {steps} | {seconds:.0f} | {found.exact:.1%} | {looked} |", flush=True)
            if data == "reverse":
                by_length[preset] = found.by_length
    (arguments.out / "results.json").write_text(json.dumps({"results": results, "by_length": by_length}, indent=2))
    if by_length:
        draw(by_length, arguments.out / "by-length.svg")


if __name__ == "__main__":
    main()
