"""State updates: entries, the parts they travel in, and back (docs/protocol/state.md).

An entry is encoded once, by the functions named after the sections, and is the same bytes for every
connection. An `UpdateBuilder` puts a connection's entries together to bodies; connections with the same
entries share them. What differs from one connection to the next (how far the version and tick moved) is in
the head, made by `encode_head`, and head + body is the frame.

An update that a client receives in parts is read by `UpdateReader`, which hands it out whole.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from playhall.engine.errors import ProtocolError
from playhall.engine.fields import BYTES, MAX_BYTES
from playhall.engine.payloads import inflate
from playhall.engine.schema import FIRST_PRESENCE_ID
from playhall.engine.specs import KindSpec
from playhall.engine.wire import VARINT32_MAX, VARINT53_MAX, Reader, Writer, varint, varint_size

__all__ = [
    "MAX_BODY",
    "MAX_PART",
    "UPDATE",
    "Change",
    "Correct",
    "Enter",
    "Leave",
    "Operation",
    "Owner",
    "Patch",
    "Section",
    "Update",
    "UpdateBuilder",
    "UpdateReader",
    "decode_part",
    "encode_change",
    "encode_correct",
    "encode_enter",
    "encode_head",
    "encode_leave",
    "encode_owner",
    "encode_patch",
    "masked_values",
    "write_masked",
]

UPDATE: Final = 4
MAX_PART: Final = 61_440
MAX_HEAD: Final = 15
MAX_BODY: Final = MAX_PART - MAX_HEAD
MAX_OWNER: Final = 128
# What the parts of an update may add up to: the largest state a room may have, and some. An operation counts
# for more than its bytes, of which a few may be all it has.
MAX_UPDATE: Final = 64 * 1024 * 1024
ENTRY_SIZE: Final = 32

LAST_PART: Final = 1
DEFLATED: Final = 2
FULL_STATE: Final = 4


class Section(enum.IntEnum):
    """The sections of a part, in the order in which they stand and take effect."""

    LEAVE = 1
    ENTER = 2
    CHANGE = 3
    PATCH = 4
    OWNER = 5
    CORRECT = 6


# Entries, for whoever sends


def encode_leave(id: int) -> bytes:
    """Return the entry: the entity is no longer there, or no longer seen."""
    return varint(id)


def encode_enter(id: int, number: int, spec: KindSpec, values: Sequence[Any], *, owner_only: bool) -> bytes:
    """Return the entry: an entity with all its fields; those that are owner-only just for its owner."""
    out = Writer()
    out.varint32(id)
    out.varint32(number * 2 + owner_only)
    for spec_of_field in spec.fields if owner_only else spec.public:
        spec_of_field.type.encode(out, values[spec_of_field.index])
    return out.finish()


def encode_change(id: int, spec: KindSpec, values: Sequence[Any], mask: int) -> bytes:
    """Return the entry: the fields whose bits are set in `mask` have these values. The mask cannot be 0."""
    out = Writer()
    out.varint32(id)
    out.mask(mask)
    for spec_of_field in spec.fields:
        if mask >> spec_of_field.index & 1:
            spec_of_field.type.encode(out, values[spec_of_field.index])
    return out.finish()


encode_correct = encode_change


def encode_patch(id: int, index: int, offset: int, data: bytes) -> bytes:
    """Return the entry: a range of a bytes field."""
    out = Writer()
    out.varint32(id)
    out.u8(index)
    out.varint32(offset)
    out.blob(data)
    return out.finish()


def encode_owner(id: int, owner: str | None) -> bytes:
    """Return the entry: who owns the entity now. None is the room."""
    out = Writer()
    out.varint32(id)
    out.str(owner or "")
    return out.finish()


def write_masked(out: Writer, spec: KindSpec, values: Mapping[int, Any]) -> None:
    """Write the mask of stored values given by index, and the values. There must be one."""
    out.mask(sum(1 << index for index in values))
    for index in sorted(values):
        spec.fields[index].type.encode(out, values[index])


def masked_values(source: Reader, spec: KindSpec, *, from_client: bool = False) -> dict[int, Any]:
    """Read a mask and its values: stored values by index. Raises ProtocolError."""
    mask = source.mask(len(spec.fields))
    return {
        spec_of_field.index: spec_of_field.type.decode(source, from_client)
        for spec_of_field in spec.fields
        if mask >> spec_of_field.index & 1
    }


class UpdateBuilder:
    """Puts entries together to bodies of at most `limit` bytes."""

    def __init__(self, limit: int = MAX_BODY) -> None:
        if not 0 < limit <= MAX_BODY:
            raise ValueError(f"a body has 1 to {MAX_BODY} bytes, not {limit}")
        self._limit = limit
        self._entries: dict[Section, list[bytes]] = {section: [] for section in Section}

    def __bool__(self) -> bool:
        return any(self._entries.values())

    def add(self, section: Section, entry: bytes) -> None:
        """Add an entry. Entries of one section keep their order."""
        self._entries[section].append(entry)

    def extend(self, section: Section, entries: Iterable[bytes]) -> None:
        """Add entries, in order."""
        self._entries[section].extend(entries)

    def bodies(self) -> list[bytes]:
        """Return the bodies of the update's parts, in order: at least one, which is empty where nothing was
        added.

        An entry that is over the limit by itself gets a body by itself.
        """
        done: list[bytes] = []
        body = bytearray()
        for section, entries in self._entries.items():
            at = 0
            while at < len(entries):
                fitting = self._fitting(entries, at, self._limit - len(body))
                if not fitting and body:
                    done.append(bytes(body))
                    body.clear()
                    continue
                taken = entries[at : at + max(fitting, 1)]
                body.append(section)
                body += varint(len(taken))
                body += b"".join(taken)
                at += len(taken)
        done.append(bytes(body))
        return done

    @staticmethod
    def _fitting(entries: Sequence[bytes], at: int, space: int) -> int:
        """Return how many entries from `at` on fit into `space` as one section."""
        size = 1
        for count, entry in enumerate(entries[at:], start=1):
            size += len(entry)
            if size + varint_size(count) > space:
                return count - 1
        return len(entries) - at


def encode_head(dv: int, dt: int, *, last: bool, full: bool = False, deflated: bool = False) -> bytes:
    """Return what stands before a part's body.

    `dv` and `dt` are how far version and tick are from the last update sent; on later parts both are 0.
    `full` drops all the client holds, and stands on the first part only.
    """
    out = Writer()
    out.u8(UPDATE)
    out.u8(LAST_PART * last | DEFLATED * deflated | FULL_STATE * full)
    out.varint32(dv)
    out.varint53(dt)
    return out.finish()


# Operations, for whoever receives


@dataclass(frozen=True, slots=True)
class Leave:
    """Drop the entity; an unknown id is ignored."""

    id: int


@dataclass(frozen=True, slots=True)
class Enter:
    """Add the entity. One of that id leaves first. `values` has every field; the list is yours."""

    id: int
    number: int
    values: list[Any]
    owner_only: bool


@dataclass(frozen=True, slots=True)
class Change:
    """Set fields, by index, but for those that are writable in an entity the player owns."""

    id: int
    values: dict[int, Any]


@dataclass(frozen=True, slots=True)
class Patch:
    """Write into a bytes field, as `fields.patched` does. It may turn out too long for the field."""

    id: int
    index: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Owner:
    """Set the owner."""

    id: int
    owner: str | None


@dataclass(frozen=True, slots=True)
class Correct:
    """Set fields, by index, whatever the player wrote."""

    id: int
    values: dict[int, Any]


Operation: TypeAlias = Leave | Enter | Change | Patch | Owner | Correct


@dataclass(frozen=True, slots=True)
class Update:
    """One whole update. `full`: before anything else, every entity held leaves."""

    version: int
    tick: int
    full: bool
    operations: list[Operation]


@dataclass(slots=True)
class _Held:
    """Which entities a client holds as an update goes on, by number of kind."""

    before: Mapping[int, int]
    entered: dict[int, int] = field(default_factory=dict)
    left: set[int] = field(default_factory=set)

    def number_of(self, id: int) -> int | None:
        if id in self.entered:
            return self.entered[id]
        return None if id in self.left else self.before.get(id)

    def enter(self, id: int, number: int) -> None:
        self.entered[id] = number

    def leave(self, id: int) -> None:
        self.entered.pop(id, None)
        self.left.add(id)


class UpdateReader:
    """Reads the parts of updates, and hands each update out whole.

    `kinds` are the schema's. `held` is the number of kind of every entity the client holds; it moves on when
    an update is handed out, because that is when it takes effect. Any method raises ProtocolError.
    """

    def __init__(self, kinds: Sequence[KindSpec]) -> None:
        self._kinds = kinds
        self.held: dict[int, int] = {}
        self.version = 0
        self.tick = 0
        self._welcomed = False
        self._pending: Update | None = None
        self._pending_size = 0
        self._state = _Held({})

    def welcome(self, version: int, tick: int, *, resumed: bool) -> None:
        """Start from a welcome. What an unfinished update said is forgotten.

        What is held stays: a state that is sent whole comes with the flag that drops it.
        """
        self.version, self.tick = version, tick
        self._welcomed = True
        self._pending = None

    def part(self, frame: bytes) -> Update | None:
        """Read one frame. Returns the update if that was its last part."""
        if len(frame) > MAX_PART:
            raise ProtocolError(f"a part of {len(frame)} bytes, over {MAX_PART}")
        source = Reader(frame)
        if source.u8() != UPDATE:
            raise ProtocolError("no update")
        flags, dv, dt = source.u8(), source.varint32(), source.varint53()
        if flags & ~(LAST_PART | DEFLATED | FULL_STATE):
            raise ProtocolError(f"unknown flags {flags:#x}")
        head = len(frame) - source.left
        body = source.rest()
        if flags & DEFLATED:
            body = inflate(body, MAX_PART - head)
        pending = (
            self._begin(dv, dt, bool(flags & FULL_STATE))
            if self._pending is None
            else self._go_on(dv, dt, flags)
        )
        operations = _decode(body, self._kinds, self._state)
        self._pending_size += len(body) + ENTRY_SIZE * len(operations)
        if self._pending_size > MAX_UPDATE:
            raise ProtocolError("an update never ends")
        pending.operations.extend(operations)
        if not flags & LAST_PART:
            self._pending = pending
            return None
        self._finish(pending)
        return pending

    def _begin(self, dv: int, dt: int, full: bool) -> Update:
        if dv == 0 and not self._welcomed:
            raise ProtocolError("an update that goes nowhere")
        version, tick = self.version + dv, self.tick + dt
        if version > VARINT32_MAX or tick > VARINT53_MAX:
            raise ProtocolError("a version or tick that is too large")
        self._state, self._pending_size = _Held({} if full else self.held), 0
        return Update(version, tick, full, [])

    def _go_on(self, dv: int, dt: int, flags: int) -> Update:
        assert self._pending is not None
        if dv or dt or flags & FULL_STATE:
            raise ProtocolError("a later part moves the version or drops the state")
        return self._pending

    def _finish(self, update: Update) -> None:
        self._pending, self._welcomed = None, False
        self.version, self.tick = update.version, update.tick
        if update.full:
            self.held.clear()
        for id in self._state.left:
            self.held.pop(id, None)
        self.held.update(self._state.entered)


def decode_part(body: bytes, kinds: Sequence[KindSpec], held: Mapping[int, int]) -> list[Operation]:
    """Read the inflated body of one part, given the numbers of kind of what is held. Raises ProtocolError."""
    return _decode(body, kinds, _Held(held))


def _decode(body: bytes, kinds: Sequence[KindSpec], held: _Held) -> list[Operation]:
    source = Reader(body)
    operations: list[Operation] = []
    before = 0
    while source.left:
        section = source.u8()
        if section not in _READERS or section <= before:
            raise ProtocolError(f"section {section} after {before}")
        before = section
        count = source.varint32()
        if count == 0:
            raise ProtocolError("an empty section")
        if count > source.left:
            raise ProtocolError(f"{count} entries in {source.left} bytes")
        read = _READERS[Section(section)]
        operations.extend(read(source, kinds, held) for _ in range(count))
    return operations


def _read_leave(source: Reader, kinds: Sequence[KindSpec], held: _Held) -> Leave:
    id = source.varint32()
    held.leave(id)
    return Leave(id)


def _read_enter(source: Reader, kinds: Sequence[KindSpec], held: _Held) -> Enter:
    id, head = source.varint32(), source.varint32()
    number, owner_only = head >> 1, bool(head & 1)
    if number >= len(kinds):
        raise ProtocolError(f"no kind has number {number}")
    if (id >= FIRST_PRESENCE_ID) != (number == len(kinds) - 1):
        raise ProtocolError(f"{id} cannot be the id of a {kinds[number].name}")
    values = [
        spec.type.decode(source) if owner_only or not spec.owner_only else spec.type.zero
        for spec in kinds[number].fields
    ]
    held.enter(id, number)
    return Enter(id, number, values, owner_only)


def _read_change(source: Reader, kinds: Sequence[KindSpec], held: _Held) -> Change:
    id = source.varint32()
    return Change(id, masked_values(source, _held_kind(id, kinds, held)))


def _read_correct(source: Reader, kinds: Sequence[KindSpec], held: _Held) -> Correct:
    id = source.varint32()
    return Correct(id, masked_values(source, _held_kind(id, kinds, held)))


def _read_patch(source: Reader, kinds: Sequence[KindSpec], held: _Held) -> Patch:
    id = source.varint32()
    spec = _held_kind(id, kinds, held)
    index, offset, data = source.u8(), source.varint32(), source.blob(MAX_BYTES)
    if index >= len(spec.fields) or spec.fields[index].type is not BYTES:
        raise ProtocolError(f"{spec.name} has no bytes field {index}")
    if offset + len(data) > MAX_BYTES:
        raise ProtocolError(f"a patch to byte {offset + len(data)}, over {MAX_BYTES}")
    return Patch(id, index, offset, data)


def _read_owner(source: Reader, kinds: Sequence[KindSpec], held: _Held) -> Owner:
    id = source.varint32()
    _held_kind(id, kinds, held)
    return Owner(id, source.str(MAX_OWNER) or None)


def _held_kind(id: int, kinds: Sequence[KindSpec], held: _Held) -> KindSpec:
    number = held.number_of(id)
    if number is None:
        raise ProtocolError(f"entity {id} is not held")
    return kinds[number]


_READERS: Final[dict[int, Callable[[Reader, Sequence[KindSpec], _Held], Operation]]] = {
    Section.LEAVE: _read_leave,
    Section.ENTER: _read_enter,
    Section.CHANGE: _read_change,
    Section.PATCH: _read_patch,
    Section.OWNER: _read_owner,
    Section.CORRECT: _read_correct,
}
