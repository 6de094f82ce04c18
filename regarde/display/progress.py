"""The progress of training and translating on standard error.

On a terminal it is one live line. Validations are lines of their own, also without a terminal and on one that cannot
move its cursor (TERM=dumb). A terminal that is resized or closed does not affect the work.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from typing import TYPE_CHECKING, Self, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

from regarde.errors import counted

if TYPE_CHECKING:
    from regarde.training.run import Progress as TrainingProgress
    from regarde.training.run import Validation


class Display:
    """Live lines on a terminal, each with these columns; `transient`: they disappear at the end."""

    def __init__(self, *columns: ProgressColumn, transient: bool) -> None:
        stream = Steady(sys.stderr) if sys.stderr else io.StringIO()
        self.console = Console(file=cast(TextIO, stream), highlight=False)
        self.live = self.console.is_terminal and not self.console.is_dumb_terminal
        name = TextColumn("{task.description}")
        self.bar = Progress(name, *columns, console=self.console, disable=not self.live, transient=transient)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


STATE = TextColumn("{task.fields[state]}")


class TrainingDisplay(Display):
    """Loss, metric, tokens/s and time left while a model trains; on standard error."""

    def __init__(self) -> None:
        self.metric = ""
        bar = BarColumn(bar_width=24)
        super().__init__(bar, TaskProgressColumn(), STATE, TimeRemainingColumn(compact=True), transient=True)
        self.task = self.bar.add_task("training", total=1.0, state="")

    def progressed(self, progress: TrainingProgress) -> None:
        speed = f"{progress.tokens_per_second:,.0f} tokens/s"
        state = f"step {progress.step:,}  loss {progress.loss:.4f}  {self.metric}  {speed}"
        self.bar.update(self.task, completed=progress.share, state=state)

    def validated(self, validation: Validation) -> None:
        self.metric = validation.metric.show(validation.value)
        best = "  best so far" if validation.best else ""
        spent = f"step {validation.step:>6,}  {validation.seconds:5.0f} s"
        self.console.print(f"{spent}  valid loss {validation.loss:.4f}  {self.metric}{best}", soft_wrap=True)


class TranslationDisplay(Display):
    """Lines, lines/s and, if the size of the input is known, time left; on standard error."""

    def __init__(self, size: int | None) -> None:
        self._first, self._since = -1, 0.0
        known = () if size is None else (BarColumn(bar_width=24), TimeRemainingColumn(compact=True))
        super().__init__(*known[:1], STATE, *known[1:], transient=True)
        self.task = self.bar.add_task("translating", total=size, state="")

    def progressed(self, lines: int, read: int) -> None:
        """Show that `lines` are answered and `read` bytes are read."""
        if self._first in (-1, lines):  # lines of an earlier run do not count for the speed
            self._first, self._since = lines, time.monotonic()
        rate = (lines - self._first) / max(time.monotonic() - self._since, 1e-3)
        self.bar.update(self.task, completed=read, state=f"{counted(lines, 'line')}  {rate:,.0f} lines/s")


class AlignmentDisplay(Display):
    """The share of all sweeps, and time left, while pairs are aligned by their statistics; on standard error."""

    def __init__(self) -> None:
        bar = BarColumn(bar_width=24)
        super().__init__(bar, TaskProgressColumn(), TimeRemainingColumn(compact=True), transient=True)
        self.task = self.bar.add_task("aligning", total=1.0)

    def progressed(self, share: float) -> None:
        self.bar.update(self.task, completed=share)


class PartsDisplay(Display):
    """Parts that are whole, and lines/s; on standard error."""

    def __init__(self, count: int) -> None:
        bar = BarColumn(bar_width=24)
        super().__init__(bar, TaskProgressColumn(), STATE, TimeRemainingColumn(compact=True), transient=True)
        self.task = self.bar.add_task("translating", total=count, state="")

    def progressed(self, done: int, speed: str) -> None:
        self.bar.update(self.task, completed=done, state=f"{counted(done, 'part')}  {speed}")


class Steady(io.TextIOBase):
    """A stream that ignores errors, such as those of a closed terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()
