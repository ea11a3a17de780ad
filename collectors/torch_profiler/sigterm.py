"""SIGTERM as an exception, so that a program that is told to end leaves what was captured."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Terminated(SystemExit):
    """SIGTERM arrived; ends the program with the shell's code for it."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


class Sigterm:
    """Raises Terminated where SIGTERM arrives, in the main thread and where the program has no handler of its own.

    ``held``: while True, the signal is only noted in ``arrived``.
    """

    def __init__(self) -> None:
        self.arrived = False
        self.held = False
        self._set = False

    def watch(self) -> None:
        """Begin, if nobody else handles the signal."""
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._handle)
            self._set = True

    def leave(self) -> None:
        """Put the default back, unless the program has set a handler meanwhile."""
        if self._set and signal.getsignal(signal.SIGTERM) == self._handle:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._set = False

    def _handle(self, _: int, __: FrameType | None) -> None:
        self.arrived = True
        if not self.held:
            raise Terminated
