"""What the state store knows: rooms, what was written for them, and the changes one commit makes.

    Room        one room: its grant, how its last generation ended, where its log stands
    Item        a whole record or base; its bytes are in it, or in chunks of their own when it came in parts
    Change      one thing a commit does to the volume; a batch of them is one transaction

Versions count within a generation, so what is written is ordered by (generation, version): a `Mark`.
"""

from __future__ import annotations

import copy
import enum
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from playhall_statestore.strikes import Strikes

__all__ = [
    "MAX_PART_BYTES", "Change", "Chunk", "DropBeats", "DropChunks", "End", "EvictRoom", "HostBeats", "Item",
    "Mark", "Now", "Outcome", "PutChunk", "PutItem", "Room", "SaveBeats", "SaveCounter", "SaveRoom", "Saved",
    "Status", "StoredObject", "Trim",
]  # fmt: skip

MAX_PART_BYTES = 256 * 1024


class Now(NamedTuple):
    """A moment: `mono` in seconds for timers, `wall_ms` since the epoch for what is written down."""

    mono: float
    wall_ms: int


class Mark(NamedTuple):
    """A place in what was written for a room."""

    generation: int
    version: int


class End(enum.IntEnum):
    """How a generation ended. Numbers of statestore.v1.End; they are stored."""

    NEVER = 1
    HIBERNATED = 2
    CRASHED = 3
    MOVED = 4
    SLEPT = 5
    STOPPED = 6


class Status(enum.IntEnum):
    """What a watching router is told of a room. Numbers of statestore.v1.RoomStatus.Status."""

    NEW = 1
    LIVE = 2
    DEAD = 3
    CLOSED = 4
    ASLEEP = 5


class Outcome(enum.IntEnum):
    """What a host is told of a room. Numbers of statestore.v1.RoomAck.Outcome."""

    DURABLE = 1
    FENCED = 2
    NEED_BASE = 3


class Saved(NamedTuple):
    """The last thing written for a room: where, at which tick of the room, and when."""

    at: Mark
    tick: int
    wall_ms: int


class StoredObject(NamedTuple):
    """A verified object: its name, what it holds, and the SHA-256 of its bytes."""

    name: str
    base: Mark
    at: Mark
    alarm_ms: int | None
    digest: bytes


NOTHING_SAVED = Saved(Mark(0, 0), 0, 0)


class Room(msgspec.Struct):
    """One room. `held` says that `generation` is the current grant; nothing else may be written."""

    uid: str
    project: str
    generation: int = 0
    held: bool = False
    host_id: str = ""
    host_address: str = ""
    open_id: str = ""
    deploy_seq: int = 0
    version: int = 0
    """Last version written in `generation`."""
    saved: Saved = NOTHING_SAVED
    base: Mark | None = None
    end: End = End.NEVER
    """How the last generation that ended, ended."""
    ended_ms: int = 0
    elapsed_ms: int = 0
    """Between that end and the current grant."""
    alarm_ms: int | None = None
    strikes: Strikes = Strikes()
    stored: StoredObject | None = None
    noted: bool = False
    """The registry knows that there is state."""
    evicted: bool = False
    """What was written is in `stored` only."""
    spent_open_ids: tuple[str, ...] = ()
    """Earlier grants, so that a late Open cannot take the room from its own successor. The last few."""

    def copy(self) -> Room:
        """For a batch to change; every field is immutable."""
        return copy.copy(self)

    @property
    def has_state(self) -> bool:
        return self.base is not None


class Item(msgspec.Struct, frozen=True, gc=False):
    """A whole record or base. `parts` counts its chunks; 0: `data` is all of it."""

    at: Mark
    base: bool
    tick: int
    wall_ms: int
    crc32: int
    alarm_ms: int | None
    data: bytes
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an item. Without its item it means nothing, and is swept at the next start."""

    at: Mark
    base: bool
    index: int
    data: bytes


@dataclass(frozen=True, slots=True)
class HostBeats:
    """The last word of a host, and the ticks it named for quiet rooms: uid to (generation, tick)."""

    wall_ms: int
    ticks: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class SaveRoom:
    room: Room


@dataclass(frozen=True, slots=True)
class SaveCounter:
    """No generation up to epoch << 32 | value is given again."""

    value: int


class PutItem(msgspec.Struct, frozen=True, gc=False):
    uid: str
    item: Item


@dataclass(frozen=True, slots=True)
class PutChunk:
    uid: str
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class DropChunks:
    """The parts of an item that will not be finished."""

    uid: str
    at: Mark
    base: bool


@dataclass(frozen=True, slots=True)
class Trim:
    """All up to a base is garbage now, but the base. Swept in slices, after the commit."""

    uid: str
    base: Mark


@dataclass(frozen=True, slots=True)
class EvictRoom:
    """Everything written is garbage: the object has it. Swept like `Trim`."""

    uid: str


@dataclass(frozen=True, slots=True)
class SaveBeats:
    host_id: str
    beats: HostBeats


@dataclass(frozen=True, slots=True)
class DropBeats:
    host_id: str


Change = (
    SaveRoom | SaveCounter | PutItem | PutChunk | DropChunks | Trim | EvictRoom | SaveBeats | DropBeats
)  # fmt: skip
