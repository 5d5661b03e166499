"""A WebSocket client that holds itself to nothing: it says what it likes, and hangs up as it likes."""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

import picows

from playhall.engine import frames
from playhall.room import Schema

__all__ = ["RawSocket"]

WAIT_S = 20.0
# Close at once, and tell the other side by a TCP reset.
RESET = struct.pack("ii", 1, 0)


class RawSocket(picows.WSListener):
    """One connection. `received` are the frames that came, `closed_with` the code of the close."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.closed_with: int | None = None
        self.gone = False
        self._transport: picows.WSTransport | None = None
        self._changed = asyncio.Event()

    @classmethod
    async def open(cls, url: str) -> RawSocket:
        _, opened = await picows.ws_connect(cls, url, max_frame_size=1 << 20)
        return cast(RawSocket, opened)

    def greet(self, project: str, room: str, schema: Schema[Any, Any], **hello: Any) -> None:
        """Say hello and what is held: nothing."""
        self.send_hello(project, room, schema, **hello)
        self.send(frames.Resume(0, 0, 0, full=False, held=()))

    def send_hello(self, project: str, room: str, schema: Schema[Any, Any], **hello: Any) -> None:
        fields: dict[str, Any] = {
            "version": 1, "project": project, "room": room, "type": "", "token": "", "schema": schema.hash,
            "session": secrets.token_bytes(16), "attempt": 0, "sdk": "raw 1",
        }  # fmt: skip
        self.send(frames.Hello(**(fields | hello)))

    def send(self, frame: frames.ClientFrame | bytes) -> None:
        if self._transport is not None:
            data = frame if isinstance(frame, bytes) else frames.encode_client(frame)
            self._transport.send(picows.WSMsgType.BINARY, data)

    def send_raw(self, data: bytes) -> None:
        """Write bytes to the TCP connection."""
        assert self._transport is not None
        self._transport.underlying_transport.write(data)

    def close(self) -> None:
        """Close as a browser does that leaves the page."""
        if self._transport is not None:
            self._transport.send_close(picows.WSCloseCode.OK)
            self._transport.disconnect()

    def reset(self) -> None:
        """End the TCP connection by a reset."""
        if self._transport is not None:
            below = self._transport.underlying_transport
            below.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            below.abort()

    async def until(self, done: Callable[[RawSocket], object], timeout: float = WAIT_S) -> None:
        async with asyncio.timeout(timeout):
            while not done(self):
                self._changed.clear()
                await self._changed.wait()

    async def closed(self) -> int | None:
        """Wait until the other side closes; the code it gives."""
        await self.until(lambda raw: raw.gone)
        return self.closed_with

    def has(self, kind: type[Any]) -> bool:
        return any(isinstance(frame, kind) for frame in self.received)

    # What picows calls.

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        self._transport = transport

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        if frame.msg_type == picows.WSMsgType.CLOSE:
            payload = frame.get_payload_as_bytes()
            self.closed_with = int.from_bytes(payload[:2], "big") if payload else None
            if not transport.is_close_frame_sent:
                transport.send_close(picows.WSCloseCode.OK)
            transport.disconnect()
        elif frame.msg_type == picows.WSMsgType.BINARY:
            self.received.append(frames.decode_server(frame.get_payload_as_bytes()))
        self._changed.set()

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        self.gone = True
        self._transport = None
        self._changed.set()
