"""One process of a lab, which trains or measures one model: python -m regarde.lab.worker train|measure FOLDER NAME

So the peak of its memory is that model's, and a crash leaves the other models alone. It reports its progress as JSON
lines on standard output, and ends when its standard input is closed.
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
from regarde.lab.plan import LabPlan
from regarde.process import forget_peak, peak_memory

if TYPE_CHECKING:
    from regarde.training.run import Progress, Validation

Send = Callable[[dict[str, Any]], None]


class WorkerObserver:
    """Sends the progress of a training to the lab, and records the peak of this process's memory."""

    def __init__(self, notes: Path, send: Send) -> None:
        self._notes, self._send = notes, send
        self.peak = int(json.loads(notes.read_bytes())["peak_memory"]) if notes.exists() else 0

    def progressed(self, progress: Progress) -> None:
        self._send({"share": progress.share, "loss": progress.loss, "seconds": progress.seconds})

    def validated(self, validation: Validation) -> None:
        self._send({"value": validation.metric.show(validation.value), "best": validation.best})
        self.note()

    def note(self) -> None:
        """Record the peak over all processes of this training, which may have been killed and resumed."""
        self.peak = max(self.peak, peak_memory())
        plans.save(self._notes, json.dumps({"peak_memory": self.peak}))


def train(folder: Path, plan: LabPlan, name: str, send: Send) -> None:
    """Train a model, or resume its training, and record what it cost."""
    from regarde.folder.manifest import CHECKPOINTS
    from regarde.folder.manifest import read as read_manifest
    from regarde.training.checkpoint import Checkpoints
    from regarde.training.start import TrainingRequest, ready

    path = folder / "runs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    observer = WorkerObserver(folder / "trained" / f".{name}.json", send)
    with ready(TrainingRequest(plan.models[name], path, resume=True, threads=plan.threads)) as job:
        for note in job.trainer.prepared.notes:
            if note.startswith("warning: "):
                send({"note": note})
        forget_peak()  # of reading the data
        outcome = job.train(observer).outcome
        circumstances = job.trainer.circumstances
    observer.note()
    last = Checkpoints(path / CHECKPOINTS).newest([])
    assert last is not None
    trained = {
        "parameters": outcome.parameters,
        "steps": last.state.step,
        "tokens": last.state.seen,
        "seconds": last.state.trained,
        "best_step": outcome.best.step,
        "peak_memory": observer.peak,
        "size": sum(entry.bytes for entry in read_manifest(path).values()),
        "circumstances": dict(circumstances),
    }
    plans.save(folder / "trained" / f"{name}.json", json.dumps(trained, indent=1) + "\n")


def measure(folder: Path, plan: LabPlan, name: str, send: Send) -> None:
    """Measure a trained model on the test set, and record the results."""
    from regarde.lab.measure import measured

    found = measured(folder / "runs" / name, plan)
    plans.save(folder / "measured" / f"{name}.json", found.as_json() + "\n")


def _channel() -> Send:
    """A function that sends messages to the lab; other output of this process goes to standard error."""
    handle = os.dup(1)
    os.dup2(2, 1)

    def send(message: dict[str, Any]) -> None:
        os.write(handle, f"{json.dumps(message)}\n".encode())

    return send


def main() -> int:
    task, folder, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    send = _channel()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        {"train": train, "measure": measure}[task](folder, plans.read(folder), name, send)
    except Stopped as stopped:
        return stopped.exit_code
    except RegardeError as error:
        send({"error": str(error)})
        return error.exit_code
    except Exception as error:
        traceback.print_exc()
        if is_out_of_memory(error):
            send({"error": "out of memory. Make the model or the batch smaller."})
        else:
            send({"error": f"unexpected {type(error).__name__}: {error}. This is a bug in Regarde, please report it."})
        return RegardeError.exit_code
    return 0


def _end_with_parent() -> None:
    """Exit when the lab closes standard input, to which it never writes."""
    os.read(0, 1)  # not sys.stdin: Python needs its lock to exit
    os._exit(RegardeError.exit_code)


if __name__ == "__main__":
    sys.exit(main())
