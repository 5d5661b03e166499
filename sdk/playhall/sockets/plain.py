"""The plain twins of `native.pyx`."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Protocol

import picows

from playhall.engine.backend import Intake

__all__ = ["CAN_POLL", "Poller", "Port", "Reading", "Transport"]

CAN_POLL = hasattr(select, "epoll")
"""Whether this system has what a `Poller` takes."""


class Reading(Protocol):
    """Who is told of what was read: a guard, as a rule."""

    def buffer_updated(self, nbytes: int, /) -> None:
        """So many bytes are in the intake's buffer."""


class Transport(Protocol):
    """What a port has of a socket's transport, asyncio.Transport."""

    def get_write_buffer_size(self) -> int:
        """Bytes that wait there."""

    def write(self, data: bytes, /) -> None:
        """Send bytes after those."""


class Poller:
    """Reads the sockets it is given, into the buffer of an intake.

    `on_end` is called with a socket at the end of its stream, or where it cannot be read; `on_error` with one
    whose reading raised. Neither is read any more.
    """

    def __init__(
        self, intake: Intake, on_end: Callable[[int], object], on_error: Callable[[int, Exception], object]
    ) -> None:
        self._buffers = (intake.buffer,)
        self._on_end = on_end
        self._on_error = on_error
        self._epoll = select.epoll()
        self._readings: dict[int, Reading] = {}

    def fileno(self) -> int:
        """What can be waited for until one of the sockets has something."""
        return self._epoll.fileno()

    def add(self, fd: int, reading: Reading) -> None:
        """Read this socket too, which does not block. Raises OSError where it cannot be waited for."""
        self._epoll.register(fd, select.EPOLLIN)
        self._readings[fd] = reading

    def remove(self, fd: int) -> None:
        """Read it no more, if it was read. To be called before it is closed."""
        if self._readings.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        """Read nothing any more."""
        self._readings.clear()
        self._epoll.close()

    def read_all(self) -> int:
        """Read once from each socket that has something. Returns from how many."""
        reads = 0
        for fd, _ in self._epoll.poll(0, len(self._readings) + 1):
            reading = self._readings.get(fd)
            if reading is None:
                continue
            reads += 1
            try:
                size = os.readv(fd, self._buffers)
            except BlockingIOError:
                continue
            except OSError:
                size = 0
            if not size:
                self.remove(fd)
                self._on_end(fd)
                continue
            try:
                reading.buffer_updated(size)
            except Exception as error:  # a mistake, which must not end the pass for all others
                self.remove(fd)
                self._on_error(fd, error)
        return reads


class Port:
    """Writes messages to a WebSocket: a lane's `write`.

    `transport` is picows', `below` the one that it is on, `fd` their socket.
    """

    def __init__(self, transport: picows.WSTransport, below: Transport, fd: int) -> None:
        self._transport: picows.WSTransport | None = transport
        self._buffered = below.get_write_buffer_size

    def __call__(self, frame: bytes) -> int:
        """Send a message. Returns how many bytes wait in this process then. Does nothing once a close was
        sent, or the port is closed.
        """
        if self._transport is None:
            return 0
        self._transport.send(picows.WSMsgType.BINARY, frame)
        return self._buffered()

    def close(self) -> None:
        """Write nothing any more. To be called before the socket is closed."""
        self._transport = None
