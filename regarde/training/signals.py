"""Ctrl-C and SIGTERM while a model trains: a wish to stop, granted between two updates."""

from __future__ import annotations

import contextlib
import signal
import threading
from types import FrameType
from typing import Any, Self


class Signals:
    """Inside, SIGINT and SIGTERM are noted in `received`; a second SIGINT interrupts at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # nobody else may ask for signals
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            with contextlib.suppress(TypeError):  # a handler that Python did not set cannot be given back
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.received == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or signal.Signals(number)
