"""Exactness by length, also beyond training, of models of copy, reverse or sort.

    python benchmarks/lengths.py --run copy "with copying" RUN --run copy without RUN --out by-length.svg

Each --run is an embedded data set, a name and the folder of a model trained on it. The strings are random, the same for
all models of a data set, and those of the data set are 5 to 15 letters long. Prints a table and draws a chart.
"""

from __future__ import annotations

import argparse
import string
from collections.abc import Callable
from pathlib import Path
from random import Random

import regarde
from regarde.visualize import curves
from regarde.visualize.curves import Chart, Curve

ANSWERS: dict[str, Callable[[str], str]] = {
    "copy": str,
    "reverse": lambda text: text[::-1],
    "sort": lambda text: "".join(sorted(text)),
}


def strings(data: str, letters: int, count: int) -> list[str]:
    rng = Random(f"lengths {data} {letters}")
    return ["".join(rng.choices(string.ascii_lowercase, k=letters)) for _ in range(count)]


def exactness(run: str, data: str, letters: int, count: int) -> float:
    """The percentage of answers that are exactly right."""
    texts = strings(data, letters, count)
    answers = regarde.load(run).translate(texts)
    right = sum(answer.text == ANSWERS[data](text) for answer, text in zip(answers, texts, strict=True))
    return 100 * right / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs=3, action="append", required=True, metavar=("DATA", "NAME", "FOLDER"))
    parser.add_argument("--lengths", default="6,9,12,15,16,17,18,19,20,22", help="with commas")
    parser.add_argument("--count", type=int, default=500, help="strings of each length")
    parser.add_argument("--out", type=Path, help="the chart: .svg, .png or .pdf")
    given = parser.parse_args()
    lengths = [int(length) for length in given.lengths.split(",")]
    print("|", " | ".join(["letters", *map(str, lengths)]), "|", flush=True)
    lines = []
    for data, name, run in given.run:
        found = [exactness(run, data, letters, given.count) for letters in lengths]
        print("|", " | ".join([f"{data}, {name}", *(f"{share:.1f}" for share in found)]), "|", flush=True)
        lines.append(Curve(f"{data}, {name}", range(len(lengths)), found))
    if given.out:
        titles = "letters of the string (5 to 15 in training)", "exact match, %"
        curves.draw(Chart(lines, *titles, groups=[*map(str, lengths)], from_zero=True)).save(given.out)


if __name__ == "__main__":
    main()
