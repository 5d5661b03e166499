"""What goes into the shard's core and what comes out of it.

Requests are applied one after the other, in the order they were queued; what they change and what they say
leaves only after the commit they are part of. `token`, `stream` and `watcher` are numbers of the shell's,
each used once.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from playhall.engine.codes import ErrorCode
from playhall_statestore.model import Chunk, End, Item, Mark, Outcome, Room, Status, StoredObject

__all__ = [
    "AbandonGrant", "Ack", "Acks", "AlreadyOpen", "Answer", "Backoff", "CloseRoom", "Closed", "Done",
    "EndStream", "Evict", "ExpireHolder", "Granted", "Hello", "News", "NoteObject", "NoteState", "OpenRoom",
    "Output", "Part", "Parts", "Recover", "Refused", "Reply", "Request", "RestorePiece", "Restored",
    "RoomNews", "StreamClosed", "StrikeRoom", "Struck", "Ticks",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenRoom:
    """A host asks to be the writer. Replies Granted, AlreadyOpen, Backoff or Refused."""

    token: int
    project: str
    uid: str
    host_id: str
    host_address: str
    open_id: str
    deploy_seq: int
    has_state: bool


@dataclass(frozen=True, slots=True)
class CloseRoom:
    """A host ends its generation. Replies Closed or Refused."""

    token: int
    project: str
    uid: str
    generation: int
    version: int
    tick: int
    kind: End
    alarm_ms: int | None
    host_id: str


@dataclass(frozen=True, slots=True)
class StrikeRoom:
    """Room code failed in this generation. Replies Struck or Refused."""

    token: int
    project: str
    uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class Hello:
    """A Write stream begins. `project` is what its token binds it to; None: a trusted caller."""

    stream: int
    host_id: str
    project: str | None
    rooms: tuple[tuple[str, int], ...]
    """(uid, generation) of what the host believes it holds."""


class Part(msgspec.Struct, frozen=True, gc=False):
    """A record or a base, or a piece of one. See RecordPart of the proto."""

    stream: int
    uid: str
    generation: int
    prev: int
    version: int
    tick: int
    data: bytes
    last: bool
    base: bool
    alarm_ms: int | None
    """None: unchanged; -1: cleared."""
    crc32: int


class Parts(msgspec.Struct, frozen=True, gc=False):
    """What came together on a stream, in order."""

    stream: int
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class Ticks:
    """Ticks of quiet rooms: (uid, generation, tick)."""

    stream: int
    rooms: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class StreamClosed:
    """Nothing more comes from a stream. What it queued before stays good."""

    stream: int


@dataclass(frozen=True, slots=True)
class ExpireHolder:
    """The core's own: a holder was silent for so long that its generation is closed as a crash."""

    uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class AbandonGrant:
    """The state behind a grant could not be read; the grant must not stay in the way."""

    uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class NoteObject:
    """An object was uploaded and verified. Replies Done."""

    token: int
    uid: str
    stored: StoredObject


@dataclass(frozen=True, slots=True)
class NoteState:
    """The registry was told that the room has state."""

    uid: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Local rows of a room may go, if this object has them and nobody holds the room. Replies Done."""

    token: int
    uid: str
    name: str


@dataclass(frozen=True, slots=True)
class Recover:
    """A room that this volume does not know, from its object. Replies Done."""

    token: int
    room: Room


@dataclass(frozen=True, slots=True)
class RestorePiece:
    """A piece of an evicted room's object, on its way back to the volume. Replies Done."""

    token: int
    uid: str
    piece: Item | Chunk


@dataclass(frozen=True, slots=True)
class Restored:
    """All pieces of the object are back. Replies Done."""

    token: int
    uid: str
    name: str


Request = (
    OpenRoom | CloseRoom | StrikeRoom | Hello | Part | Parts | Ticks | StreamClosed | ExpireHolder
    | AbandonGrant | NoteObject | NoteState | Evict | Recover | RestorePiece | Restored
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Granted:
    """The caller is the writer. See Granted of the proto."""

    generation: int
    version: int
    tick: int
    saved_at_ms: int
    elapsed_ms: int
    prior_end: End
    alarm_ms: int | None
    base: Mark | None
    """The state is this base and what was written after it, up to `upto`; None: there is none."""
    upto: Mark


@dataclass(frozen=True, slots=True)
class AlreadyOpen:
    generation: int
    host_id: str
    host_address: str


@dataclass(frozen=True, slots=True)
class Backoff:
    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class Closed:
    pass


@dataclass(frozen=True, slots=True)
class Struck:
    strikes: int


@dataclass(frozen=True, slots=True)
class Done:
    """Whether it was still wanted."""

    applied: bool


@dataclass(frozen=True, slots=True)
class Refused:
    code: ErrorCode
    message: str = ""


Answer = Granted | AlreadyOpen | Backoff | Closed | Struck | Done | Refused


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to the request with this token."""

    token: int
    answer: Answer


class Ack(msgspec.Struct, frozen=True, gc=False):
    """Where a room stands, for its host."""

    uid: str
    generation: int
    outcome: Outcome
    version: int = 0


@dataclass(frozen=True, slots=True)
class Acks:
    stream: int
    acks: tuple[Ack, ...]
    hello: bool = False


@dataclass(frozen=True, slots=True)
class EndStream:
    """Break a Write stream with this error."""

    stream: int
    error: Refused


@dataclass(frozen=True, slots=True)
class RoomNews:
    """Who owns a room, for routers."""

    uid: str
    status: Status
    generation: int = 0
    host_id: str = ""
    host_address: str = ""
    version: int = 0
    deploy_seq: int = 0


@dataclass(frozen=True, slots=True)
class News:
    watcher: int
    room: RoomNews


Output = Reply | Acks | EndStream | News
