"""The progress of a lab on standard error: a live line for each model on a terminal, a plain line otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, TaskID, TaskProgressColumn, TimeRemainingColumn

from regarde.display.progress import STATE, Display
from regarde.errors import warn

if TYPE_CHECKING:
    from regarde.lab.processes import Task


class LabDisplay(Display):
    """For each model: its task, the share of the budget, loss, best metric so far, time left."""

    def __init__(self) -> None:
        bar = BarColumn(bar_width=16)
        super().__init__(bar, TaskProgressColumn(), STATE, TimeRemainingColumn(compact=True), transient=False)
        self._tasks: dict[str, TaskID] = {}
        self._loss: dict[str, str] = {}
        self._best: dict[str, str] = {}
        self._begun: set[tuple[str, Task]] = set()
        self._notes: set[str] = set()

    def noted(self, note: str) -> None:
        """Print a note once, though every model may have it about the same data."""
        if note not in self._notes:
            self._notes.add(note)
            warn(note)

    def planned(self, names: Sequence[str]) -> None:
        width = max(map(len, names))
        for name in names:
            self._tasks[name] = self.bar.add_task(f"{name:<{width}}", total=1.0, start=False, state="waits")

    def began(self, name: str, task: Task) -> None:
        self._begun.add((name, task))
        if task == "train":
            self.bar.start_task(self._tasks[name])
        self.bar.update(self._tasks[name], state="reads the data" if task == "train" else "is measured")

    def received(self, name: str, message: dict[str, Any]) -> None:
        if "note" in message:
            self.noted(message["note"])
        elif "share" in message:
            self._loss[name] = f"loss {message['loss']:.3f}"
            self.bar.update(self._tasks[name], completed=min(message["share"], 1.0))
        elif message.get("best"):
            self._best[name] = f"best {message['value']}"
        self.bar.update(self._tasks[name], state=self._state(name))

    def ended(self, name: str, task: Task) -> None:
        self.bar.update(self._tasks[name], completed=1.0, state=self._state(name))
        if self.live or (name, task) not in self._begun:
            return
        warn(f"{name}: trained, {self._state(name)}" if task == "train" else f"{name}: measured")

    def _state(self, name: str) -> str:
        return ", ".join(filter(None, [self._loss.get(name), self._best.get(name)])) or "done"
