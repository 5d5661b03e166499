"""Sees the size of every WebSocket frame in its header, before the payload is read.

picows has a limit of its own, but answers it with 1009, and clients are told 4005. So a `FrameGuard` stands
between the transport and picows' protocol: it hands everything on, follows the headers that pass (RFC 6455,
5.2), and stops handing on at the first that announces too much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from playhall.engine.backend import HeaderScanner

__all__ = ["FrameGuard"]


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
        good = self._scanner.scan(self._buffer, nbytes)
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
