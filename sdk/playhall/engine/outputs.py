"""What goes into a room's state machine, and what comes out of it.

Plain values, all of them: the shell (the room host, or `playhall.testing`) makes the first kind and carries
out the second. Seconds are floats; `mono` never goes back and counts from anywhere, `wall` is seconds since
the epoch.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from playhall.engine.codes import ErrorCode
from playhall.engine.frames import Resume

WakeReason: TypeAlias = Literal["connect", "request", "alarm", "crash", "deploy", "sleep"]


class Now(NamedTuple):
    """The time of a call."""

    mono: float
    wall: float


class Status(enum.Enum):
    """Where a room is in its life. It only ever moves down this list."""

    STARTING = "starting"
    ACTIVE = "active"
    CLOSING = "closing"
    CLOSED = "closed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class RoomIdentity:
    """Which room it is."""

    project: str
    room_id: str
    room_uid: str
    room_type: str = "default"
    join_code: str | None = None


@dataclass(frozen=True, slots=True)
class StoredRoom:
    """A room as the state store has it: the newest base, and the records after it, in order."""

    base: bytes | None
    records: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WakeInfo:
    """Why a room starts, and how long it was away.

    `tick` is the newest tick the state store heard of; a quiet room's may be later than that of its last
    record, and the room goes on from the later of the two.
    """

    reason: WakeReason = "connect"
    elapsed: float = 0.0
    saved_at: float = 0.0
    tick: int = 0


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A connection that wants in.

    `meta` is the token's claim, decoded. `session` and `attempt` order the connections of one client
    object, `connected_at_ms` those of different ones. `was_joined` says that the connection was in the room
    before a failover. `credit_bytes` may be on the way to the client at any time.
    """

    player: str
    meta: Any
    schema_hash: bytes
    session: bytes
    attempt: int
    connected_at_ms: int
    was_joined: bool
    resume: Resume
    connection_id: str
    room_type: str
    credit_bytes: int


@dataclass(frozen=True, slots=True)
class JoinedOut:
    """The link is in: the router's `welcome`. Comes before anything else for the link."""

    link: int
    version: int
    tick: int
    tick_rate: int
    resumed: bool


class FramesOut(Struct, frozen=True, gc=False):
    """The frames of one flush or message: groups as in `packing`, to be sent in order."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CloseOut:
    """Close the link's connection. The room has forgotten the link already."""

    link: int
    code: int
    reason: str
    retry_after_ms: int = 0


class RecordOut(Struct, frozen=True, gc=False):
    """What one flush changed, for the state store. `alarm_ms`: None is unchanged, -1 is none any more."""

    prev: int
    version: int
    tick: int
    data: bytes
    alarm_ms: int | None = None


@dataclass(frozen=True, slots=True)
class BaseOut:
    """All of the room's state, for the state store; it takes the place of all records up to its version."""

    version: int
    tick: int
    data: bytes
    alarm_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AwaitOut:
    """Run the awaitable, then call `settled(token, ...)`.

    The room keeps the deadline: it says CancelOut when it is over.
    """

    token: int
    awaitable: Awaitable[Any]
    timeout_s: float
    hook: str
    """Whose it is."""


@dataclass(frozen=True, slots=True)
class AnswerOut:
    """The answer to a request: JSON; or, with an `error`, its text. Every request that was taken gets one."""

    token: int
    json: bytes = b"null"
    error: ErrorCode | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class CancelOut:
    """Cancel the awaitable of this token; nothing need be settled any more."""

    token: int


@dataclass(frozen=True, slots=True)
class ReadyOut:
    """The room has started: joins may come."""


@dataclass(frozen=True, slots=True)
class HibernateOut:
    """Everything up to `version` is durable: close the generation at the state store, then release it."""

    version: int
    tick: int
    alarm_ms: int = -1
    moved: bool = False
    """With connections, which their routers keep for the next generation."""


@dataclass(frozen=True, slots=True)
class StopOut:
    """The room ended by an error: report a strike, then release the room. Its links are closed already."""

    code: int
    error: str


@dataclass(frozen=True, slots=True)
class LogOut:
    """A line of the room's log: the author's own (event `room.log`), or the engine's about room code."""

    level: Literal["debug", "info", "warning", "error"]
    event: str
    fields: dict[str, Any]
    traceback: str | None = None


Output: TypeAlias = (
    JoinedOut
    | FramesOut
    | CloseOut
    | RecordOut
    | BaseOut
    | AwaitOut
    | AnswerOut
    | CancelOut
    | ReadyOut
    | HibernateOut
    | StopOut
    | LogOut
)
