"""A connection of a test client, as the router has it: in memory, frame for frame as in production."""

from __future__ import annotations

import asyncio
import enum
from typing import Protocol

from playhall.client.transport import Receiver
from playhall.engine import frames
from playhall.engine.codes import CloseCode
from playhall.engine.connection import JsonIn
from playhall.engine.errors import ProtocolError

__all__ = ["Phase", "Router", "Socket"]


class Phase(enum.Enum):
    """Where a connection stands with its room."""

    OPENING = enum.auto()
    WAITING = enum.auto()
    JOINED = enum.auto()
    LOST = enum.auto()
    CLOSED = enum.auto()


class Router(Protocol):
    """What a socket asks of the test's router."""

    def socket_wants_in(self, socket: Socket) -> None: ...
    def socket_frame(self, socket: Socket, frame: bytes) -> None: ...
    def socket_gone(self, socket: Socket, clean: bool) -> None: ...
    def pong(self, nonce: int) -> frames.Pong: ...


_OURS = frozenset({frames.HELLO, frames.RESUME, frames.PING, frames.LEAVE})


class Socket:
    """The transport of one test client, and the router's end of it.

    What either end sends arrives by the loop's next turn, in order, and is as it would be on the wire.
    """

    def __init__(self, router: Router, receiver: Receiver, player: str, meta: JsonIn) -> None:
        self._router = router
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._resets = 0
        self._left = False
        self.player = player
        self.meta = meta
        self.phase = Phase.OPENING
        self.hello: frames.Hello | None = None
        self.resume: frames.Resume | None = None
        self.link = 0
        self.was_joined = False
        self.drained = 0

    # The client's end

    @property
    def unsent(self) -> int:
        return 0

    def send(self, frame: bytes, unreliable: bool) -> None:
        self._loop.call_soon(self._arrived, frame)

    def close(self, code: int, reason: str) -> None:
        self._loop.call_soon(self.closed, code, reason)

    # The router's end

    def say(self, frame: frames.ServerFrame | bytes) -> None:
        """Send to the client."""
        data = frame if isinstance(frame, bytes) else frames.encode_server(frame)
        self._loop.call_soon(self._deliver, data)

    def lose_room(self, code: int) -> None:
        """The room behind the socket is gone: say so, and wait for what the client holds."""
        self._resets += 1
        self.phase = Phase.LOST
        self.say(frames.Reset(self._resets, code))

    def closed(self, code: int, reason: str) -> None:
        """End the connection, from whichever side."""
        if self.phase is not Phase.CLOSED:
            self.phase = Phase.CLOSED
            self._router.socket_gone(self, self._left)
            self._loop.call_soon(self._receiver.closed, code, reason)

    def _deliver(self, data: bytes) -> None:
        self._receiver.received(data)

    def _arrived(self, frame: bytes) -> None:
        if self.phase is Phase.CLOSED:
            return
        try:
            if not frame or frame[0] in _OURS:
                self._own_frame(frames.decode_client(frame))
            elif self.phase is Phase.JOINED:
                self._router.socket_frame(self, frame)
            elif self.phase is not Phase.LOST:
                raise ProtocolError("a frame before welcome")
        except ProtocolError as error:
            self.closed(CloseCode.PROTOCOL, str(error))

    def _own_frame(self, frame: frames.ClientFrame) -> None:
        match frame:
            case frames.Hello() if self.hello is None:
                self.hello = frame
            case _ if self.hello is None:
                raise ProtocolError("the first frame must be hello")
            case frames.Resume(reset=number):
                self._resumed(frame, number)
            case frames.Ping(nonce):
                self.say(self._router.pong(nonce))
            case frames.Leave():
                self._left = True
            case _:
                raise ProtocolError("a second hello")

    def _resumed(self, resume: frames.Resume, number: int) -> None:
        if number < self._resets:
            return
        if self.phase not in (Phase.OPENING, Phase.LOST) or number > self._resets:
            raise ProtocolError("a resume that nothing asked for")
        self.phase = Phase.WAITING
        self.resume = resume
        self._router.socket_wants_in(self)
