"""Reads the sockets of all clients, many in a pass: on Linux, in the place of the event loop.

A loop that is woken for every small frame spends more on waking, and on looking for the one socket, than on
the frame. While many frames come, sockets are therefore looked at every 4 ms only, and read one after the
other; while few come, as soon as anything is there. Whatever is not plain reading is the transport's: it gets
its socket back at the end of the stream, or when something fails.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable
from typing import NamedTuple

from playhall.engine.backend import Intake

__all__ = ["SocketReader"]

PASS_S = 0.004
WINDOW_S = 0.064
BUSY_READS = 64
"""So many reads in a window are worth waiting for more; half as many no longer are."""


class _Reading(NamedTuple):
    transport: asyncio.Transport
    updated: Callable[[int], object]


class SocketReader:
    """The reader of one event loop. It reads into the buffer of `intake`."""

    def __init__(self, intake: Intake) -> None:
        self._loop = asyncio.get_running_loop()
        self._buffers = (intake.buffer,)
        self._epoll = select.epoll()
        self._readings: dict[int, _Reading] = {}
        self._reads = 0
        self._since = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._loop.add_reader(self._epoll.fileno(), self._ready)

    @staticmethod
    def works() -> bool:
        """Whether this system has what it takes."""
        return hasattr(select, "epoll")

    @property
    def paced(self) -> bool:
        """Whether sockets are looked at every `PASS_S`, and not at once."""
        return self._timer is not None

    def add(self, transport: asyncio.Transport, updated: Callable[[int], object]) -> None:
        """Read a transport's socket from now on; `updated` is told how many bytes are in the buffer."""
        fd = _fileno(transport)
        transport.pause_reading()
        self._readings[fd] = _Reading(transport, updated)
        self._epoll.register(fd, select.EPOLLIN)

    def remove(self, transport: asyncio.Transport) -> None:
        """Read it no more, if it was read. To be called before its socket is closed."""
        fd = _fileno(transport)
        if self._readings.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def read_now(self) -> None:
        """Read what is there, and would be read at the next pass."""
        if self.paced:
            self._read_all()

    def close(self) -> None:
        """Read nothing any more."""
        self._loop.remove_reader(self._epoll.fileno())
        if self._timer is not None:
            self._timer.cancel()
        self._readings.clear()
        self._epoll.close()

    def _ready(self) -> None:
        self._read_all()
        reads = self._reads_of_window()
        if reads is not None and reads >= BUSY_READS:
            self._loop.remove_reader(self._epoll.fileno())
            self._timer = self._loop.call_later(PASS_S, self._tick)

    def _tick(self) -> None:
        self._read_all()
        reads = self._reads_of_window()
        if reads is not None and reads < BUSY_READS // 2:
            self._timer = None
            self._loop.add_reader(self._epoll.fileno(), self._ready)
        else:
            self._timer = self._loop.call_later(PASS_S, self._tick)

    def _reads_of_window(self) -> int | None:
        """How many reads there were in a window that is over; None while it is not."""
        now = self._loop.time()
        if now - self._since < WINDOW_S:
            return None
        reads, self._reads, self._since = self._reads, 0, now
        return reads

    def _read_all(self) -> None:
        """Read once from each socket that has something."""
        for fd, _ in self._epoll.poll(0, len(self._readings) + 1):
            reading = self._readings.get(fd)
            if reading is None:
                continue
            self._reads += 1
            try:
                size = os.readv(fd, self._buffers)
            except BlockingIOError:
                continue
            except OSError:
                size = 0
            if size:
                self._tell(reading, size)
            else:
                self.remove(reading.transport)
                reading.transport.resume_reading()

    def _tell(self, reading: _Reading, size: int) -> None:
        try:
            reading.updated(size)
        except Exception as error:  # a mistake of ours, which must not end the pass for all others
            context = {"message": "a frame could not be read", "exception": error}
            self._loop.call_exception_handler({**context, "transport": reading.transport})
            reading.transport.abort()


def _fileno(transport: asyncio.BaseTransport) -> int:
    found: int = transport.get_extra_info("socket").fileno()
    return found
