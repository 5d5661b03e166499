"""A WebSocket client that sends what it should not: bytes as they are given, in pieces of any size.

    async with RawWebSocket(address) as raw:
        await raw.upgrade()
        await raw.send(frames.encode_client(hello), piece=1)
        closed = await raw.closed()

It reads frames as a client must, and trusts the server.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

__all__ = ["BINARY", "CLOSE", "CONTINUATION", "PING", "PONG", "TEXT", "Closed", "RawWebSocket", "ws_frame"]

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
WAIT_S: Final = 20.0
UPGRADE: Final = (
    b"GET /v1/connect HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)

Closed = tuple[int, str]
"""How the server ended the connection: its code and reason; code 0: it closed the socket and said nothing."""


def ws_frame(
    payload: bytes,
    opcode: int = BINARY,
    *,
    fin: bool = True,
    masked: bool = True,
    rsv: int = 0,
    size: int = -1,
) -> bytes:
    """Return a frame, of which the head may lie: `size` is the length it tells, by default the true one."""
    size = len(payload) if size < 0 else size
    head = bytes([fin << 7 | rsv << 4 | opcode])
    if size < 126:
        head += bytes([masked << 7 | size])
    elif size < 65_536:
        head += bytes([masked << 7 | 126]) + struct.pack(">H", size)
    else:
        head += bytes([masked << 7 | 127]) + struct.pack(">Q", size)
    return head + (bytes(4) if masked else b"") + payload


class RawWebSocket:
    """One connection. Nothing that it does raises because the server has closed it already."""

    def __init__(self, address: str, *, receive_buffer: int = 0) -> None:
        """`receive_buffer`: bytes that the kernel keeps unread, where its own choice is too many."""
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._receive_buffer = receive_buffer
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self.received: list[bytes] = []
        """The binary frames so far."""

    async def __aenter__(self) -> Self:
        made = socket.create_connection((self._host, self._port), WAIT_S)
        if self._receive_buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer)
        self._reader, self._writer = await asyncio.open_connection(sock=made)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def write(self, data: bytes, *, piece: int = 0) -> None:
        """Write bytes; with `piece`, each so many of them by themselves."""
        with suppress(OSError):
            for at in range(0, len(data), piece or max(len(data), 1)):
                self._writer.write(data[at : at + (piece or len(data))])
                await self._writer.drain()
                if piece:
                    await asyncio.sleep(0)  # each in a packet of its own

    async def upgrade(self, *, piece: int = 0) -> None:
        """Make a WebSocket of the connection. Raises AssertionError where it cannot be."""
        await self.write(UPGRADE % self._host.encode(), piece=piece)
        async with asyncio.timeout(WAIT_S):
            head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101"), head

    async def send(self, *messages: bytes, piece: int = 0) -> None:
        """Send binary messages."""
        for message in messages:
            await self.write(ws_frame(message), piece=piece)

    async def receive(self) -> bytes | Closed:
        """The next binary message, or how the server ended the connection."""
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    opcode, payload = await self._frame()
                except (asyncio.IncompleteReadError, OSError):
                    return 0, ""
                if opcode == BINARY:
                    self.received.append(payload)
                    return payload
                if opcode == CLOSE:
                    code = struct.unpack(">H", payload[:2])[0] if payload else 1005
                    return code, payload[2:].decode()

    async def pong(self) -> bytes:
        """The payload of the next pong; what comes before it is passed over."""
        async with asyncio.timeout(WAIT_S):
            while True:
                opcode, payload = await self._frame()
                if opcode == PONG:
                    return payload

    def pause_reading(self) -> None:
        """Read nothing of what comes."""
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]

    def resume_reading(self) -> None:
        """Read again."""
        self._writer.transport.resume_reading()  # type: ignore[attr-defined]

    async def closed(self) -> Closed:
        """How the server ends the connection; messages before that are passed over."""
        while True:
            got = await self.receive()
            if isinstance(got, tuple):
                return got

    async def ended(self) -> bytes:
        """What comes until the server closes the socket."""
        async with asyncio.timeout(WAIT_S):
            with suppress(OSError):
                return await self._reader.read()
        return b""

    def abort(self) -> None:
        """Be gone, in the middle of whatever it is."""
        self._writer.transport.abort()

    async def _frame(self) -> tuple[int, bytes]:
        first, size = await self._reader.readexactly(2)
        if size == 126:
            size = struct.unpack(">H", await self._reader.readexactly(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", await self._reader.readexactly(8))[0]
        return first & 15, await self._reader.readexactly(size)
