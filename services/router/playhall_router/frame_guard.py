"""Sees the size of every WebSocket frame in its header, before the payload is read.

picows has a limit of its own, but answers it with 1009, and clients are told 4005. So a `FrameGuard` stands
between the transport and picows' protocol: it hands everything on, follows the headers that pass (RFC 6455,
5.2), and stops handing on at the first that announces too much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["FrameGuard", "HeaderScanner"]

_SHORT = 126
_LONG = 127


class HeaderScanner:
    """Follows a stream of WebSocket frames by their headers."""

    __slots__ = ("_header", "_limit", "_skip")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._header = bytearray()
        self._skip = 0

    def scan(self, data: memoryview) -> int:
        """How much of `data` belongs to frames within the limit: all of it, or up to the header of one that
        is not.
        """
        size = len(data)
        at = self._skip
        if not self._header:
            # The common case: a read that starts with a short frame's header, and often ends with that frame.
            while at + 2 <= size and (length := data[at + 1] & 0x7F) < _SHORT:
                at += 2 + (4 if data[at + 1] & 0x80 else 0) + length
        while at < size:
            self._header.append(data[at])
            at += 1
            announced = self._length()
            if announced is None:
                continue
            if announced > self._limit:
                return max(0, at - len(self._header))
            at += announced + (4 if self._header[1] & 0x80 else 0)
            self._header.clear()
        self._skip = at - size
        return size

    def _length(self) -> int | None:
        """The length of the payload, once the header says it."""
        header = self._header
        if len(header) < 2:
            return None
        short = header[1] & 0x7F
        wide = {_SHORT: 2, _LONG: 8}.get(short, 0)
        if len(header) < 2 + wide:
            return None
        return int.from_bytes(header[2:], "big") if wide else short


class FrameGuard(asyncio.BufferedProtocol):
    """Passes a transport's events on to `inner`, up to a frame that is too large: then `on_oversized` is
    called once.
    """

    def __init__(self, inner: asyncio.BufferedProtocol, limit: int, on_oversized: Callable[[], None]) -> None:
        self._inner = inner
        self._scanner = HeaderScanner(limit)
        self._on_oversized = on_oversized
        self._buffer = memoryview(b"")
        self._open = True

    def get_buffer(self, sizehint: int) -> memoryview:
        self._buffer = memoryview(self._inner.get_buffer(sizehint))
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if not self._open:
            return
        good = self._scanner.scan(self._buffer[:nbytes])
        if good:
            self._inner.buffer_updated(good)
        if good < nbytes:
            self._open = False
            self._on_oversized()

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
