"""The frames of docs/protocol/frames.md, as values. `frames` has them to bytes and back.

-> is what clients send, <- what servers send. A content is what JSON holds, or bytes, or a `Payload` where it
is encoded already; what is decoded is never a Payload.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from playhall.engine.specs import KindSpec

Content: TypeAlias = Any

__all__ = [
    "Ack",
    "Asleep",
    "Call",
    "ClientFrame",
    "Content",
    "Hello",
    "InputEntry",
    "Inputs",
    "Leave",
    "Message",
    "Peers",
    "Ping",
    "Pong",
    "Reply",
    "ReplyError",
    "Reset",
    "Resume",
    "ServerFrame",
    "Unreliable",
    "UpdatePart",
    "Voice",
    "Waking",
    "Welcome",
    "Write",
    "WriteEntry",
]


@dataclass(frozen=True, slots=True)
class Hello:
    """-> The first frame of a connection. An empty `token` is a guest's, an empty `type` the default."""

    version: int
    project: str
    room: str
    type: str
    token: str
    schema: bytes
    session: bytes
    attempt: int
    sdk: str


@dataclass(frozen=True, slots=True)
class Resume:
    """-> What the client holds. `generation` 0: nothing. `full`: send everything, whatever I hold."""

    reset: int
    generation: int
    version: int
    full: bool
    held: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Waking:
    """<- The room is being started; what was sent is held."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """<- The connection is in the room. `token` is a new guest token to keep, or empty."""

    generation: int
    version: int
    tick: int
    fraction: int
    resumed: bool
    asleep: bool
    tick_rate: int
    player: str
    room: str
    type: str
    token: str


@dataclass(frozen=True, slots=True)
class Asleep:
    """<- The room sleeps; the client holds exactly this state."""

    generation: int
    version: int


@dataclass(frozen=True, slots=True)
class Reset:
    """<- The room behind this socket is gone: act as if it had closed with `code`, and answer `resume`."""

    number: int
    code: int


@dataclass(frozen=True, slots=True)
class Leave:
    """-> The player leaves on purpose."""


@dataclass(frozen=True, slots=True)
class Ping:
    """-> Are you there, and what tick is it?"""

    nonce: int


@dataclass(frozen=True, slots=True)
class Pong:
    """<- The answer. `tick` is None where the room has none to tell; `fraction` is in 1/256 of one."""

    nonce: int
    tick: int | None
    fraction: int


@dataclass(frozen=True, slots=True)
class Message:
    """<> A message. `seen` is the tick the client had applied, or None; servers send none."""

    content: Content
    seen: int | None = None


@dataclass(frozen=True, slots=True)
class Unreliable:
    """<> A message that may be lost."""

    content: Content
    seen: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """-> A call, which is answered by one reply of the same number."""

    call: int
    seen: int | None
    name: str
    content: Content


@dataclass(frozen=True, slots=True)
class Reply:
    """<- The answer to a call."""

    call: int
    content: Content


@dataclass(frozen=True, slots=True)
class ReplyError:
    """<- The refusal of a call. 422: by room code."""

    call: int
    code: int
    text: str


@dataclass(frozen=True, slots=True)
class InputEntry:
    """An input for a tick. `lag`: how far before it the view was, in 1/256 of a tick; None is unknown."""

    tick: int
    lag: int | None
    value: Any


@dataclass(frozen=True, slots=True)
class Inputs:
    """-> Inputs from the newest to the oldest; all but the first repeat what may have been lost."""

    entries: tuple[InputEntry, ...]


@dataclass(frozen=True, slots=True)
class Ack:
    """<- The newest input applied or dropped, and how early the last one arrived, in 1/256 of a tick."""

    tick: int
    input: int
    slack: int


@dataclass(frozen=True, slots=True)
class WriteEntry:
    """Stored values, by index of field, of an entity that the client believes to be of that kind."""

    id: int
    number: int
    spec: KindSpec
    values: dict[int, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """-> An owner's writes. `seen`: the version of the newest update the client had applied."""

    seen: int
    entries: tuple[WriteEntry, ...]


@dataclass(frozen=True, slots=True)
class Voice:
    """<- Where to join voice."""

    url: str
    token: str


@dataclass(frozen=True, slots=True)
class Peers:
    """<- Whom the player hears, and who hears the player."""

    hears: tuple[str, ...]
    heard_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdatePart:
    """<- A part of a state update, to be read by an `UpdateReader`, which knows what is held."""

    frame: bytes


ClientFrame: TypeAlias = Hello | Resume | Leave | Ping | Message | Unreliable | Call | Inputs | Write
ServerFrame: TypeAlias = (
    Welcome
    | Waking
    | Asleep
    | Reset
    | Pong
    | Message
    | Unreliable
    | Reply
    | ReplyError
    | Ack
    | Voice
    | Peers
    | UpdatePart
)
