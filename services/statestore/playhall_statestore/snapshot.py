"""A room as an object: its row, its base and its log, with a checksum at the end.

    `<cluster>/<slot>/<room_uid>/<generation>-<version>-a<alarm_ms, 0 for none>`

The name says which of a room's objects is the newest, and when its alarm is due, without reading any.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import msgspec

from playhall_common.ids import slot_of
from playhall_statestore.model import End, Item, Mark, Room
from playhall_statestore.volume import DamagedError

__all__ = [
    "ObjectName", "Snapshot", "decode", "encode", "epoch_marker", "epoch_of", "folder_of", "name_of",
    "parse_name", "recovered",
]  # fmt: skip

_MAGIC = b"playhall state 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size
_NAME = re.compile(r".*/(\d+)-(\d+)-a(\d+)")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What an object holds."""

    room: Room
    items: list[Item]


@dataclass(frozen=True, slots=True)
class ObjectName:
    """What a name says."""

    name: str
    at: Mark
    alarm_ms: int | None


def folder_of(cluster: str, uid: str) -> str:
    """Where all objects of a room are."""
    return f"{cluster}/{slot_of(uid)}/{uid}/"


def name_of(cluster: str, room: Room) -> str:
    """The object of what is written for a room now."""
    at = room.saved.at
    return f"{folder_of(cluster, room.uid)}{at.generation}-{at.version}-a{room.alarm_ms or 0}"


def parse_name(name: str) -> ObjectName | None:
    """None: it is no object of a room."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    generation, version, alarm_ms = (int(group) for group in match.groups())
    return ObjectName(name, Mark(generation, version), alarm_ms or None)


def epoch_marker(cluster: str, epoch: int) -> str:
    """Says that an epoch was used; it outlives a database restored from an old backup."""
    return f"{cluster}/epochs/{epoch}"


def epoch_of(marker: str) -> int:
    return int(marker.rpartition("/")[2])


def encode(room: Room, items: list[Item]) -> bytes:
    body = _MAGIC + msgspec.msgpack.encode(Snapshot(room, items))
    return body + hashlib.sha256(body).digest()


def decode(data: bytes, uid: str) -> Snapshot:
    """Raises DamagedError where it is not whole, or another room's."""
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
        raise DamagedError(f"{uid}: the object does not match its checksum")
    try:
        snapshot = msgspec.msgpack.decode(memoryview(body)[len(_MAGIC) :], type=Snapshot)
    except msgspec.DecodeError as error:
        raise DamagedError(f"{uid}: the object cannot be read: {error}") from error
    if snapshot.room.uid != uid:
        raise DamagedError(f"{uid}: the object is another room's")
    return snapshot


def recovered(snapshot: Snapshot) -> Room:
    """The room as it is where only its object is left: whoever held it is gone."""
    room = snapshot.room.copy()
    if room.held:
        room.end, room.ended_ms = End.CRASHED, room.saved.wall_ms
    room.held = False
    room.open_id = ""
    room.stored = None
    room.evicted = True
    return room
