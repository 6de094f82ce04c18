"""Training as one watches it: a live line on a terminal's standard error, and nothing anywhere else."""

from __future__ import annotations

import io
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from regarde.training.trainer import Progress as TrainingProgress
    from regarde.training.trainer import Validation


class TrainingDisplay:
    """Loss, metric, tokens/s and time left while a model trains; on standard error."""

    def __init__(self, steps: int) -> None:
        self.console = Console(file=sys.stderr or io.StringIO(), highlight=False)
        self.metric = ""
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(compact=True),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )
        self.task = self.bar.add_task("training", total=steps, state="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def progressed(self, progress: TrainingProgress) -> None:
        state = f"loss {progress.loss:.4f}  {self.metric}  {progress.tokens_per_second:,.0f} tokens/s"
        self.bar.update(self.task, completed=progress.step, state=state)

    def validated(self, validation: Validation) -> None:
        self.metric = validation.metric.show(validation.value)
        star = "  best so far" if validation.best else ""
        line = (
            f"step {validation.step:>6,}  {validation.seconds:5.0f} s  valid loss {validation.loss:.4f}  {self.metric}"
        )
        if self.console.is_terminal:
            self.console.print(f"{line}{star}", soft_wrap=True)
