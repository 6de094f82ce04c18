"""One part of a lab, done by a process of its own: python -m regarde.lab.part train|measure FOLDER NAME

So the peak of its memory is that model's, and whatever kills it leaves the others alone. It tells how far it is by JSON
lines on standard output, and ends with whoever holds its standard input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regarde.errors import RegardeError, Stopped, is_out_of_memory
from regarde.lab import plan as plans
from regarde.lab.memory import forget_peak, peak_memory
from regarde.lab.plan import Plan

if TYPE_CHECKING:
    from regarde.training.trainer import Progress, Validation

Tell = Callable[[dict[str, Any]], None]


class Teller:
    """Tells whoever started this process, as a watcher of its training; remembers the peak of its memory."""

    def __init__(self, notes: Path, tell: Tell) -> None:
        self._notes, self._tell = notes, tell
        self.peak = int(json.loads(notes.read_bytes())["peak_memory"]) if notes.exists() else 0

    def progressed(self, progress: Progress) -> None:
        self._tell({"share": progress.share, "loss": progress.loss, "seconds": progress.seconds})

    def validated(self, validation: Validation) -> None:
        self._tell({"value": validation.metric.show(validation.value), "best": validation.best})
        self.note()

    def note(self) -> None:
        """Of all processes this training took, were it killed and resumed."""
        self.peak = max(self.peak, peak_memory())
        plans.save(self._notes, json.dumps({"peak_memory": self.peak}))


def train(folder: Path, plan: Plan, name: str, tell: Tell) -> None:
    """Begin the training of a model or go on with it, and write down what it cost."""
    from regarde.manifest import read as read_manifest
    from regarde.training.checkpoint import Checkpoints
    from regarde.training.job import Request, ready

    path = folder / "runs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    teller = Teller(folder / "trained" / f".{name}.json", tell)
    with ready(Request(plan.models[name], path, resume=True, threads=plan.threads)) as job:
        for note in job.trainer.prepared.notes:
            if note.startswith("warning: "):
                tell({"note": note})
        forget_peak()  # of reading the data
        outcome = job.train(teller).outcome
        circumstances = job.trainer.circumstances
    teller.note()
    last = Checkpoints(path / "checkpoints").newest([])
    assert last is not None
    trained = {
        "parameters": outcome.parameters,
        "steps": last.state.step,
        "tokens": last.state.seen,
        "seconds": last.state.trained,
        "best_step": outcome.best.step,
        "peak_memory": teller.peak,
        "size": sum(entry.bytes for entry in read_manifest(path).values()),
        "circumstances": dict(circumstances),
    }
    plans.save(folder / "trained" / f"{name}.json", json.dumps(trained, indent=1) + "\n")


def measure(folder: Path, plan: Plan, name: str, tell: Tell) -> None:
    """Ask a trained model about the test set, and write down what it says."""
    from regarde.lab.measure import measured

    found = measured(folder / "runs" / name, plan)
    plans.save(folder / "measured" / f"{name}.json", found.as_json() + "\n")


def _channel() -> Tell:
    """To whoever started this process; what anybody else prints goes where errors go."""
    handle = os.dup(1)
    os.dup2(2, 1)

    def tell(message: dict[str, Any]) -> None:
        os.write(handle, f"{json.dumps(message)}\n".encode())

    return tell


def main() -> int:
    task, folder, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    tell = _channel()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        {"train": train, "measure": measure}[task](folder, plans.read(folder), name, tell)
    except Stopped as stopped:
        return stopped.exit_code
    except RegardeError as error:
        tell({"error": str(error)})
        return error.exit_code
    except Exception as error:
        traceback.print_exc()
        if is_out_of_memory(error):
            tell({"error": "out of memory. Make the model or the batch smaller."})
        else:
            tell({"error": f"unexpected {type(error).__name__}: {error}. This is a mistake of ours, please report it."})
        return RegardeError.exit_code
    return 0


def _end_with_parent() -> None:
    """Nothing is ever written there: what can be read is the end."""
    os.read(0, 1)  # not sys.stdin, whose lock Python wants at its end
    os._exit(RegardeError.exit_code)


if __name__ == "__main__":
    sys.exit(main())
