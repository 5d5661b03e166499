"""One client connection as a state machine.

    AUTH      hello is awaited, or the token is being checked
    RESOLVE   the room is being looked up
    WAIT      nobody runs the room yet, or the owner is not attached
    JOINING   the room was asked in
    JOINED    frames pass both ways
    LOST      the room is gone: `reset` was sent, `resume` is awaited, what comes before it is discarded
    ASLEEP    the room sleeps; the client holds its state, and anything it does wakes the room
    CLOSED    nothing happens any more

Calls in, outputs out; the shell owns the socket and carries outputs out in order. Of what a client sends only
hello, resume, ping and leave are decoded here. The rest is checked for size and rate, and passed on as it
came.

No byte a client can send raises here: it makes progress, is dropped, or closes the connection with a code.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from playhall.engine import frames
from playhall.engine.backend import Gate
from playhall.engine.codes import CloseCode
from playhall.engine.errors import ProtocolError
from playhall.engine.gate import FORWARD, TOO_LONG, TOO_MANY, TOO_MUCH, UNKNOWN
from playhall_router.clock import RoomClock
from playhall_router.limits import CLIENT_FRAMES, HELD_BYTES, HELLO_S, HOLD_S, RULES, SILENCE_S, steady_rate
from playhall_router.tokens import Identity

__all__ = [
    "Admit", "Close", "Connection", "Forward", "Join", "Leave", "Output", "Send", "State", "Want", "Welcome",
    "close_reason",
]  # fmt: skip

NORMAL_CLOSURE = 1000
_MAX_REASON_BYTES = 123
_CONTROL = frozenset({frames.HELLO, frames.PING, frames.RESUME, frames.LEAVE})
_NOTHING_HELD = frames.Resume(reset=0, generation=0, version=0, full=False, held=())


class State(enum.Enum):
    """See the module's text."""

    AUTH = enum.auto()
    RESOLVE = enum.auto()
    WAIT = enum.auto()
    JOINING = enum.auto()
    JOINED = enum.auto()
    LOST = enum.auto()
    ASLEEP = enum.auto()
    CLOSED = enum.auto()


@dataclass(slots=True)
class Send:
    """Send this frame."""

    data: bytes


@dataclass(slots=True)
class Close:
    """Close the transport. The connection is CLOSED already."""

    code: int
    reason: str


@dataclass(slots=True)
class Admit:
    """Check the token, find the room; answer with `authenticated` and `resolved`, or `refuse`."""

    hello: frames.Hello


@dataclass(slots=True)
class Want:
    """The connection waits for its room; answer with `attach`, or `refuse`."""


@dataclass(slots=True)
class Join:
    """Ask the room in; answer with `joined` or `lost`. `resume` is the body of the client's resume frame."""

    resume: bytes
    was_joined: bool


@dataclass(slots=True)
class Forward:
    """Pass this frame on to the room."""

    frame: bytes


@dataclass(slots=True)
class Leave:
    """Tell the room that the connection is gone."""

    clean: bool


Output = Send | Close | Admit | Want | Join | Forward | Leave


@dataclass(frozen=True, slots=True)
class Welcome:
    """What the room host says of a connection that it took in."""

    generation: int
    version: int
    tick: int
    fraction: int
    tick_rate: int
    resumed: bool


