"""Ctrl-C and SIGTERM while lines are translated: the process ends at once, with whole lines written.

Python hears a signal only between two of its own steps, and an engine may compute for a minute in one of them. So a
thread listens to what the system writes at the moment of the signal (`signal.set_wakeup_fd`), and ends the process.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from regarde.streaming.streams import warn


class Stopping:
    """Inside, SIGINT and SIGTERM end the process by 130 and 143, once `whole` is free; a second signal does not wait.

    `leave` clears away and gives what is to be said.
    """

    def __init__(self, whole: threading.Lock, leave: Callable[[signal.Signals], str]) -> None:
        self._whole, self._leave = whole, leave
        self._before: dict[signal.Signals, Any] = {}
        self._handles: list[int] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():  # nobody else may ask for signals
            return self
        wanted = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
        heard, told = self._handles = list(os.pipe())
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        for number in wanted:
            self._before[number] = signal.signal(number, lambda number, frame: None)
        threading.Thread(target=self._listen, args=(heard,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handles:
            signal.set_wakeup_fd(-1)
            for number, handler in self._before.items():
                signal.signal(number, handler)
            os.close(self._handles[1])  # the listener reads the end of it, and ends

    def _listen(self, heard: int) -> None:
        while told := os.read(heard, 1):
            number = signal.Signals(told[0])
            if number not in self._before:
                continue
            while not self._whole.acquire(timeout=0.05):
                if select.select([heard], [], [], 0)[0]:
                    break
            said = ""
            with contextlib.suppress(Exception):
                said = self._leave(number)
            warn(said)
            os._exit(128 + number)  # main may be anywhere, and may take its time
        os.close(heard)
