"""Writes the metrics of a run for TensorBoard, into its folder tensorboard/. Needs the extra `tensorboard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from regarde.errors import missing_extra

if TYPE_CHECKING:
    from regarde.training.run import Progress, TrainingObserver, Validation

FOLDER = "tensorboard"


def writer_class() -> Any:
    """TensorBoard's writer; if it is not installed, an error says how to install it."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # slow to import
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    return SummaryWriter


class Board:
    """An observer that writes each report and passes it to another observer. Old records after `step` are deleted."""

    def __init__(self, run: Path, step: int, observer: TrainingObserver) -> None:
        self.writer = writer_class()(str(run / FOLDER), purge_step=step + 1)
        self.observer = observer

    def progressed(self, progress: Progress) -> None:
        self._write(progress.step, "training", loss=progress.loss, rate=progress.rate, norm=progress.norm)
        self._write(progress.step, "speed", tokens_per_second=progress.tokens_per_second)
        self.observer.progressed(progress)

    def validated(self, validation: Validation) -> None:
        self._write(validation.step, "validation", loss=validation.loss)
        self.writer.add_scalar(f"validation/{validation.metric.name}", validation.value, validation.step)
        self.writer.flush()
        self.observer.validated(validation)

    def _write(self, step: int, group: str, **numbers: float) -> None:
        for name, number in numbers.items():
            self.writer.add_scalar(f"{group}/{name}", number, step)

    def close(self) -> None:
        self.writer.close()
