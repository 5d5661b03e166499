"""The client's side of the protocol, as a state machine without I/O (docs/protocol/flow.md).

Calls, frames and times go in; orders to a transport, events and the next deadline come out. A shell
opens transports and moves frames; it decides nothing. After each call it takes the outputs and carries
them out in order.

    start --> OPENING --opened--> JOINING --welcome--> SYNCING --update--> OPEN
                 ^                  ^  |                  |                  |
                 |                  |  +---- closed ------+------------------+--> WAITING (backoff), or CLOSED
                 +----- timer ------|--------------------------------------------------+
                                    +------ reset, on the socket there is, from any of the last three

What the client holds (generation, version, entities) outlives connections: it is replaced when the state
of another generation is in, never before. So a connection that breaks in the middle of anything costs
nothing but time.

One state machine, and so one long file: what each call may find is easiest to see with the others beside it.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from playhall.client.backoff import Backoff, reconnect_rule, split_reason
from playhall.client.clock import TickClock
from playhall.client.outputs import (
    CallAnswered,
    CallFailed,
    Closed,
    CloseTransport,
    Disconnected,
    FellAsleep,
    Joined,
    MessageReceived,
    OpenTransport,
    Output,
    Restored,
    SendFrame,
    Updated,
    Waking,
    Woke,
)
from playhall.client.replica import Replica
from playhall.engine import frames
from playhall.engine.codes import CloseCode, Reconnect
from playhall.engine.connection import JsonOut
from playhall.engine.errors import PlayhallError, ProtocolError
from playhall.engine.schema import PresenceRow, Schema
from playhall.engine.updates import UpdateReader

__all__ = ["ABNORMAL", "ClientCore", "Stats", "Status"]

Status = Literal["connecting", "open", "reconnecting", "closed"]

#: The code of a connection that ended without saying why, or could not be made.
ABNORMAL = 1006
NORMAL = 1000
GOING_AWAY = 1001

PING_S = 2.0
SILENCE_S = 15.0
# A welcome, and then each part of the state, must come within this; the server's own limits are well below.
PROGRESS_S = 30.0
MAX_REASON = 123
# Frames of writes that a client which leaves sends at once, of the bucket that routers keep for it.
LAST_WRITES = 16
LAST_CALL = 2**32 - 1


class _Phase(enum.Enum):
    IDLE = enum.auto()
    OPENING = enum.auto()
    JOINING = enum.auto()
    SYNCING = enum.auto()
    OPEN = enum.auto()
    WAITING = enum.auto()
    CLOSED = enum.auto()


_CONNECTED = (_Phase.JOINING, _Phase.SYNCING, _Phase.OPEN)


@dataclass(slots=True)
class Stats:
    """Bytes of frames, by what the frames are."""

    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)


class ClientCore:
    """One client of one room. `session` is 16 random bytes; `rng` returns numbers from 0 up to 1."""

    def __init__(
        self,
        schema: Schema[Any, Any],
        *,
        project: str,
        room: str,
        type: str | None,
        token: str | None,
        session: bytes,
        sdk: str,
        rng: Callable[[], float],
        timeout: float = 30.0,
    ) -> None:
        self.schema = schema
        self._project = project
        self._session = session
        self._sdk = sdk
        self._timeout = timeout
        self._token = token
        self._phase = _Phase.IDLE
        self._outputs: list[Output] = []
        self._backoff = Backoff(rng)
        self._clock = TickClock()
        self._reader = UpdateReader(schema.kinds)
        self._last_error = PlayhallError(ABNORMAL, "there was no answer")

        # Of the connection at hand.
        self._attempt = 0
        self._reset = 0
        self._welcome: frames.Welcome | None = None
        self._pings: dict[int, float] = {}
        self._nonce = 0
        # Numbers of calls, and when those without an answer are given up.
        self._next_call = 0
        self._calls: dict[int, float] = {}

        # When the player's writes were sent last.
        self._wrote_at = 0.0

        # What is held.
        self._version = 0

        # Deadlines; None: does not apply.
        self._give_up_at: float | None = None
        self._retry_at: float | None = None
        self._ping_at: float | None = None
        self._silent_at: float | None = None
        self._progress_at: float | None = None

        self.replica = Replica(schema)
        self.stats = Stats()
        self.status: Status = "connecting"
        self.asleep = False
        self.generation = 0
        self.tick = 0
        self.tick_rate = 0
        self.player = ""
        self.room = room
        self.type = type or ""
        self.guest_token: str | None = None
        frames.encode_client(self._hello())  # raises ValueError now, not later, where a name is too long

    # Calls

    def start(self, now: float) -> None:
        """Begin to connect."""
        assert self._phase is _Phase.IDLE, "a client starts once"
        self._give_up_at = now + self._timeout
        self._open()

    def opened(self, now: float) -> None:
        """The transport that OpenTransport asked for is there."""
        if self._phase is not _Phase.OPENING:
            return
        self._reset, self._pings = 0, {}
        self._next_call = 0
        self._send(self._hello())
        self._attempt += 1
        self._join(now)
        self._ping(now)
        self._silent_at = now + SILENCE_S

    def received(self, data: bytes, now: float) -> None:
        """A frame came on the open transport."""
        if self._phase not in _CONNECTED:
            return
        self._silent_at = now + SILENCE_S
        try:
            frame = frames.decode_server(data)
            if frame is not None:
                name = "reply" if isinstance(frame, frames.ReplyError) else type(frame).__name__.lower()
                self.stats.received[name] += len(data)
                self._receive(frame, now)
        except ProtocolError as error:
            self.refuse(str(error))

    def refuse(self, problem: str) -> None:
        """The other side broke the protocol: close 4000, report it, and stop."""
        if self._phase in _CONNECTED:
            reason = problem.encode()[:MAX_REASON].decode(errors="ignore")
            self._outputs.append(CloseTransport(CloseCode.PROTOCOL, reason))
            self._finish(PlayhallError(CloseCode.PROTOCOL, problem))

    def closed(self, code: int, reason: str, now: float) -> None:
        """The transport was closed, or could not be opened (1006)."""
        if self._phase in _CONNECTED or self._phase is _Phase.OPENING:
            self._lost(code, reason, now)

    def timer(self, now: float, *, clogged: bool = False) -> None:
        """The time of `next_timer` has come. `clogged`: the transport does not take what was sent before."""
        if _is_due(self._writes_due, now):
            self._wrote_at = now
            if not clogged:  # else what is unsent goes on to be replaced by what is newer
                self._send_writes()
        if _is_due(self._give_up_at, now):
            if self._phase is not _Phase.WAITING:
                self._outputs.append(CloseTransport(NORMAL, ""))
            self._finish(self._last_error)
        elif _is_due(self._retry_at, now):
            self._retry_at = None
            self._open()
        elif _is_due(self._silent_at, now):
            self._drop("nothing was heard for 15 s", now)
        elif _is_due(self._progress_at, now):
            self._drop("no state came for 30 s", now)
        elif _is_due(self._ping_at, now):
            self._ping(now)
        for call in [call for call, at in self._calls.items() if at <= now]:
            self._end_call(CallFailed(call, PlayhallError(0, "the call was not answered in time")))

    def next_timer(self) -> float | None:
        """When `timer` is to be called; None: not at all, for now."""
        deadlines = (
            self._give_up_at,
            self._retry_at,
            self._ping_at,
            self._silent_at,
            self._progress_at,
            self._writes_due,
            *self._calls.values(),
        )
        return min((at for at in deadlines if at is not None), default=None)

    def send(self, content: JsonOut | bytes, *, unreliable: bool = False) -> bool:
        """Send a message. Returns False where it was dropped, because the client is coming back.

        Raises PlayhallError before the first state is in and once the client is closed, ValueError or
        TypeError for what is not JSON or over 64 KB. While the client is coming back it is dropped, as
        one that was on the way when the connection broke would be.
        """
        if self.status in ("connecting", "closed"):
            raise PlayhallError(0, f"the client is {self.status}, and cannot send")
        seen = self._seen()
        frame = frames.Unreliable(content, seen) if unreliable else frames.Message(content, seen)
        data = frames.encode_client(frame)
        if self.status != "open":
            return False
        self._send_data(frame, data, unreliable)
        return True

    def call(self, name: str, content: frames.Content, now: float, timeout: float) -> int:
        """Make a call, and return its number. Ends in one CallAnswered or CallFailed, or in `forget_call`.

        While the client is coming back it fails at once. Raises as `send` does.
        """
        if self.status in ("connecting", "closed"):
            raise PlayhallError(0, f"the client is {self.status}, and cannot call")
        number = self._next_call
        if number > LAST_CALL:
            raise PlayhallError(0, "the connection has no numbers for calls left")
        frame = frames.Call(number, self._seen(), name, content)
        data = frames.encode_client(frame)
        self._next_call += 1
        self._calls[number] = now + timeout
        if self.status == "open":
            self._send_data(frame, data, False)
        else:
            self._fail_calls("the client is coming back, and cannot call")
        return number

    def _seen(self) -> int | None:
        """The tick a frame says the client had applied."""
        return self.tick if self._phase is _Phase.OPEN else None

    def forget_call(self, call: int) -> None:
        """Nobody wants to hear how a call ended. The room may run it all the same."""
        self._calls.pop(call, None)

    def leave(self) -> None:
        """Leave the room for good; what is unsent of the player's writes goes first."""
        if self._phase in _CONNECTED:
            for _ in range(LAST_WRITES):
                self._send_writes()
            self._send(frames.Leave())
        if self._phase in _CONNECTED or self._phase is _Phase.OPENING:
            self._outputs.append(CloseTransport(NORMAL, ""))
        self._end()

    def set_status(self, status: object) -> PresenceRow:
        """Set the player's status, and return its row. Raises TypeError, or ValueError where it is over 1 KB.

        Raises PlayhallError before the first state is in, and once the client is closed.
        """
        row = self.replica.presence_of(self.player)
        if row is None or self.status == "closed":
            raise PlayhallError(0, f"the client is {self.status}: the player is not in the room")
        self.replica.writes.set_status(row, status)
        return row

    def server_tick(self, now: float) -> float:
        """Return the room's tick as far as is known, with its fraction; a sleeping room's stands still."""
        return float(self.tick) if self.asleep or not self.tick_rate else self._clock.tick(now)

    @property
    def rtt_s(self) -> float:
        """The last round trip, in seconds."""
        return self._clock.rtt_s

    def take_outputs(self) -> list[Output]:
        """Return what there is to do, in order, and forget it."""
        outputs, self._outputs = self._outputs, []
        return outputs

    # Connecting, and coming back

    def _open(self) -> None:
        self._phase = _Phase.OPENING
        self._outputs.append(OpenTransport())

    def _hello(self) -> frames.Hello:
        return frames.Hello(
            version=frames.VERSION,
            project=self._project,
            room=self.room,
            type=self.type,
            token=self._token or "",
            schema=self.schema.hash,
            session=self._session,
            attempt=self._attempt,
            sdk=self._sdk,
        )

    def _join(self, now: float) -> None:
        """Say what is held, and wait for a welcome."""
        self._phase = _Phase.JOINING
        self._welcome = None
        self._progress_at = now + PROGRESS_S
        self._send(frames.resume_of(self._reset, self.generation, self._version, self.replica.ids()))

    def _lost(self, code: int, reason: str, now: float) -> None:
        """The connection has ended: come back, or report that it is over."""
        rule, (retry_after_s, text) = reconnect_rule(code), split_reason(reason)
        error = PlayhallError(code, text or _help(code))
        if rule is Reconnect.NEVER:
            self._finish(error)
            return
        self._last_error = error
        self._report_lost(code)
        self._phase = _Phase.WAITING
        self._ping_at = self._silent_at = self._progress_at = None
        self._retry_at = now + self._backoff.wait(rule, retry_after_s, now)

    def _drop(self, why: str, now: float) -> None:
        """Give up on a transport that is of no use any more."""
        self._outputs.append(CloseTransport(GOING_AWAY, why))
        self._lost(ABNORMAL, why, now)

    def _report_lost(self, code: int) -> None:
        self.asleep = False
        self.replica.writes.lose()
        self._fail_calls("the connection was lost before the call was answered")
        if self.status == "open":
            self.status = "reconnecting"
            self._outputs.append(Disconnected(code))

    def _finish(self, error: PlayhallError) -> None:
        self._end()
        self._outputs.append(Closed(error))

    def _fail_calls(self, why: str) -> None:
        """No answer will come to the calls that have none."""
        for call in list(self._calls):
            self._end_call(CallFailed(call, PlayhallError(0, why)))

    def _end_call(self, end: CallAnswered | CallFailed) -> None:
        """A call has ended; one that was given up or forgotten before is over already."""
        if self._calls.pop(end.call, None) is not None:
            self._outputs.append(end)

    def _end(self) -> None:
        self._fail_calls("the client was closed before the call was answered")
        self._phase = _Phase.CLOSED
        self.replica.writes.end()
        self.status = "closed"
        self.asleep = False
        self._give_up_at = self._retry_at = self._ping_at = self._silent_at = self._progress_at = None

    # Frames

    def _receive(self, frame: frames.ServerFrame, now: float) -> None:
        match frame:
            case frames.UpdatePart():
                self._receive_part(frame.frame, now)
            case frames.Message():
                self._expect_welcome("a message")
                self._outputs.append(MessageReceived(frame.content))
            case frames.Unreliable():
                if self._phase is not _Phase.JOINING:  # on a datagram it may come late, from before a reset
                    self._outputs.append(MessageReceived(frame.content))
            case frames.Pong():
                self._receive_pong(frame, now)
            case frames.Welcome():
                self._receive_welcome(frame, now)
            case frames.Waking():
                self._outputs.append(Waking())
            case frames.Reset():
                self._receive_reset(frame, now)
            case frames.Asleep():
                self._receive_asleep(frame)
            case frames.Reply(call, content):
                self._expect_welcome("a reply")
                self._end_call(CallAnswered(call, content))
            case frames.ReplyError(call, code, text):
                self._expect_welcome("a reply")
                self._end_call(CallFailed(call, PlayhallError(code, text)))
            case frames.Ack() | frames.Voice() | frames.Peers():
                pass  # answers to what this client does not ask yet

    def _expect_welcome(self, what: str) -> None:
        if self._welcome is None:
            raise ProtocolError(f"{what} before a welcome")

    def _receive_welcome(self, welcome: frames.Welcome, now: float) -> None:
        if self._phase is not _Phase.JOINING and not self.asleep:
            raise ProtocolError("a welcome that nothing asked for")
        same = welcome.generation == self.generation
        if (welcome.resumed or welcome.asleep) and not same:
            raise ProtocolError("a welcome that goes on from what is not held")
        if welcome.tick_rate == 0:
            raise ProtocolError("a room without ticks")
        if not same or not self.tick_rate:
            self._clock.start(welcome.tick + welcome.fraction / 256, welcome.tick_rate, now)
        self._welcome = welcome
        self.tick_rate = welcome.tick_rate
        self.player, self.room, self.type = welcome.player, welcome.room, welcome.type
        if welcome.token:
            self._token = self.guest_token = welcome.token
        self._reader.welcome(welcome.version, welcome.tick, resumed=welcome.resumed)
        if welcome.asleep and self.status == "reconnecting":
            self.asleep = True
            self._opened()
        elif not welcome.asleep:
            self.asleep = False
            self.replica.writes.lose()
            self._phase = _Phase.SYNCING
            self._progress_at = now + PROGRESS_S

    def _receive_part(self, data: bytes, now: float) -> None:
        self._expect_welcome("an update")
        assert self._welcome is not None
        if self._phase is _Phase.SYNCING:
            self._progress_at = now + PROGRESS_S
        update = self._reader.part(data)
        if update is None:
            return
        if self._phase is _Phase.SYNCING:
            whole = update.full or self._welcome.resumed or not len(self.replica)
            if not whole:
                raise ProtocolError("a part of a state of which nothing is held")
        changes = self.replica.apply(update, self.player)
        self.generation, self._version, self.tick = self._welcome.generation, update.version, update.tick
        self._outputs.append(Updated(update.tick, changes))
        if self._phase is _Phase.SYNCING:
            self._backoff.connected(now)
            self._opened()

    def _opened(self) -> None:
        """The state is the room's."""
        self._phase = _Phase.OPEN
        self.replica.writes.begin(self.player)
        self._progress_at = self._give_up_at = None
        was, self.status = self.status, "open"
        if was == "connecting":
            self._outputs.append(Joined())
        elif was == "reconnecting":
            self._outputs.append(Restored())
        else:
            self._outputs.append(Woke())

    def _receive_reset(self, reset: frames.Reset, now: float) -> None:
        """The room is gone and the socket is not: all as if it were, but for the wait."""
        if reset.number <= self._reset:
            raise ProtocolError(f"reset {reset.number} after {self._reset}")
        if reconnect_rule(reset.code) is Reconnect.NEVER:
            self._outputs.append(CloseTransport(NORMAL, ""))
            self._finish(PlayhallError(reset.code, _help(reset.code)))
            return
        self._report_lost(reset.code)
        self._reset = reset.number
        self._join(now)

    def _receive_asleep(self, asleep: frames.Asleep) -> None:
        self._expect_welcome("a sleep")
        if (asleep.generation, asleep.version) != (self.generation, self._version):
            raise ProtocolError("a sleep at a state that is not held")
        if not self.asleep:
            self.asleep = True
            self._outputs.append(FellAsleep())

    # The clock

    def _ping(self, now: float) -> None:
        self._nonce = (self._nonce + 1) % 2**32
        # Pongs that are not here by the time the connection would be given up will not come.
        self._pings = {nonce: at for nonce, at in self._pings.items() if now - at < SILENCE_S}
        self._pings[self._nonce] = now
        self._send(frames.Ping(self._nonce))
        self._ping_at = now + PING_S

    def _receive_pong(self, pong: frames.Pong, now: float) -> None:
        sent_at = self._pings.pop(pong.nonce, None)
        if sent_at is not None:
            # A tick before the welcome may be another generation's.
            known = pong.tick is not None and self._welcome is not None
            self._clock.pong((pong.tick or 0) + pong.fraction / 256 if known else None, sent_at, now)

    # Sending

    @property
    def _writes_due(self) -> float | None:
        """When the player's writes may be sent: once a tick."""
        return self._wrote_at + 1 / self.tick_rate if self.replica.writes else None

    def _send_writes(self) -> None:
        frame = self.replica.writes.take(self._version)
        if frame is not None:
            self._send(frame)

    def _send(self, frame: frames.ClientFrame) -> None:
        self._send_data(frame, frames.encode_client(frame), False)

    def _send_data(self, frame: frames.ClientFrame, data: bytes, unreliable: bool) -> None:
        self.stats.sent[type(frame).__name__.lower()] += len(data)
        self._outputs.append(SendFrame(data, unreliable))


def _is_due(at: float | None, now: float) -> bool:
    return at is not None and at <= now


def _help(code: int) -> str:
    try:
        return CloseCode(code).help
    except ValueError:
        return f"the connection was closed with {code}"
