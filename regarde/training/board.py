"""The metrics of a run as TensorBoard reads them, in its folder tensorboard/. It needs the extra `tensorboard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from regarde.errors import missing_extra

if TYPE_CHECKING:
    from regarde.training.trainer import Progress, Validation, Watcher

FOLDER = "tensorboard"


def writer_class() -> Any:
    """TensorBoard's writer; one line says how to get it where it is missing."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # only who asks for it waits for it
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    return SummaryWriter


class Board:
    """Passes on what it is told, and writes it down. What an earlier attempt wrote after `step` is void."""

    def __init__(self, run: Path, step: int, watcher: Watcher) -> None:
        self.writer = writer_class()(str(run / FOLDER), purge_step=step + 1)
        self.watcher = watcher

    def progressed(self, progress: Progress) -> None:
        self._write(progress.step, "training", loss=progress.loss, rate=progress.rate, norm=progress.norm)
        self._write(progress.step, "speed", tokens_per_second=progress.tokens_per_second)
        self.watcher.progressed(progress)

    def validated(self, validation: Validation) -> None:
        self._write(validation.step, "validation", loss=validation.loss)
        self.writer.add_scalar(f"validation/{validation.metric.name}", validation.value, validation.step)
        self.writer.flush()
        self.watcher.validated(validation)

    def _write(self, step: int, group: str, **numbers: float) -> None:
        for name, number in numbers.items():
            self.writer.add_scalar(f"{group}/{name}", number, step)

    def close(self) -> None:
        self.writer.close()
