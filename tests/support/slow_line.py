"""A line between a client and its router that a test makes slow: real sockets, with small buffers.

    async with SlowLine(dev.url, dev.websockets[0], "stand", rate=10_000) as line:
        async with Player(line.origin, "stand", "main", schema) as slow: ...

What the router sends is read at so many bytes a second and no faster, so its socket backs up as with a client
that does not read. What the client sends passes at once.
"""

from __future__ import annotations

import asyncio
import socket
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from aiohttp import web

__all__ = ["SlowLine"]

BUFFER = 8 * 1024
STEP_S = 0.1


class SlowLine:
    """Answers discovery with its own address, and carries what comes there. `rate`: None is no limit."""

    def __init__(self, websocket: str, project: str, rate: float | None) -> None:
        parts = urlsplit(websocket)
        assert parts.hostname is not None
        assert parts.port is not None
        self._target = parts.hostname, parts.port
        self._path = parts.path
        self._project = project
        self._tasks: set[asyncio.Task[None]] = set()
        self.rate = rate
        self.carried = 0
        self.origin = ""
        self._address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self._address = f"ws://127.0.0.1:{port}{self._path}"
        app = web.Application()
        app.router.add_get(f"/v1/projects/{self._project}/endpoints", self._endpoints)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._server.close()
        await self._runner.cleanup()

    async def _endpoints(self, request: web.Request) -> web.Response:
        return web.json_response({"websocket": [self._address], "webtransport": []})

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        narrow = socket.socket()
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        narrow.setblocking(False)
        await asyncio.get_running_loop().sock_connect(narrow, self._target)
        up_reader, up_writer = await asyncio.open_connection(sock=narrow, limit=BUFFER)
        ways = (self._carry_up(reader, up_writer), self._carry_down(up_reader, writer))
        for way in ways:
            task = asyncio.ensure_future(way)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry_up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(BUFFER):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # the end of one side is the end of the other
        finally:
            writer.close()

    async def _carry_down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                rate = self.rate
                data = await reader.read(BUFFER if rate is None else max(1, int(rate * STEP_S)))
                if not data:
                    break
                self.carried += len(data)
                writer.write(data)
                await writer.drain()
                if rate is not None:
                    await asyncio.sleep(len(data) / rate)
        except OSError:
            pass
        finally:
            writer.close()
