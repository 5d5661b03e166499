"""WebSockets: picows' listener as a session's transport."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import struct
import sys
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import cast

import picows

from playhall.engine.backend import Intake
from playhall.sockets import CAN_POLL, Port
from playhall_common import logs
from playhall_common.address import join_host_port, split_host_port
from playhall_router.client_address import client_address
from playhall_router.frame_guard import FrameGuard
from playhall_router.limits import MAX_FRAME_BYTES
from playhall_router.outbound import HARD_BYTES
from playhall_router.router import Router
from playhall_router.session import Session
from playhall_router.socket_reader import SocketReader

__all__ = ["PATH", "WebSocketServer"]

PATH = b"/v1/connect"
_SIOCOUTQNSD = 0x894B
_CLOSE_S = 2.0
"""How long a client has to answer a close."""
_ABORT_S = 5.0
_BACKLOG = 1024
_BINARY = picows.WSMsgType.BINARY
_ABNORMAL = frozenset({1004, 1005, 1006, 1015})

log = logs.get_logger()


class WebSocketServer:
    """Listens, and makes a session of every WebSocket."""

    def __init__(self, router: Router, *, trusted_proxies: int) -> None:
        self._router = router
        self._proxies = trusted_proxies
        self._intake = Intake(MAX_FRAME_BYTES, asyncio.get_running_loop().time)
        self._sockets = SocketReader(self._intake) if CAN_POLL else None
        if self._sockets is not None:
            router.rooms.read_first = self._sockets.read_now
        self._server: asyncio.Server | None = None

    async def start(self, address: str) -> str:
        """Listen; gives the address. Raises OSError where it is taken."""
        # It would write a line for every client that sends nonsense; how connections end is logged by the
        # router.
        logging.getLogger("picows.websocket").setLevel(logging.CRITICAL)
        host, port = split_host_port(address)
        self._server = await picows.ws_create_server(
            self._accept, host, port, max_frame_size=MAX_FRAME_BYTES, enable_auto_pong=False,
            websocket_handshake_timeout=5, use_aiofastnet=False, backlog=_BACKLOG, logger_name="websocket",
        )  # fmt: skip
        return join_host_port(host, self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Listen no more."""
        if self._server is None:
            return
        self._server.close()
        # Clients have this long to take their close; whoever does not is cut off with the process.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S + 1):
                await self._server.wait_closed()
        if self._sockets is not None:
            self._sockets.close()

    def _accept(self, request: picows.WSUpgradeRequest) -> _Listener | picows.WSUpgradeResponseWithListener:
        if request.path != PATH:
            return _refuse(HTTPStatus.NOT_FOUND, b"WebSockets are at /v1/connect\n")
        if not self._router.has_room:
            return _refuse(HTTPStatus.SERVICE_UNAVAILABLE, b"this router takes no more connections now\n")
        return _Listener(self._router, self._proxies, self._guard)

    def _guard(self, below: asyncio.Transport, session: Session) -> None:
        """Put a guard before the protocol of a transport, and read its socket."""
        inner = cast(asyncio.BufferedProtocol, below.get_protocol())
        sockets = self._sockets
        on_lost = _nothing if sockets is None else partial(sockets.remove, below)
        guard = FrameGuard(inner, self._intake, session.connection.gate, session, on_lost)
        below.set_protocol(guard)
        if sockets is not None:
            sockets.add(below, guard)


def _refuse(status: HTTPStatus, body: bytes) -> picows.WSUpgradeResponseWithListener:
    return picows.WSUpgradeResponseWithListener(
        picows.WSUpgradeResponse.create_error_response(status, body), None
    )


class _Listener(picows.WSListener):
    """One WebSocket. It is the `Wire` of its session. Usual frames do not come this way: see `guard`."""

    def __init__(
        self, router: Router, proxies: int, guard: Callable[[asyncio.Transport, Session], None]
    ) -> None:
        super().__init__()
        self._router = router
        self._proxies = proxies
        self._guard = guard
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self._transport: picows.WSTransport | None = None
        self._session: Session | None = None
        self._fd = -1
        self._closing = False
        self.address = ""
        self.origin = ""
        self._port: Port | None = None
        self.write: Callable[[bytes], int] = _write_nowhere
        self.buffered: Callable[[], int] = _nothing

    # From picows.

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        below = transport.underlying_transport
        headers = transport.request.headers
        peer = below.get_extra_info("peername")
        self._fd = below.get_extra_info("socket").fileno()
        self._transport = transport
        self.address = client_address(
            peer[0] if isinstance(peer, tuple) else "", headers.getall("X-Forwarded-For", []), self._proxies
        )
        self.origin = headers.get("Origin", "")
        # Called for every frame, and so without a method in between. They do nothing on a transport that is
        # closing or gone.
        self.write = self._port = Port(transport, below, self._fd)
        self.buffered = below.get_write_buffer_size
        session = self._session = self._router.open(self)
        self._guard(below, session)

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        session, kind = self._session, frame.msg_type
        odd = not frame.fin or frame.rsv1 or frame.rsv2 or frame.rsv3
        if kind is picows.WSMsgType.CLOSE:
            self._on_close(transport, frame)
        elif session is None or self._closing:
            return
        elif kind is _BINARY and not odd:
            session.received(frame.get_payload_as_bytes(), self._time())
        elif kind is picows.WSMsgType.PING and not odd:
            # To a client that reads none of them, they would pile up here without end.
            if self.buffered() <= HARD_BYTES:
                transport.send_pong(frame.get_payload_as_bytes())
        elif kind is not picows.WSMsgType.PONG or odd:
            session.malformed("a frame is one whole binary message", self._time())

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        self._transport = None
        self.write = _write_nowhere
        if self._port is not None:
            self._port.close()
        if self._session is not None:
            self._session.disconnected(self._loop.time())
            self._session = None

    def pause_writing(self) -> None:
        """Nothing to pause: `Outbound` bounds what is written."""

    def resume_writing(self) -> None:
        """See pause_writing."""

    def _on_close(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        if not transport.is_close_frame_sent:
            code = cast(int, frame.get_close_code())
            transport.send_close(cast(picows.WSCloseCode, 1000 if code in _ABNORMAL or not code else code))
        transport.disconnect()

    # For the session.

    def close(self, code: int, reason: str) -> None:
        transport = self._transport
        if transport is None or self._closing:
            return
        self._closing = True
        # The socket is read on until the client has answered: closed with bytes unread it would be reset, and
        # the client might never see the code.
        transport.send_close(cast(picows.WSCloseCode, code), reason)
        self._loop.call_later(_CLOSE_S, transport.disconnect)
        self._loop.call_later(_ABORT_S, transport.disconnect, False)

    def unsent(self) -> int:
        return _unsent(self._fd) if self._transport is not None else 0


def _write_nowhere(_frame: bytes) -> int:
    """Nobody is connected yet, or any more."""
    return 0


def _nothing() -> int:
    return 0


def _unsent_on_linux(fd: int) -> int:
    """Bytes in the kernel's send buffer that have not been sent once."""
    try:
        fcntl.ioctl(fd, _SIOCOUTQNSD, _buffer)
    except OSError as error:
        if error.errno in (errno.EBADF, errno.ENOTCONN, errno.EINVAL):
            return 0  # the socket is going
        raise
    return int(_unpack(_buffer)[0])


def _unsent_elsewhere(fd: int) -> int:
    """No other system tells; what waits in this process has to do."""
    return 0


_buffer = bytearray(4)
_unpack = struct.Struct("i").unpack
_unsent = _unsent_on_linux if sys.platform == "linux" else _unsent_elsewhere
