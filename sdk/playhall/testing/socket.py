"""A connection of a test client, as the router has it: in memory, frame for frame as in production.

It has two ends, and each hears of the other only by what comes through the pipes between them. So it may be
half open: over for one end, while the other still waits.
"""

from __future__ import annotations

import asyncio
import enum
from functools import partial
from typing import Protocol

from playhall.client.core import ABNORMAL
from playhall.client.transport import Receiver
from playhall.engine import frames
from playhall.engine.codes import CloseCode
from playhall.engine.connection import JsonIn
from playhall.engine.errors import ProtocolError
from playhall.testing.network import Network

__all__ = ["Phase", "Router", "Socket"]

# As in the router: a client of which nothing comes for so long is closed.
SILENCE_S = 15.0
# As in the WebSocket: a close that is not answered within this needs no answer.
CLOSE_S = 2.0


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
    def socket_drained(self, socket: Socket) -> None: ...
    def socket_gone(self, socket: Socket, clean: bool) -> None: ...
    def pong(self, nonce: int) -> frames.Pong: ...


_OURS = frozenset({frames.HELLO, frames.RESUME, frames.PING, frames.LEAVE})


class Socket:
    """The transport of one test client, and the router's end of it.

    Without a `Net` what either end sends arrives by the loop's next turn. All is as it would be on the wire.
    """

    def __init__(self, router: Router, receiver: Receiver, network: Network, meta: JsonIn) -> None:
        self._router = router
        self._receiver: Receiver | None = receiver
        self._network = network
        self._up, self._down = network.pipe(), network.pipe()
        self._loop = asyncio.get_running_loop()
        self._resets = 0
        self._left = False
        self._heard_at = self._loop.time()
        self._silence: asyncio.TimerHandle | None = self._loop.call_later(SILENCE_S, self._check_silence)
        self._closing: asyncio.TimerHandle | None = None
        self.player = network.player
        self.meta = meta
        self.phase = Phase.OPENING
        self.hello: frames.Hello | None = None
        self.resume: frames.Resume | None = None
        self.link = 0
        self.was_joined = False
        self.drained = 0
        """Bytes of the room's frames, on this link, that have left for the client."""

    def abort(self, why: str) -> None:
        """End the connection for both ends at once. What is under way is lost."""
        self._end()
        self._network.forget(self._down)
        self._loop.call_soon(self._client_closed, ABNORMAL, why)

    # The client's end

    @property
    def unsent(self) -> int:
        return self._up.waiting

    def send(self, frame: bytes, unreliable: bool) -> None:
        self._up.send(len(frame), unreliable, partial(self._arrived, frame))

    def close(self, code: int, reason: str) -> None:
        self._up.send(0, False, partial(self.closed, code, reason))
        self._closing = self._loop.call_later(CLOSE_S, self._hang_up, code, reason)

    def _hang_up(self, code: int, reason: str) -> None:
        self._network.forget(self._up)
        self._client_closed(code, reason)

    def _client_closed(self, code: int, reason: str) -> None:
        receiver, self._receiver = self._receiver, None
        self._network.forget(self._down)
        if self._closing is not None:
            self._closing.cancel()
        if receiver is not None:
            receiver.closed(code, reason)

    def _deliver(self, data: bytes) -> None:
        if self._receiver is not None:
            self._receiver.received(data)

    # The router's end

    def say(self, frame: frames.ServerFrame | bytes) -> None:
        """Send to the client."""
        data = frame if isinstance(frame, bytes) else frames.encode_server(frame)
        self._down.send(len(data), data[0] == frames.UNRELIABLE, partial(self._deliver, data))

    def pass_on(self, frame: bytes) -> None:
        """Send to the client what the room has for it, and count what of it has left."""
        link = self.link

        def left() -> None:
            if self.link == link:
                self.drained += len(frame)
                self._router.socket_drained(self)

        self._down.send(len(frame), frame[0] == frames.UNRELIABLE, partial(self._deliver, frame), left)

    def lose_room(self, code: int) -> None:
        """The room behind the socket is gone: say so, and wait for what the client holds."""
        self._resets += 1
        self.phase = Phase.LOST
        self.say(frames.Reset(self._resets, code))

    def closed(self, code: int, reason: str) -> None:
        """Close the connection from the router's end, or answer the client's close."""
        if self._end():
            self._down.send(0, False, partial(self._client_closed, code, reason))

    def _end(self) -> bool:
        """End the router's end. Returns whether it was open."""
        if self.phase is Phase.CLOSED:
            return False
        self.phase = Phase.CLOSED
        self._network.forget(self._up)
        if self._silence is not None:
            self._silence.cancel()
        self._router.socket_gone(self, self._left)
        return True

    def _check_silence(self) -> None:
        at = self._heard_at + SILENCE_S
        if at <= self._loop.time():
            self._silence = None
            self.closed(CloseCode.LIMIT_EXCEEDED, f"nothing came for {SILENCE_S:g} s")
        else:
            self._silence = self._loop.call_at(at, self._check_silence)

    def _arrived(self, frame: bytes) -> None:
        if self.phase is Phase.CLOSED:
            return
        self._heard_at = self._loop.time()
        try:
            if not frame or frame[0] in _OURS:
                self._own_frame(frames.decode_client(frame))
            elif self.phase is Phase.JOINED:
                self._router.socket_frame(self, frame)
            elif self.phase is not Phase.LOST and frame[0] != frames.UNRELIABLE:
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
