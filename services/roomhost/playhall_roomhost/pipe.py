"""Lines to the supervisor, written from the loop without ever waiting for the reader."""

from __future__ import annotations

import asyncio
import os

__all__ = ["LinePipe"]

MAX_BUFFER = 1024 * 1024


class LinePipe:
    """The writing end of a pipe. What a slow reader has not taken waits; beyond a megabyte, lines are
    dropped."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._buffer = bytearray()

    def send(self, line: bytes, *, may_drop: bool = True) -> None:
        """Write a line. A lost one that `may_drop` is made good by the next of its kind."""
        if len(self._buffer) + len(line) > MAX_BUFFER and may_drop:
            return
        waits = bool(self._buffer)
        self._buffer += line
        if not waits:
            self._write()

    def _write(self) -> None:
        try:
            written = os.write(self._fd, self._buffer)
        except BlockingIOError:
            written = 0
        del self._buffer[:written]
        loop = asyncio.get_running_loop()
        if self._buffer:
            loop.add_writer(self._fd, self._write)
        elif written:
            loop.remove_writer(self._fd)