class Connection:
    """See the module's text. Times are monotonic seconds."""

    def __init__(self, now: float) -> None:
        self.gate = Gate(RULES, steady_rate(0), now)
        self.hello: frames.Hello | None = None
        self.identity: Identity | None = None
        self.was_joined = False
        self.joined_once = False
        self._room_type = ""
        self._generation = 0
        self._clock: RoomClock | None = None
        self._resume: bytes | None = None
        self._resets = 0
        self._awaits_resume = True
        self._said_waking = False
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._answer_by: float | None = now + HELLO_S
        self._hold_until: float | None = None
        self._outputs: list[Output] = []
        self._state = State.AUTH

    @property
    def state(self) -> State:
        """Where the connection is in its life."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        self.gate.open = state is State.JOINED

    def take_outputs(self) -> list[Output]:
        """What is to be done, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    # From the client.

    def received(self, frame: bytes, now: float) -> None:
        """The client sent a frame."""
        self.judged(self.gate.judge(frame, now), frame, now)

    def judged(self, verdict: int, frame: bytes, now: float) -> None:
        """The client sent a frame, of which the gate says this."""
        if self.state is State.CLOSED:
            return
        if verdict == UNKNOWN:
            self.close(CloseCode.PROTOCOL, "no client sends such a frame")
        elif verdict == TOO_LONG:
            limit = CLIENT_FRAMES[frame[0]]
            self.close(CloseCode.LIMIT_EXCEEDED, f"a frame of type {frame[0]} has at most {limit} bytes")
        elif verdict == TOO_MANY:
            self.close(CloseCode.LIMIT_EXCEEDED, "too many frames a second")
        elif verdict == TOO_MUCH:
            self.close(CloseCode.LIMIT_EXCEEDED, "too many bytes a second")
        elif verdict == FORWARD:
            self._outputs.append(Forward(frame))
        else:
            self._control(frame[0], frame, now)

    def oversized(self) -> None:
        """The client began a frame that is larger than any may be."""
        self.close(CloseCode.LIMIT_EXCEEDED, "the frame is too large")

    def malformed(self, text: str) -> None:
        """The client sent what is no frame."""
        self.close(CloseCode.PROTOCOL, text)

    def disconnected(self) -> None:
        """The transport is gone."""
        self._leave_room(clean=False)
        self.state = State.CLOSED

    @property
    def due(self) -> float:
        """When `timer` has something to do, if nothing else happens before."""
        deadlines = (self._answer_by, self._hold_until, self.gate.heard_at + SILENCE_S)
        return min(deadline for deadline in deadlines if deadline is not None)

    def timer(self, now: float) -> None:
        """Time has passed; call it when it is due, or more often."""
        if self.state is State.CLOSED:
            return
        if self._answer_by is not None and now >= self._answer_by:
            self.close(CloseCode.PROTOCOL, f"hello and resume did not come within {HELLO_S:g} s")
        elif self._hold_until is not None and now >= self._hold_until:
            code = CloseCode.ROOM_MOVED if self.was_joined else CloseCode.WAKE_TIMEOUT
            self.close(code, f"the room did not answer within {HOLD_S:g} s")
        elif now >= self.gate.heard_at + SILENCE_S:
            self.close(CloseCode.LIMIT_EXCEEDED, f"nothing came for {SILENCE_S:g} s")

    # From the router.

    def authenticated(self, identity: Identity) -> None:
        """The token is good."""
        if self.state is State.AUTH:
            self.identity = identity
            self.state = State.RESOLVE

    def resolved(self, room_type: str, now: float) -> None:
        """The room is known."""
        if self.state is State.RESOLVE:
            self._room_type = room_type
            self._wait(now)

    def refuse(self, code: int, text: str, retry_after_ms: int = 0) -> None:
        """The connection cannot come in, or cannot stay."""
        self.close(code, text, retry_after_ms)

    def waking(self) -> None:
        """The room is being started."""
        if self.state in (State.WAIT, State.LOST) and not self._said_waking:
            self._said_waking = True
            self._outputs.append(Send(frames.encode_server(frames.Waking())))

    def attach(self) -> None:
        """The room's owner is attached; a connection that is ready asks it in."""
        if self.state is State.WAIT and self._resume is not None:
            self.state = State.JOINING
            self._outputs.append(Join(self._resume, self.was_joined))

    def joined(self, welcome: Welcome, clock: RoomClock) -> None:
        """The room took the connection in."""
        hello, identity = self.hello, self.identity
        if self.state is not State.JOINING or hello is None or identity is None:
            return
        self.state = State.JOINED
        self._generation = welcome.generation
        self._clock = clock
        self._hold_until = None
        self._resume = None
        self._said_waking = False
        self.gate.change_steady(steady_rate(welcome.tick_rate))
        token = "" if self.joined_once else identity.guest_token
        self.was_joined = self.joined_once = True
        said = frames.Welcome(
            generation=welcome.generation,
            version=welcome.version,
            tick=welcome.tick,
            fraction=welcome.fraction,
            resumed=welcome.resumed,
            asleep=False,
            tick_rate=welcome.tick_rate,
            player=identity.player,
            room=hello.room,
            type=self._room_type,
            token=token,
        )
        self._outputs.append(Send(frames.encode_server(said)))
        held, self._held, self._held_bytes = self._held, [], 0
        self._outputs += [Forward(frame) for frame in held]

    def lost(self, now: float) -> None:
        """The room the connection was attached to is gone."""
        if self.state is State.JOINING:
            # The client knows nothing of it: its resume is as good at the next owner.
            self._wait(now)
        elif self.state is State.JOINED:
            self.state = State.LOST
            self._clock = None
            self._resets += 1
            self._awaits_resume = True
            self._hold_until = now + HOLD_S
            self._outputs.append(Send(frames.encode_server(frames.Reset(self._resets, CloseCode.ROOM_MOVED))))
            self._outputs.append(Want())

    def asleep(self, version: int) -> None:
        """The room sleeps at this version, which the client holds."""
        if self.state is State.JOINED:
            self.state = State.ASLEEP
            self._clock = None
            self._outputs.append(Send(frames.encode_server(frames.Asleep(self._generation, version))))

    def close(self, code: int, text: str, retry_after_ms: int = 0) -> None:
        """Close the connection; the room is told."""
        if self.state is State.CLOSED:
            return
        self._leave_room(clean=False)
        self.state = State.CLOSED
        self._held.clear()
        self._outputs.append(Close(code, close_reason(text, retry_after_ms)))

    # How it goes on.

    def _control(self, kind: int, frame: bytes, now: float) -> None:
        if (self.hello is None) != (kind == frames.HELLO):
            self.close(CloseCode.PROTOCOL, "hello is the first frame, and only the first")
            return
        if kind not in _CONTROL:
            self._early(frame, now)
            return
        try:
            decoded = frames.decode_client(frame)
        except ProtocolError as error:
            self.close(CloseCode.PROTOCOL, str(error))
            return
        match decoded:
            case frames.Hello():
                self.hello = decoded
                self._hold_until = now + HOLD_S
                self._outputs.append(Admit(decoded))
            case frames.Ping():
                self._pong(decoded.nonce, now)
            case frames.Resume():
                self._resumed(decoded.reset, frame[1:], now)
            case frames.Leave():
                self._leave_room(clean=True)
                self.state = State.CLOSED
                self._outputs.append(Close(NORMAL_CLOSURE, ""))

    def _early(self, frame: bytes, now: float) -> None:
        """A frame for a room that the connection is not in."""
        if self.state is State.LOST:
            return
        if self.state is State.ASLEEP:
            self._resume = frames.encode_client(_NOTHING_HELD)[1:]
            self._wait(now)
        elif not self._held:
            self.close(CloseCode.PROTOCOL, "nothing but ping, resume and leave may come before welcome")
            return
        self._held.append(frame)
        self._held_bytes += len(frame)
        if self._held_bytes > HELD_BYTES:
            self.close(CloseCode.LIMIT_EXCEEDED, "too much was sent while the room wakes")

    def _resumed(self, reset: int, body: bytes, now: float) -> None:
        if reset < self._resets:
            return
        if reset > self._resets or not self._awaits_resume:
            self.close(CloseCode.PROTOCOL, "resume comes once after hello, and once after each reset")
            return
        self._awaits_resume = False
        self._answer_by = None
        self._resume = body
        if self.state is State.LOST:
            self._wait(now)
        elif self.state is State.WAIT:
            self._outputs.append(Want())

    def _wait(self, now: float) -> None:
        self.state = State.WAIT
        if self._hold_until is None:
            self._hold_until = now + HOLD_S
        self._outputs.append(Want())

    def _pong(self, nonce: int, now: float) -> None:
        tick, fraction = (None, 0) if self._clock is None else self._clock.read(now)
        self._outputs.append(Send(frames.encode_server(frames.Pong(nonce, tick, fraction))))

    def _leave_room(self, *, clean: bool) -> None:
        if self.state in (State.JOINING, State.JOINED):
            self._outputs.append(Leave(clean))


def close_reason(text: str, retry_after_ms: int = 0) -> str:
    """The reason of a close, at most 123 bytes: when to come back, then text for people."""
    prefix = f"retry-after={retry_after_ms};" if retry_after_ms > 0 else ""
    room = _MAX_REASON_BYTES - len(prefix)
    return prefix + text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
