"""How a model learned: what its run folder recorded, against minutes of training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regarde.evaluation.metrics import METRICS as KNOWN
from regarde.training.run import METRICS

Points = tuple[tuple[float, float], ...]  # minutes of updates, value


@dataclass(frozen=True)
class Learning:
    """Losses per target token, and the metric that the run was validated by."""

    loss: Points
    valid_loss: Points
    metric: str
    values: Points


def read_learning(run: Path) -> Learning:
    """From the records of a run."""
    records = [json.loads(line) for line in (run / METRICS).read_text(encoding="utf-8").splitlines()]
    metric = next((key for record in records for key in record if key in KNOWN), "")
    return Learning(_points(records, "loss"), _points(records, "valid_loss"), metric, _points(records, metric))


def _points(records: Sequence[dict[str, Any]], key: str) -> Points:
    return tuple((record["trained"] / 60, record[key]) for record in records if key in record)
