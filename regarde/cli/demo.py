"""`regarde demo`: train a small RNNsearch on dates, evaluate it, and draw its attention."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

from regarde.cli.options import option
from regarde.streaming.streams import tell, write

STEPS = 500
DEPARTURES = """\
A small RNNsearch (Bahdanau, Cho, Bengio 2015). The equations are the paper's; what differs:
  sizes       embeddings 64, hidden 96, alignment 96, maxout 48   (paper: 620, 1000, 1000, 500)
  optimizer   Adam at 0.004 with a cosine schedule                (paper: Adadelta)
  start       torch's initialization                              (paper: orthogonal and small Gaussians)
  batches     64 pairs of like length                             (paper: 80)
"""
SETTINGS = [
    "model.hidden=96",
    "model.maxout=48",
    "model.attention.score.size=96",
    "model.dropout=0.0",
    "training.optimizer.rate=4e-3",
    f"training.steps={STEPS}",
    "training.valid_every=125",
    'source_language="mul"',
]


def demo(
    out: Annotated[Path, option("FOLDER", "Run folder; if it exists, a number is added.")] = Path("runs/dates"),
) -> None:
    """Train a small RNNsearch on written dates in 31 languages, and draw its attention. Takes about a minute.

    Example: regarde demo
    """
    from regarde.alignment.links import Link
    from regarde.cli.show import colored
    from regarde.data.datasets import DATASETS
    from regarde.display.progress import TrainingDisplay
    from regarde.engines.devices import settle_threads
    from regarde.evaluation.attention import attention_quality
    from regarde.evaluation.metrics import measure
    from regarde.training.prepare import prepare
    from regarde.training.start import compose, free_folder, start
    from regarde.visualize import Heatmap, save
    from regarde.visualize.terminal import heatmap

    tell([DEPARTURES, "\n"])
    prepared = prepare(compose({"name": "dates"}, settings=SETTINGS))
    tell([f"{note}\n" for note in prepared.notes])
    path = free_folder(out)
    settle_threads(0, prepared.parameters)
    with TrainingDisplay() as display:
        run = start(prepared, path, display)
    model = run.load()

    tell([f"\nTrained {run.outcome.parameters:,} parameters in {run.outcome.seconds:.0f} s.\n"])
    test = list(DATASETS["dates"].split("test"))
    found = model.translate([example.source for example in test])
    texts = [translation.text for translation in found]
    right = measure("exact_match", texts, [example.target for example in test])
    quality = attention_quality(found, [[Link(*link) for link in example.links] for example in test])
    tell(
        [
            f"On {len(test):,} unseen dates: {right:.1%} exact match. {quality.share:.1%} of the digits' attention\n"
            "lies on the characters of their year, month or day.\n\n"
        ]
    )
    for sentence in ("mercredi 3 mars 1999", "2024年2月29日", "יום ראשון, 20 ביולי 1969"):
        translation = model.translate(sentence)
        chart = Heatmap.of(translation)
        write([heatmap(chart, width=shutil.get_terminal_size().columns, color=colored()), "\n\n"])
    picture = path / "plots" / "alignment.svg"
    picture.parent.mkdir(exist_ok=True)
    save(Heatmap.of(model.translate("mercredi 3 mars 1999")), picture)
    regarde = "regarde" if shutil.which("regarde") else sys.argv[0]  # as it can be typed from here
    tell(
        [
            f"The model is in {path}, a picture of the first alignment in {picture}. Try next:\n"
            f'  echo "7. März 2023" | {regarde} translate {path}\n'
            f'  {regarde} show {path} "14 juillet 1989" --picture alignment.html\n'
            f"  {regarde} studio {path}\n"
            f"  {regarde} train reverse\n"
            f"  {regarde} train my.tsv        (source TAB target, line by line)\n"
        ]
    )
