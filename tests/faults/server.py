"""A fork server: imports once, then runs commands of the command line in forks and kills them when it is told to.

It reads a JSON object a line from standard input and answers each with one:

    {"arguments": ["train", …], "kill_after": 0.2, "fault": ["root", 17, "kill"]}  ->  {"code": -9, "seconds": …, …}

`kill_after` is in seconds, null for never; `memory` is how many bytes more it may have; `fault` arms faults.c, which
must be preloaded, and the answer then holds how many calls were counted.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MODES = {"count": 0, "kill": 1, "ENOSPC": 2, "EIO": 3}


def child(task: dict[str, Any], error: Path, counted: Path) -> None:
    from regarde.cli.main import run

    handle = os.open(error, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 2)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    sys.argv = ["regarde", *task["arguments"]]
    if task.get("memory"):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + task["memory"], used + task["memory"]))
    library = ctypes.CDLL(None)
    if task.get("fault"):
        root, number, mode = task["fault"]
        library.arm(os.path.realpath(root).encode(), ctypes.c_long(number), MODES[mode])
    code = 1
    try:
        run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        if task.get("fault"):
            library.counted.restype = ctypes.c_long
            counted.write_text(str(library.counted()))
        sys.stderr.flush()
        os._exit(code)


def serve(task: dict[str, Any], folder: Path) -> dict[str, Any]:
    error, counted = folder / "error", folder / "counted"
    counted.unlink(missing_ok=True)
    began = time.monotonic()
    pid = os.fork()
    if not pid:
        child(task, error, counted)
    deadline = None if task.get("kill_after") is None else began + task["kill_after"]
    status = 0
    while deadline is not None:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
            deadline = None
        else:
            time.sleep(0.0005)
    else:
        _, status = os.waitpid(pid, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "seconds": time.monotonic() - began,
        "error": error.read_text() if error.exists() else "",
        "counted": int(counted.read_text()) if counted.exists() else 0,
    }


def main() -> None:
    import torch

    torch.set_num_threads(1)
    import regarde.cli.main
    import regarde.training.start  # noqa: F401  # so that no fork has to

    torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])  # imports much more on its first use
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            print(json.dumps(serve(json.loads(line), Path(folder))), flush=True)


if __name__ == "__main__":
    main()
