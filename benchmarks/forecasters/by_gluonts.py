"""GluonTS's DeepAR, trained on windows of a JSON lines file; run with a Python that has gluonts[torch].

    python by_gluonts.py FILE HISTORY HORIZON LAYERS HIDDEN BATCH STEPS [SEED] [HISTORIES QUANTILES]...

Prints seconds of the processor for each step after the first steps, which prepare memory, as JSON. QUANTILES gets those
of 100 paths after each of the histories, (series, 9, horizon) as numpy writes it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import numpy as np
import pandas as pd
import torch
from gluonts.dataset.common import ListDataset
from gluonts.torch import DeepAREstimator

WARM = 5
LEVELS = [i / 10 for i in range(1, 10)]
EPOCH = 50  # steps, as is its default


class Clock(lightning.Callback):
    """When each step ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_batch_end(self, *_: Any) -> None:
        self.ends.append(time.process_time())


def main() -> None:
    file, *given = sys.argv[1:]
    history, horizon, layers, hidden, batch, steps, *seed = map(int, given[:7])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    lightning.seed_everything(seed[0] if seed else 1, verbose=False)
    clock = Clock()
    estimator = DeepAREstimator(
        freq="h",
        prediction_length=horizon,
        context_length=history,
        num_layers=layers,
        hidden_size=hidden,
        lags_seq=[1, 24, 168],
        dropout_rate=0.0,
        batch_size=batch,
        num_batches_per_epoch=min(EPOCH, steps),
        trainer_kwargs={
            "max_epochs": max(1, steps // EPOCH),
            "accelerator": "cpu",
            "callbacks": [clock],
            "logger": False,
            "default_root_dir": tempfile.mkdtemp(),
            "enable_progress_bar": False,
            "enable_model_summary": False,
        },
    )
    predictor = estimator.train(series(file))
    apart = np.diff(clock.ends[WARM:])
    for histories, quantiles in zip(given[7::2], given[8::2], strict=True):
        found = predictor.predict(series(histories), num_samples=100)
        np.save(quantiles, np.stack([np.quantile(one.samples, LEVELS, axis=0) for one in found]))
    print(json.dumps({"seconds": float(np.median(apart)), "steps": len(apart)}))


def series(file: str) -> ListDataset:
    """Series of a file, each from its own start; where there is none, all begin at one hour."""
    rows = []
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        start = pd.Period(record.get("start", "2024-01-01"), freq="h")
        rows.append({"start": start, "target": np.array(record["target"], dtype=np.float32)})
    return ListDataset(rows, freq="h")


if __name__ == "__main__":
    main()
