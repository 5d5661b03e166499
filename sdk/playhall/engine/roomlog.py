"""`room.log`: the lines room code writes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Literal

from playhall.engine.faults import traceback_text
from playhall.engine.outputs import LogOut, Output

__all__ = ["MAX_LINE", "MAX_WAITING", "RoomLog"]

MAX_LINE = 8_192
"""Characters of a line; what is beyond is cut."""
MAX_WAITING = 1_000
"""Lines that one call of room code may write; what is beyond is counted."""


class RoomLog:
    """`room.log`, like a logger of the standard library: a message, and what its %-marks stand for.

    The lines come out in the log of the process that runs the room, with the room's project and id. A line
    has at most 8,192 characters, one hook at most 1,000 lines; the rest is cut, and counted. A slip in the
    %-marks never raises.
    """

    def __init__(self, emit: Callable[[Output], None]) -> None:
        self._emit = emit
        self._waiting = 0
        self._dropped = 0

    def taken(self) -> None:
        """The lines written so far are on their way out. For the engine itself."""
        if self._dropped:
            self._emit(LogOut("warning", "room.log_dropped", {"lines": self._dropped}, None))
        self._waiting = self._dropped = 0

    def debug(self, message: str, *args: object) -> None:
        """Write a line that is shown only where the log level is `debug`."""
        self._write("debug", message, args)

    def info(self, message: str, *args: object) -> None:
        """Write a line about what goes as it should."""
        self._write("info", message, args)

    def warning(self, message: str, *args: object) -> None:
        """Write a line about what somebody should look at."""
        self._write("warning", message, args)

    def error(self, message: str, *args: object) -> None:
        """Write a line about what went wrong."""
        self._write("error", message, args)

    def exception(self, message: str, *args: object) -> None:
        """Write an error line with the traceback of the exception being handled."""
        error = sys.exc_info()[1]
        trace = None if error is None else traceback_text(error)
        self._write("error", message, args, trace)

    def _write(
        self,
        level: Literal["debug", "info", "warning", "error"],
        message: str,
        args: tuple[object, ...],
        trace: str | None = None,
    ) -> None:
        if self._waiting >= MAX_WAITING:
            self._dropped += 1
            return
        self._waiting += 1
        text = str(message)
        try:
            text = text % args if args else text
        except (TypeError, ValueError):
            # A log line with a slip in it must not cost more than its looks.
            text = f"{text} {args!r}"
        self._emit(LogOut(level, "room.log", {"message": text[:MAX_LINE]}, trace))
