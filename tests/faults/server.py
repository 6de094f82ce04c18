"""A fork server: imports once, then runs commands of the command line in forks, and sends them signals.

It reads a JSON object a line from standard input and answers each with one:

    {"arguments": ["train", …], "cwd": "/tmp", "signal": [9, 0.2]}
        ->  {"code": -9, "seconds": …, "error": …, "counted": …}

    arguments  of the command; {rank} stands for the number of the process
    signal     number, seconds after which it is sent, and to which of the processes (the first)
    processes  how many train together, as torchrun would start them
    memory     how many bytes more than so far it may have
    fault      for faults.c, which must be preloaded; the answer then holds how many calls were counted
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MODES = {"count": 0, "kill": 1, "ENOSPC": 2, "EIO": 3}


def child(task: dict[str, Any], rank: int, port: int, folder: Path) -> None:
    """Run the command and end."""
    from regarde.cli.main import run

    os.dup2(os.open(folder / f"error-{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.chdir(task["cwd"])
    sys.argv = ["regarde", *(argument.replace("{rank}", str(rank)) for argument in task["arguments"])]
    if task.get("processes", 1) > 1:
        told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": task["processes"], "MASTER_PORT": port}
        os.environ |= {name: str(value) for name, value in told.items()} | {"MASTER_ADDR": "127.0.0.1"}
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
            (folder / "counted").write_text(str(library.counted()))
        sys.stderr.flush()
        os._exit(code)


def serve(task: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as free:
        folder = Path(name)
        port = free.getsockname()[1]
        free.close()
        began = time.monotonic()
        pids = []
        for rank in range(task.get("processes", 1)):
            pids.append(os.fork())
            if not pids[-1]:
                child(task, rank, port, folder)
        codes = wait(pids, *task.get("signal", ()))
        return {
            "code": codes[0],
            "seconds": time.monotonic() - began,
            "error": "".join(path.read_text() for path in sorted(folder.glob("error-*"))),
            "counted": int(path.read_text()) if (path := folder / "counted").exists() else 0,
        }


def wait(pids: list[int], number: int = 0, after: float = 0.0, rank: int = 0) -> list[int]:
    """The exit codes of all; the signal is sent once, if it is still time."""
    deadline = time.monotonic() + after
    codes: dict[int, int] = {}
    while len(codes) < len(pids):
        for pid in pids:
            if pid not in codes:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    codes[pid] = os.waitstatus_to_exitcode(status)
        if number and time.monotonic() >= deadline:
            if pids[rank] not in codes:
                os.kill(pids[rank], number)
            number = 0
        time.sleep(0.0005)
    return [codes[pid] for pid in pids]


def main() -> None:
    import torch

    torch.set_num_threads(1)
    import regarde.cli.main
    import regarde.training.start  # noqa: F401  # so that no fork has to

    torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])  # imports much more on its first use
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
