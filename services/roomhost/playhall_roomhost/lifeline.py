"""A process that must not outlive its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

__all__ = ["die_at_end_of", "die_with_parent"]

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """On Linux: have the kernel kill this process when its parent dies, however busy it is then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:
            # It died before the kernel was asked.
            os._exit(1)


def die_at_end_of(fd: int) -> None:
    """Everywhere: end this process at once when the pipe `fd` ends. A thread waits for that."""

    def wait() -> None:
        while os.read(fd, 4096):
            pass
        os._exit(1)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()
