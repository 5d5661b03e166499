"""Reads the sockets of all clients, many in a pass: on Linux, in the place of the event loop.

A loop that is woken for every small frame spends more on waking, and on looking for the one socket, than on
the frame. While many frames come, sockets are therefore looked at every 4 ms only, and read one after the
other; while few come, as soon as anything is there. Whatever is not plain reading is the transport's: it gets
its socket back at the end of the stream, or when something fails.
"""

from __future__ import annotations

import asyncio

from playhall.engine.backend import Intake
from playhall.sockets import Poller
from playhall.sockets.plain import Reading

__all__ = ["SocketReader"]

PASS_S = 0.004
WINDOW_S = 0.064
BUSY_READS = 64
"""So many reads in a window are worth waiting for more; half as many no longer are."""


class SocketReader:
    """The reader of one event loop. It reads into the buffer of `intake`."""

    def __init__(self, intake: Intake) -> None:
        self._loop = asyncio.get_running_loop()
        self._poller = Poller(intake, self._ended, self._failed)
        self._transports: dict[int, asyncio.Transport] = {}
        self._reads = 0
        self._since = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._loop.add_reader(self._poller.fileno(), self._ready)

    @property
    def paced(self) -> bool:
        """Whether sockets are looked at every `PASS_S`, and not at once."""
        return self._timer is not None

    def add(self, transport: asyncio.Transport, reading: Reading) -> None:
        """Read a transport's socket from now on, and tell `reading`."""
        fd = _fileno(transport)
        transport.pause_reading()
        self._transports[fd] = transport
        self._poller.add(fd, reading)

    def remove(self, transport: asyncio.Transport) -> None:
        """Read it no more, if it was read. To be called before its socket is closed."""
        fd = _fileno(transport)
        if self._transports.pop(fd, None) is not None:
            self._poller.remove(fd)

    def read_now(self) -> None:
        """Read what is there, and would be read at the next pass."""
        if self.paced:
            self._read_all()

    def close(self) -> None:
        """Read nothing any more."""
        self._loop.remove_reader(self._poller.fileno())
        if self._timer is not None:
            self._timer.cancel()
        self._transports.clear()
        self._poller.close()

    def _ready(self) -> None:
        self._read_all()
        reads = self._reads_of_window()
        if reads is not None and reads >= BUSY_READS:
            self._loop.remove_reader(self._poller.fileno())
            self._timer = self._loop.call_later(PASS_S, self._tick)

    def _tick(self) -> None:
        try:
            self._read_all()
        finally:  # a mistake must not end reading for all
            self._go_on()

    def _go_on(self) -> None:
        reads = self._reads_of_window()
        if reads is not None and reads < BUSY_READS // 2:
            self._timer = None
            self._loop.add_reader(self._poller.fileno(), self._ready)
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
        self._reads += self._poller.read_all()

    def _ended(self, fd: int) -> None:
        self._transports.pop(fd).resume_reading()

    def _failed(self, fd: int, error: Exception) -> None:
        transport = self._transports.pop(fd)
        context = {"message": "a frame could not be read", "exception": error, "transport": transport}
        self._loop.call_exception_handler(context)
        transport.abort()


def _fileno(transport: asyncio.BaseTransport) -> int:
    found: int = transport.get_extra_info("socket").fileno()
    return found
