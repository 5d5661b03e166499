"""A client connection with its transport, its way out and its place in a room: the shell of `Connection`.

A session carries out what its connection says, hands on what its room says, and decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from playhall.engine import frames
from playhall.engine.backend import Lane
from playhall.engine.codes import CloseCode
from playhall.engine.gate import FORWARD
from playhall.engine.lanes import HEADER_BYTES
from playhall_router.attach import CREDIT_STEP, JoinRequest, Link
from playhall_router.clock import RoomClock
from playhall_router.connection import (
    Admit,
    Close,
    Connection,
    Forward,
    Join,
    Leave,
    Send,
    State,
    Want,
    Welcome,
)
from playhall_router.outbound import (
    CREDIT_BYTES,
    HARD_BYTES,
    UNSENT_BYTES,
    Backlog,
    Outbound,
    Verdict,
)
from playhall_router.wake import Route
from playhall_router.wire import Wire

if TYPE_CHECKING:
    from playhall_router.attach_stream import AttachStream

__all__ = ["Owner", "Session"]


class Owner(Protocol):
    """What a session asks of the router."""

    def admit(self, session: Session, hello: frames.Hello) -> None:
        """Check the token and find the room; ends in `authenticated` and `placed_in`, or in `refuse`."""

    def wants(self, session: Session) -> None:
        """The session waits for its room."""

    def stream_for(self, session: Session) -> tuple[AttachStream, Route] | None:
        """The stream to the session's room, and where that runs."""

    def joined(self, session: Session) -> None:
        """The room took the session in."""

    def slept(self, session: Session, route: Route) -> None:
        """The session's room sleeps; that generation is over."""

    def slow(self, session: Session) -> None:
        """Something waits to go out: call `poll` soon."""

    def gone(self, session: Session) -> None:
        """The session is over."""


