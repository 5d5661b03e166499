"""What may be written: Hello, records and bases in parts, ticks of quiet rooms.

A record is taken once and in order (A2): `prev` names the record before it, what was taken before is
acknowledged again, a gap is answered NEED_BASE. Pieces go to the volume as they come, because a base may be
larger than all that may wait in memory; they count only with the item, which is written with the last piece.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from playhall.engine.codes import ErrorCode
from playhall_statestore.batch import Batch
from playhall_statestore.grants import is_current
from playhall_statestore.model import (
    MAX_PART_BYTES,
    Chunk,
    DropChunks,
    HostBeats,
    Item,
    Mark,
    Now,
    Outcome,
    PutChunk,
    PutItem,
    Room,
    Saved,
    Trim,
)
from playhall_statestore.requests import Hello, Part, Refused, Ticks

__all__ = ["Writes"]

# The room's limit of state is 32 MB (RST-13); what is larger is not a room's.
MAX_ITEM_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class _Assembly:
    """An item of which pieces came. `skip`: it was taken before, or does not fit, and only its end counts."""

    at: Mark
    skip: bool
    parts: int = 0
    size: int = 0
    crc32: int = 0


@dataclass(slots=True)
class _Stream:
    host_id: str
    project: str | None
    assemblies: dict[tuple[str, bool], _Assembly] = field(default_factory=dict)
    asked_base: set[tuple[str, int]] = field(default_factory=set)
    dead: bool = False
    """It is being ended; what it still queued is not taken, and comes again on the next stream."""


class Writes:
    """The Write streams and the rules for what comes on them."""

    def __init__(self) -> None:
        self._streams: dict[int, _Stream] = {}

    def hello(self, batch: Batch, request: Hello) -> None:
        self._streams[request.stream] = _Stream(request.host_id, request.project)
        batch.hellos.add(request.stream)
        for uid, generation in request.rooms:
            room = batch.room(uid)
            if room is not None and is_current(room, generation, request.host_id, request.project):
                batch.ack(request.stream, uid, generation, Outcome.DURABLE, room.version)
            else:
                batch.ack(request.stream, uid, generation, Outcome.FENCED)

    def close(self, batch: Batch, stream: int) -> None:
        closed = self._streams.pop(stream, None)
        if closed is None:
            return
        for (uid, base), assembly in closed.assemblies.items():
            if assembly.parts and not assembly.skip:
                batch.changes.append(DropChunks(uid, assembly.at, base))

    def kill(self, stream: int) -> None:
        """What this stream queued so far is void: its batch was not committed."""
        if stream in self._streams:
            self._streams[stream].dead = True

    def part(self, batch: Batch, part: Part, now: Now) -> None:
        stream = self._streams.get(part.stream)
        if stream is None or stream.dead:
            return
        room = batch.room(part.uid)
        if room is None or not is_current(room, part.generation, stream.host_id, stream.project):
            stream.assemblies.pop((part.uid, part.base), None)
            batch.ack(part.stream, part.uid, part.generation, Outcome.FENCED)
            return
        if not part.base and part.prev == room.version and not stream.assemblies and _is_next(room, part):
            self._take_next(batch, stream, part, now)
            return
        fault = _fault(part)
        if fault is None and part.last and (part.uid, part.base) not in stream.assemblies:
            if zlib.crc32(part.data) == part.crc32:
                self._take_whole(batch, stream, room, part, now)
                return
            fault = f"version {part.version} does not match its checksum"
        if fault is None:
            assembly = self._assembly(batch, stream, room, part)
            fault = _grow(assembly, part)
        if fault is not None:
            stream.dead = True
            batch.end_stream(part.stream, Refused(ErrorCode.INVALID, f"{part.uid}: {fault}"))
            return
        self._take(batch, stream, assembly, part, now)

    def _take_next(self, batch: Batch, stream: _Stream, part: Part, now: Now) -> None:
        """The record that comes next, in one piece: what nearly all are. As `_take_whole` would."""
        uid, generation, version, tick = part.uid, part.generation, part.version, part.tick
        room = batch.touch(uid)
        at = Mark(generation, version)
        item = Item(at, False, tick, now.wall_ms, part.crc32, room.alarm_ms, part.data)
        batch.changes.append(PutItem(uid, item))
        room.version = version
        room.saved = Saved(at, tick, now.wall_ms)
        if stream.asked_base:
            stream.asked_base.discard((uid, generation))
        batch.ack(part.stream, uid, generation, Outcome.DURABLE, version)

    def _take_whole(self, batch: Batch, stream: _Stream, room: Room, part: Part, now: Now) -> None:
        """An item that came in one piece: nearly all do."""
        if not _taken(room, part):
            if not _fits(room, part):
                self._ask_base(batch, stream, part)
                return
            room = batch.touch(part.uid)
            _write(batch, room, _item(room, part, part.data, 0, now))
            if stream.asked_base:
                stream.asked_base.discard((part.uid, part.generation))
        batch.ack(part.stream, part.uid, part.generation, Outcome.DURABLE, room.version)

    def _assembly(self, batch: Batch, stream: _Stream, room: Room, part: Part) -> _Assembly:
        key = (part.uid, part.base)
        at = Mark(part.generation, part.version)
        assembly = stream.assemblies.get(key)
        if assembly is not None and assembly.at == at:
            return assembly
        if assembly is not None and assembly.parts and not assembly.skip:
            batch.changes.append(DropChunks(part.uid, assembly.at, part.base))
        skip = _taken(room, part) or not _fits(room, part)
        assembly = stream.assemblies[key] = _Assembly(at, skip)
        return assembly

    def _take(self, batch: Batch, stream: _Stream, assembly: _Assembly, part: Part, now: Now) -> None:
        """A piece that is in order."""
        if not assembly.skip and (assembly.parts or not part.last):
            chunk = Chunk(assembly.at, part.base, assembly.parts, part.data)
            batch.changes.append(PutChunk(part.uid, chunk))
            assembly.parts += 1
        if not part.last:
            return
        del stream.assemblies[part.uid, part.base]
        room = batch.touch(part.uid)
        if _taken(room, part):
            batch.ack(part.stream, part.uid, part.generation, Outcome.DURABLE, room.version)
        elif assembly.skip or not _fits(room, part):
            self._ask_base(batch, stream, part)
        else:
            data = b"" if assembly.parts else part.data
            _write(batch, room, _item(room, part, data, assembly.parts, now))
            stream.asked_base.discard((part.uid, part.generation))
            batch.ack(part.stream, part.uid, part.generation, Outcome.DURABLE, room.version)

    def _ask_base(self, batch: Batch, stream: _Stream, part: Part) -> None:
        """Once, until the base comes: the records behind a gap all miss it."""
        key = (part.uid, part.generation)
        if key not in stream.asked_base:
            stream.asked_base.add(key)
            batch.ack(part.stream, part.uid, part.generation, Outcome.NEED_BASE)

    def ticks(self, batch: Batch, request: Ticks, now: Now) -> None:
        """One row for each host: the ticks of its quiet rooms, new and known, as long as it holds them."""
        stream = self._streams.get(request.stream)
        if stream is None:
            return
        known = batch.host_beats(stream.host_id)
        named = dict(known.ticks) if known is not None else {}
        named.update((uid, (generation, tick)) for uid, generation, tick in request.rooms)
        held = {
            uid: (generation, tick)
            for uid, (generation, tick) in named.items()
            if is_current(batch.room(uid), generation, stream.host_id, stream.project)
        }
        if held or known is not None:
            batch.beats[stream.host_id] = HostBeats(now.wall_ms, held)


def _grow(assembly: _Assembly, part: Part) -> str | None:
    """Add a piece; gives what is wrong with the item."""
    assembly.size += len(part.data)
    assembly.crc32 = zlib.crc32(part.data, assembly.crc32)
    if assembly.size > MAX_ITEM_BYTES:
        return f"an item is larger than {MAX_ITEM_BYTES} bytes"
    if part.last and assembly.crc32 != part.crc32:
        return f"version {part.version} does not match its checksum"
    return None


def _item(room: Room, part: Part, data: bytes, parts: int, now: Now) -> Item:
    """The item that a last piece completes."""
    alarm_ms = room.alarm_ms if part.alarm_ms is None else _alarm(part.alarm_ms)
    at = Mark(part.generation, part.version)
    return Item(at, part.base, part.tick, now.wall_ms, part.crc32, alarm_ms, data, parts)


def _write(batch: Batch, room: Room, item: Item) -> None:
    batch.changes.append(PutItem(room.uid, item))
    if item.base:
        room.base = item.at
        batch.changes.append(Trim(room.uid, item.at))
    if item.at.version >= room.version:
        room.version = item.at.version
        room.saved = Saved(item.at, item.tick, item.wall_ms)
        if item.alarm_ms != room.alarm_ms:
            room.alarm_ms = item.alarm_ms
            batch.save(room)


def _taken(room: Room, part: Part) -> bool:
    """Whether this was written before."""
    if part.base:
        return room.base is not None and room.base >= Mark(part.generation, part.version)
    return part.version <= room.version


def _fits(room: Room, part: Part) -> bool:
    """Whether this may come next. A log that starts without a base cannot be read."""
    return part.base or (part.prev == room.version and room.base is not None)


def _is_next(room: Room, part: Part) -> bool:
    """Whether a record that follows the last one is whole, sets no alarm and is not at fault."""
    return (
        part.last
        and part.alarm_ms is None
        and room.base is not None
        and room.version < part.version < 1 << 32
        and len(part.data) <= MAX_PART_BYTES
        and zlib.crc32(part.data) == part.crc32
    )


def _alarm(alarm_ms: int) -> int | None:
    return None if alarm_ms < 0 else alarm_ms


def _fault(part: Part) -> str | None:
    if len(part.data) > MAX_PART_BYTES:
        return f"a part is larger than {MAX_PART_BYTES} bytes"
    if not 0 < part.version < 1 << 32:
        return f"version {part.version} is none"
    return None
