"""A client of the router for tests: real WebSocket, real frames, no engine behind it."""

from __future__ import annotations

import asyncio
import secrets
from types import TracebackType
from typing import Any, Self

import aiohttp

from playhall.engine import frames

__all__ = ["RouterClient"]

WAIT_S = 15.0


class RouterClient:
    """One connection. `async with RouterClient(address, room="main") as client: await client.join()`."""

    def __init__(self, address: str, *, headers: dict[str, str] | None = None, **hello: Any) -> None:
        self._url = f"ws://{address}/v1/connect"
        self._headers = headers or {}
        fields: dict[str, Any] = {
            "version": 1, "project": "dots", "room": "main", "type": "", "token": "", "schema": bytes(16),
            "session": secrets.token_bytes(16), "attempt": 0, "sdk": "test 1",
        }  # fmt: skip
        self.hello = frames.Hello(**(fields | hello))
        self.welcome: frames.Welcome | None = None
        self._http: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession()
        self._socket = await self._http.ws_connect(
            self._url, headers=self._headers, autoping=True, max_msg_size=1 << 20
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._socket is not None:
            await self._socket.close()
        if self._http is not None:
            await self._http.close()

    @property
    def socket(self) -> aiohttp.ClientWebSocketResponse:
        assert self._socket is not None
        return self._socket

    async def send(self, *sent: frames.ClientFrame | bytes) -> None:
        for frame in sent:
            await self.socket.send_bytes(frame if isinstance(frame, bytes) else frames.encode_client(frame))

    async def greet(self, **resume: Any) -> None:
        """Send hello and resume."""
        held: dict[str, Any] = {"reset": 0, "generation": 0, "version": 0, "full": False, "held": ()}
        await self.send(self.hello, frames.Resume(**(held | resume)))

    async def join(self, **resume: Any) -> frames.Welcome:
        """Say hello and come in."""
        await self.greet(**resume)
        return await self.welcomed()

    async def welcomed(self) -> frames.Welcome:
        """The next welcome; `waking` may come before it."""
        frame = await self.receive()
        while isinstance(frame, frames.Waking):
            frame = await self.receive()
        assert isinstance(frame, frames.Welcome), frame
        self.welcome = frame
        return frame

    async def receive(self) -> frames.ServerFrame | None:
        """The next frame. Fails where the router closes instead."""
        message = await self._next()
        assert message.type is aiohttp.WSMsgType.BINARY, (message, self.socket.close_code)
        return frames.decode_server(message.data)

    async def echo(self, content: object) -> None:
        """Send a message to the room and get it back."""
        await self.send(frames.Message(content))
        assert await self.receive() == frames.Message(content)

    async def closed(self) -> tuple[int | None, str]:
        """The code and reason of the close that comes; frames before it are passed over."""
        while True:
            message = await self._next()
            if message.type is not aiohttp.WSMsgType.BINARY:
                reason = message.extra if message.type is aiohttp.WSMsgType.CLOSE else ""
                return self.socket.close_code, reason or ""

    async def _next(self) -> aiohttp.WSMessage:
        async with asyncio.timeout(WAIT_S):
            return await self.socket.receive()