class Session:
    """See the module's text. Times are monotonic seconds, but for `connected_at_ms`."""

    def __init__(
        self, owner: Owner, wire: Wire, connection_id: str, *, now: float, connected_at_ms: int
    ) -> None:
        self.wire = wire
        self.connection = Connection(now)
        self._judge = self.connection.gate.judge
        self.connection_id = connection_id
        self.room_uid = ""
        self.room_type = ""
        self.link: Link | None = None
        self.route: Route | None = None
        self.opened_at = now
        self.close_code = 0
        """The code that the router closed with; 0: the client went."""
        self.close_reason = ""
        self._stream: AttachStream | None = None
        self._owner = owner
        self._connected_at_ms = connected_at_ms
        self.lane = Lane(wire.write, self.deliver, self._waits, self._look)
        """See attach.Client."""
        self._outbound = Outbound(self.lane, now)
        self._over = False
        self._due = 0.0

    # From the transport.

    def received(self, frame: bytes, now: float) -> None:
        """The client sent a frame."""
        verdict = self._judge(frame, now)
        if verdict == FORWARD and (link := self.link) is not None:
            self._pass_on(link, frame, now)
            return
        self.judged(verdict, frame, now)

    def judged(self, verdict: int, frame: bytes, now: float) -> None:
        """The client sent a frame, of which the gate said this."""
        self.connection.judged(verdict, frame, now)
        self._carry_out(now)

    def overflowed(self, frame: bytes, now: float) -> None:
        """The client sent a frame that the way to its room had no place for."""
        self._forward(frame, now)

    def oversized(self, now: float) -> None:
        """The client began a frame that is too large."""
        self.connection.oversized()
        self._carry_out(now)

    def malformed(self, text: str, now: float) -> None:
        """The client sent what is no frame."""
        self.connection.malformed(text)
        self._carry_out(now)

    def disconnected(self, now: float) -> None:
        """The transport is gone."""
        self.connection.disconnected()
        self._carry_out(now)
        self._end()

    # From the router.

    def placed_in(self, room_uid: str, room_type: str, now: float) -> None:
        """The room was found."""
        self.room_uid, self.room_type = room_uid, room_type
        self.connection.resolved(room_type, now)
        self._carry_out(now)

    def waking(self, now: float) -> None:
        """The room is being started."""
        self.connection.waking()
        self._carry_out(now)

    def attach(self, now: float) -> None:
        """The room runs."""
        self.connection.attach()
        self._carry_out(now)

    def lost(self, now: float) -> None:
        """The generation that the session is attached to is over, or cannot be reached."""
        link, stream = self.link, self._stream
        self._detach()
        if link is not None and stream is not None and not stream.broken:
            stream.leave(link, clean=False)
        self._outbound.restart(now)
        self.connection.lost(now)
        self._carry_out(now)

    def refuse(self, code: int, text: str, now: float, retry_after_ms: int = 0) -> None:
        """Close the session."""
        self.connection.refuse(code, text, retry_after_ms)
        self._carry_out(now)

    def due(self, now: float) -> bool:
        """Whether `timer` has something to do."""
        return now >= self._due or self.lane.drained != self.lane.given

    def timer(self, now: float) -> None:
        """Time has passed; to be called a few times a second where it is due."""
        self.connection.timer(now)
        if self._outbound.waiting:
            self.poll(now)
            if self._outbound.stalled(now):
                self.connection.close(CloseCode.LIMIT_EXCEEDED, "nothing was read for 15 s")
        self._carry_out(now)
        self._due = self.connection.due

    @property
    def rank(self) -> tuple[bool, float]:
        """Orders those who wait for a room: first who was in, then who came first."""
        return not self.connection.was_joined, self.opened_at

    @property
    def dropped(self) -> int:
        """Unreliable frames that were dropped."""
        return self._outbound.dropped

    def poll(self, now: float) -> bool:
        """See what has gone out. Whether something waits still."""
        if self._over:
            return False
        backlog = self._backlog()
        for frame in self._outbound.release(backlog):
            self._put(frame)
        self._outbound.drain(backlog, now)
        if self._stream is not None and self._outbound.creditable >= CREDIT_STEP:
            self._stream.drained()
        return self._outbound.waiting

    def send(self, frame: bytes, now: float) -> None:
        """Send a frame of the router's own."""
        if self._over:
            return
        if self.wire.buffered() > HARD_BYTES:
            self.connection.close(CloseCode.LIMIT_EXCEEDED, "the connection does not keep up")
            self._carry_out(now)
            return
        self._put(frame)

    # From the room, by its attachment.

    def deliver(self, frame: bytes, unreliable: bool, now: float) -> None:
        """A frame of the room's that does not go straight through."""
        if self.connection.state is not State.JOINED:
            return
        backlog = self._backlog() if unreliable else Backlog(self._buffered(), 0)
        verdict = self._outbound.offer(frame, unreliable, backlog, now)
        if verdict is Verdict.SEND:
            self._put(frame)
        elif verdict is Verdict.HOLD:
            self._owner.slow(self)
        else:
            self.connection.close(CloseCode.LIMIT_EXCEEDED, "the connection does not keep up")
            self._carry_out(now)

    def joined(self, welcome: Welcome, clock: RoomClock, now: float) -> None:
        """The room took the session in."""
        self.connection.joined(welcome, clock)
        self.lane.live = self.connection.state is State.JOINED
        self._carry_out(now)
        self._owner.joined(self)

    def asleep(self, version: int, now: float) -> None:
        """The room sleeps."""
        route = self.route
        self._detach()
        self._outbound.restart(now)
        self.connection.asleep(version)
        if route is not None:
            self._owner.slept(self, route)
        self._carry_out(now)

    def closed(self, code: int, reason: str, retry_after_ms: int, now: float) -> None:
        """The room wants the client gone."""
        self._detach()
        self.refuse(code, reason, now, retry_after_ms)

    # How it goes on.

    def _carry_out(self, now: float) -> None:
        self._due = now  # whatever happened may have set another deadline
        while outputs := self.connection.take_outputs():
            for output in outputs:
                match output:
                    case Forward():
                        self._forward(output.frame, now)
                    case Send():
                        self.send(output.data, now)
                    case Admit():
                        self._owner.admit(self, output.hello)
                    case Want():
                        self._owner.wants(self)
                    case Join():
                        self._join(output, now)
                    case Leave():
                        self._leave(output.clean)
                    case Close():
                        self.close_code, self.close_reason = output.code, output.reason
                        self.wire.close(output.code, output.reason)
                        self._end()

    def _forward(self, frame: bytes, now: float) -> None:
        if self.link is not None:
            self._pass_on(self.link, frame, now)

    def _pass_on(self, link: Link, frame: bytes, now: float) -> None:
        """Queue a frame, at the cost of who has most in the queue, where it is full."""
        while not link.ended and not link.forward(frame) and self._stream is not None:
            blamed = self._stream.blame(link)
            if blamed is not None:
                self._stream.leave(blamed, clean=False)
                blamed.client.closed(CloseCode.LIMIT_EXCEEDED, "the room host does not keep up", 0, now)

    def _join(self, output: Join, now: float) -> None:
        found = self._owner.stream_for(self)
        hello, identity = self.connection.hello, self.connection.identity
        if found is None or hello is None or identity is None:
            self.connection.lost(now)
            return
        self._stream, self.route = found
        self._outbound.restart(now)
        request = JoinRequest(
            room_uid=self.room_uid, room_type=self.room_type, player=identity.player, meta=identity.meta,
            schema_hash=hello.schema, session=hello.session, attempt=hello.attempt,
            connected_at_ms=self._connected_at_ms, was_joined=output.was_joined, resume=output.resume,
            connection_id=self.connection_id, credit_bytes=CREDIT_BYTES,
        )  # fmt: skip
        self.link = self._stream.join(self, self.route, request)
        gate = self.connection.gate
        gate.queue, gate.link = self._stream.attachment.uplink, self.link.number

    def _leave(self, clean: bool) -> None:
        if self._stream is not None and self.link is not None:
            self._stream.leave(self.link, clean)
        self._detach()

    def _detach(self) -> None:
        self.link = self.route = self._stream = None
        self.connection.gate.queue = None
        self.lane.live = False

    def _put(self, frame: bytes) -> None:
        self.lane.spare -= len(frame) + HEADER_BYTES
        if self.wire.write(frame):
            self.lane.busy = True
            self._owner.slow(self)

    def _waits(self) -> None:
        self._owner.slow(self)

    def _look(self, now: float) -> None:
        """See what has drained."""
        self._outbound.drain(self._backlog(), now)
        if self._outbound.waiting:
            self._owner.slow(self)

    def _buffered(self) -> int:
        buffered = self.wire.buffered()
        self.lane.busy = buffered > 0
        return buffered

    def _backlog(self) -> Backlog:
        unsent = 0
        if self.lane.spare < 0:
            # Else it is less than what matters, whatever has been sent since the kernel was asked.
            unsent = self.wire.unsent()
            self.lane.spare = UNSENT_BYTES - unsent
        return Backlog(self._buffered(), unsent)

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._owner.gone(self)
