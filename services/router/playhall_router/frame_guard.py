"""What is between a WebSocket's transport and picows: most frames never get to it.

A `FrameGuard` is given the stream. It takes out the usual frames, for the client's session, and hands on the
rest up to the first that announces too much. picows has a limit of its own, but answers it with 1009, and
clients are told 4005.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from playhall.engine.backend import Gate, Guard, Intake
from playhall.engine.wsheaders import Inner, Reader

__all__ = ["FrameGuard"]


class FrameGuard(Guard, asyncio.BufferedProtocol):
    """Passes a transport's events on to `inner`, except what its `Guard` keeps."""

    def __init__(
        self,
        inner: asyncio.BufferedProtocol,
        intake: Intake,
        gate: Gate,
        reader: Reader,
        on_lost: Callable[[], object] = lambda: None,
    ) -> None:
        """`on_lost` is called when the connection is, while there still is a socket."""
        super().__init__(cast(Inner, inner), intake, gate, reader)
        self._inner = inner
        self._on_lost = on_lost

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost()
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
