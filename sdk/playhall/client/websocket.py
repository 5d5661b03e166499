"""The WebSocket transport, on picows."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import picows

from playhall.client.core import ABNORMAL
from playhall.client.discovery import Endpoints
from playhall.client.transport import STALE_BYTES, Receiver, Transport
from playhall.engine.codes import CloseCode
from playhall.engine.frames import MAX_FRAME

__all__ = ["WebSocketDial"]

DIAL_S = 10.0
# A router may take connections and answer none. While there is another, it has this long.
SWITCH_S = 4.0
CLOSE_S = 2.0
NO_CODE = 1005
TOO_BIG = 1009


class WebSocketDial:
    """Connects to one of a project's routers, to another one after a failure.

    `switch_s`: how long a router may take to answer while there is another to try.
    """

    def __init__(self, origin: str, project: str, *, switch_s: float = SWITCH_S) -> None:
        self._endpoints = Endpoints(origin, project)
        self._switch_s = switch_s

    async def __call__(self, receiver: Receiver) -> Transport:
        socket = _Socket(receiver)
        async with asyncio.timeout(DIAL_S):
            address = await self._endpoints.one(asyncio.get_running_loop().time())
            patience = self._switch_s if self._endpoints.has_others else DIAL_S
            try:
                async with asyncio.timeout(patience):
                    await picows.ws_connect(
                        lambda: socket,
                        address,
                        max_frame_size=MAX_FRAME,
                        # By itself it stays on a connection after nobody waits for it any more.
                        websocket_handshake_timeout=patience,
                    )
            except (OSError, TimeoutError, picows.WSError, picows.WSInvalidURL) as error:
                self._endpoints.failed(address)
                socket.abandon()
                raise OSError(f"{address}: {str(error) or 'it did not answer in time'}") from error
            except asyncio.CancelledError:
                self._endpoints.failed(address)
                socket.abandon()
                raise
        return socket


class _Socket(picows.WSListener):
    """One WebSocket, as picows tells of it and as the client uses it."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport: picows.WSTransport | None = None
        self._closed_with: tuple[int, str] | None = None
        self._abort: asyncio.TimerHandle | None = None
        self._abandoned = False

    # What picows calls.

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        self._transport = transport
        if self._abandoned:
            transport.disconnect(False)

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        kind = frame.msg_type
        if kind == picows.WSMsgType.CLOSE:
            self._answer_close(transport, frame.get_payload_as_bytes())
        elif self._abort is not None or kind in (picows.WSMsgType.PING, picows.WSMsgType.PONG):
            pass
        elif kind != picows.WSMsgType.BINARY or not frame.fin or not frame.payload_size:
            self._receiver.violated("a WebSocket message that is not one whole binary frame")
        else:
            self._receiver.received(frame.get_payload_as_bytes())

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        self._transport = None
        if self._abort is not None:
            self._abort.cancel()
        # None, whatever its stub says, where neither side closed the WebSocket.
        handshake = cast("Any", transport.close_handshake)
        sent = handshake.sent if handshake is not None else None
        if self._closed_with is None and sent is not None and sent.code == TOO_BIG:
            self._closed_with = CloseCode.PROTOCOL, sent.reason
        self._receiver.closed(*(self._closed_with or (ABNORMAL, "the connection was lost")))

    # What the client calls.

    def abandon(self) -> None:
        """Nobody waits for this socket any more: hang up, as soon as there is something to hang up."""
        self._abandoned = True
        if self._transport is not None:
            self._transport.disconnect(False)

    @property
    def unsent(self) -> int:
        transport = self._transport
        return transport.underlying_transport.get_write_buffer_size() if transport is not None else 0

    def send(self, frame: bytes, unreliable: bool) -> None:
        if self._transport is not None and not (unreliable and self.unsent > STALE_BYTES):
            self._transport.send(picows.WSMsgType.BINARY, frame)

    def close(self, code: int, reason: str) -> None:
        """Say so, and hang up once the other side has answered: what was sent before must arrive."""
        if self._transport is not None and self._abort is None:
            self._transport.send_close(cast(picows.WSCloseCode, code), reason.encode())
            self._abort = asyncio.get_running_loop().call_later(CLOSE_S, self._transport.disconnect, False)

    def _answer_close(self, transport: picows.WSTransport, payload: bytes) -> None:
        code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else NO_CODE
        self._closed_with = code, payload[2:].decode(errors="replace")
        if not transport.is_close_frame_sent:
            transport.send_close(cast(picows.WSCloseCode, code if code != NO_CODE else 1000))
        transport.disconnect()
