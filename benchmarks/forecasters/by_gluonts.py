"""Steps per second of GluonTS's DeepAR on windows of a JSON lines file; run with a Python that has gluonts[torch].

    python by_gluonts.py FILE HISTORY HORIZON LAYERS HIDDEN BATCH STEPS

Prints seconds for each step after the first steps, which prepare memory, as JSON.
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


class Clock(lightning.Callback):
    """When each step ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_batch_end(self, *_: Any) -> None:
        self.ends.append(time.perf_counter())


def main() -> None:
    file, *sizes = sys.argv[1:]
    history, horizon, layers, hidden, batch, steps = map(int, sizes)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    series = [json.loads(line)["target"] for line in Path(file).read_text(encoding="utf-8").splitlines()]
    start = pd.Period("2024-01-01", freq="h")
    rows = [{"start": start, "target": np.array(values, dtype=np.float32)} for values in series]
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
        num_batches_per_epoch=steps,
        trainer_kwargs={
            "max_epochs": 1,
            "accelerator": "cpu",
            "callbacks": [clock],
            "logger": False,
            "default_root_dir": tempfile.mkdtemp(),
            "enable_progress_bar": False,
            "enable_model_summary": False,
        },
    )
    estimator.train(ListDataset(rows, freq="h"))
    apart = np.diff(clock.ends[WARM:])
    print(json.dumps({"seconds": float(np.median(apart)), "steps": len(apart)}))


if __name__ == "__main__":
    main()
