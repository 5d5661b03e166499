"""Sees the size of every WebSocket frame in its header, before the payload is read.

picows has a limit of its own, but answers it with 1009, and clients are told 4005. So a `FrameGuard` stands
between the transport and picows' protocol: it hands everything on, follows the headers that pass, and stops
handing on at the first that announces too much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from playhall.engine.backend import Guard
from playhall.engine.wsheaders import Inner

__all__ = ["FrameGuard"]


class FrameGuard(Guard, asyncio.BufferedProtocol):
    """Passes a transport's events on to `inner`, up to a frame that is too large: then `on_oversized` is
    called once.
    """

    def __init__(
        self, inner: asyncio.BufferedProtocol, limit: int, on_oversized: Callable[[], object]
    ) -> None:
        super().__init__(cast(Inner, inner), limit, on_oversized)
        self._inner = inner

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
