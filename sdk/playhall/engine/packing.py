"""Runs of frames: how frames travel between a room's engine, room host and router, without an object each.

A room's engine puts out groups. A group is one frame for several links: a head, of which there is one for all
or one for each, and a body that they share. Everything is little-endian.

    group = size u32 (of what follows), flags u8, count u32, links u64[count], body u32 (size), heads, body
    head  = size u8, bytes

Flags: 1 the frame may be lost; 2 there is a head for each link, else one for all.

On an Attach stream groups name their generation, and links by the stream's own numbers; `route` makes the one
of the other. An engine's link has the number of its stream in its upper half.

    group = size u32, flags u8, generation u64, count u32, links u32[count], body u32, heads, body

What clients send goes up as a run of these, and is queued in an `UpRun`:

    frame = link u32, size u32, bytes

`native/packing.pyx` has the twins of `route`, `reliable_only`, `by_room`, `UpRun` and `UpQueue`, and those of
`lanes`, which reads what comes down.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

__all__ = [
    "EACH_HEAD",
    "STREAM_SHIFT",
    "UNRELIABLE",
    "UP_HEADER",
    "Group",
    "UpQueue",
    "UpRun",
    "by_room",
    "pack_down",
    "pack_group",
    "pack_up",
    "read_down",
    "read_groups",
    "read_up",
    "reliable_only",
    "route",
    "stream_of",
    "unpack_groups",
]

R = TypeVar("R")

UNRELIABLE = 1
EACH_HEAD = 2
UP_HEADER = 8
"""Bytes that a frame takes in a run beside its own."""
PIECE_BYTES = 256 * 1024
"""Where a run is cut, unless one group is larger."""
STREAM_SHIFT = 32
"""An engine's link is its stream's number so far up, and its number there."""

_INPUTS = 12  # frames.INPUTS, which is not imported: frames know kinds, and kinds the backend
_LINK_MASK = (1 << STREAM_SHIFT) - 1
_U32 = struct.Struct("<I")
_START = struct.Struct("<IBI")
_DOWN = struct.Struct("<IBQI")
_UP = struct.Struct("<II")


class Group(NamedTuple):
    """One frame for several links. `heads` holds one for all of them, or one for each."""

    links: Sequence[int]
    heads: Sequence[bytes]
    body: bytes
    unreliable: bool


# Groups of an engine. They are this process's own: what does not fit raises struct.error or IndexError.


def pack_group(
    links: Sequence[int], heads: Sequence[bytes], body: bytes, *, unreliable: bool = False
) -> bytes:
    """Return one group. `heads`: one, or one for each link, of at most 255 bytes."""
    flags = UNRELIABLE * unreliable | EACH_HEAD * (len(heads) > 1)
    rest = _tail(f"<{len(links)}QI", links, heads, body)
    return _START.pack(len(rest) + 5, flags, len(links)) + rest


def read_groups(data: bytes) -> Iterator[Group]:
    """Give the groups, in order."""
    at = 0
    while at < len(data):
        size, flags, count = _START.unpack_from(data, at)
        end, at = at + 4 + size, at + _START.size
        links = struct.unpack_from(f"<{count}Q", data, at)
        (body_size,) = _U32.unpack_from(data, at + 8 * count)
        at += 8 * count + 4
        heads = []
        for _ in range(count if flags & EACH_HEAD else 1):
            heads.append(data[at + 1 : at + 1 + data[at]])
            at += 1 + data[at]
        yield Group(links, heads, data[at : at + body_size], bool(flags & UNRELIABLE))
        at = end


def unpack_groups(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Give each link's frame, in order: its number, the frame, whether it may be lost. As `read_groups`."""
    for links, heads, body, unreliable in read_groups(data):
        shared = heads[0] + body
        for index, link in enumerate(links):
            yield link, heads[index] + body if len(heads) > 1 else shared, unreliable


def stream_of(link: int) -> int:
    """The stream of an engine's link."""
    return link >> STREAM_SHIFT


# Down.


def pack_down(generation: int, group: Group) -> bytes:
    """Return one group as it goes down a stream; of its links the lower halves."""
    links = [link & _LINK_MASK for link in group.links]
    flags = UNRELIABLE * group.unreliable | EACH_HEAD * (len(group.heads) > 1)
    rest = _tail(f"<{len(links)}II", links, group.heads, group.body)
    return _DOWN.pack(len(rest) + _DOWN.size - 4, flags, generation, len(links)) + rest


def route(data: bytes, generation: int) -> list[tuple[int, bytes]]:
    """Cut an engine's groups into runs for streams: (stream, run), in the groups' order for each stream.

    A run has at most `PIECE_BYTES`, or one group.
    """
    runs: list[tuple[int, bytearray]] = []
    newest: dict[int, bytearray] = {}
    for group in read_groups(data):
        for stream, part in _by_stream(group):
            packed = pack_down(generation, part)
            run = newest.get(stream)
            if run is None or len(run) + len(packed) > PIECE_BYTES:
                run = newest[stream] = bytearray()
                runs.append((stream, run))
            run += packed
    return [(stream, bytes(run)) for stream, run in runs]


def _by_stream(group: Group) -> Iterator[tuple[int, Group]]:
    """The group as each stream's links have it."""
    parts: dict[int, list[int]] = {}
    for index, link in enumerate(group.links):
        parts.setdefault(stream_of(link), []).append(index)
    if len(parts) == 1:
        yield next(iter(parts)), group
        return
    for stream, indices in parts.items():
        links = [group.links[i] for i in indices]
        heads = group.heads if len(group.heads) == 1 else [group.heads[i] for i in indices]
        yield stream, group._replace(links=links, heads=heads)


def reliable_only(run: bytes) -> tuple[bytes, int]:
    """A run of this process without the groups that may be lost, and how many those were."""
    kept: list[bytes] = []
    lost = at = 0
    while at < len(run):
        size, flags = struct.unpack_from("<IB", run, at)
        if flags & UNRELIABLE:
            lost += 1
        else:
            kept.append(run[at : at + 4 + size])
        at += 4 + size
    return b"".join(kept), lost


def read_down(run: bytes) -> Iterator[tuple[int, Group]]:
    """Give generation and group, in order. The run may hold anything: ValueError where it is no run."""
    at = 0
    while at < len(run):
        if at + _DOWN.size > len(run):
            raise ValueError("a run of frames is cut short")
        size, flags, generation, count = _DOWN.unpack_from(run, at)
        end, at = at + 4 + size, at + _DOWN.size
        if end > len(run) or flags > UNRELIABLE | EACH_HEAD or at + 4 * count + 4 > end:
            raise ValueError("a group of frames does not fit its run")
        links = struct.unpack_from(f"<{count}I", run, at)
        (body_size,) = _U32.unpack_from(run, at + 4 * count)
        at += 4 * count + 4
        heads = []
        for _ in range(count if flags & EACH_HEAD else 1):
            if at >= end or at + 1 + run[at] > end:
                raise ValueError("a head does not fit its group of frames")
            heads.append(run[at + 1 : at + 1 + run[at]])
            at += 1 + run[at]
        if at + body_size != end:
            raise ValueError("a body does not fill its group of frames")
        yield generation, Group(links, heads, run[at:end], bool(flags & UNRELIABLE))
        at = end


# Up.


def pack_up(link: int, frame: bytes) -> bytes:
    """Return a frame as it stands in a run."""
    return _UP.pack(link, len(frame)) + frame


def read_up(run: bytes) -> list[tuple[int, bytes]]:
    """Links and their frames, in order. ValueError where it is no run."""
    found = []
    at = 0
    while at < len(run):
        if at + UP_HEADER > len(run):
            raise ValueError("a run of frames is cut short")
        link, size = _UP.unpack_from(run, at)
        at += UP_HEADER + size
        if at > len(run):
            raise ValueError("a frame does not fit its run")
        found.append((link, run[at - size : at]))
    return found


def by_room(run: bytes, high: int, rooms: Mapping[int, R]) -> dict[R, list[tuple[int, bytes]]]:
    """The frames of each room, in order: the link, with `high` as its upper half, and the frame.

    `rooms` are those of links; frames of others are left out. ValueError where it is no run.
    """
    found: dict[R, list[tuple[int, bytes]]] = {}
    for link, frame in read_up(run):
        room = rooms.get(link)
        if room is not None:
            found.setdefault(room, []).append((high | link, frame))
    return found


class UpRun:
    """A run under way. What is dropped leaves holes, which are closed when they are the most of it."""

    __slots__ = ("_at", "_data", "_holes", "frames")

    def __init__(self) -> None:
        self.frames = 0
        """How many there are."""
        self._data = bytearray()
        self._holes = 0
        self._at = 0
        """No input stands before this."""

    @property
    def size(self) -> int:
        """Bytes of the frames and their headers."""
        return len(self._data) - self._holes

    def append(self, link: int, frame: bytes) -> None:
        """Add a frame; `link` is not 0, which marks holes."""
        self._data += _UP.pack(link, len(frame))
        self._data += frame
        self.frames += 1

    def drop_inputs(self, needed: int) -> int:
        """Drop the oldest inputs, until so many bytes are free or there are none. Returns how many."""
        dropped = freed = 0
        data, at = self._data, self._at
        while at < len(data) and freed < needed:
            link, size = _UP.unpack_from(data, at)
            if link and size and data[at + UP_HEADER] == _INPUTS:
                _U32.pack_into(data, at, 0)
                freed += UP_HEADER + size
                dropped += 1
            at += UP_HEADER + size
        self._at = at
        self._holes += freed
        self.frames -= dropped
        if self._holes > len(data) // 2:
            self._close_holes()
        return dropped

    def drop_link(self, link: int) -> None:
        """Drop all that a link has in here."""
        data, at = self._data, 0
        while at < len(data):
            number, size = _UP.unpack_from(data, at)
            if number == link:
                _U32.pack_into(data, at, 0)
                self._holes += UP_HEADER + size
                self.frames -= 1
            at += UP_HEADER + size
        if self._holes > len(data) // 2:
            self._close_holes()

    def weigh(self, bytes_by_link: Counter[int]) -> None:
        """Add what each link has in here."""
        for link, size in self._frames():
            bytes_by_link[link] += UP_HEADER + size

    def take(self) -> bytes:
        """Give the run, and begin a new one."""
        self._close_holes()
        data = bytes(self._data)
        self._data.clear()
        self._at = self.frames = 0
        return data

    def _frames(self) -> Iterator[tuple[int, int]]:
        at = 0
        while at < len(self._data):
            link, size = _UP.unpack_from(self._data, at)
            if link:
                yield link, size
            at += UP_HEADER + size

    def _close_holes(self) -> None:
        if not self._holes:
            return
        kept = bytearray()
        passed = at = 0
        while at < len(self._data):
            link, size = _UP.unpack_from(self._data, at)
            end = at + UP_HEADER + size
            if link:
                kept += self._data[at:end]
            at = end
            if at == self._at:
                passed = len(kept)
        self._data, self._holes, self._at = kept, 0, passed


class UpQueue:
    """Frames go into the run under way while there is room, and all else is up to who derives from this."""

    def __init__(self) -> None:
        self.run: UpRun | None = None
        self.room = 0
        """Bytes that may be added to `run`; 0 without one."""
        self.size = 0
        """Bytes that wait."""

    def push(self, link: int, frame: bytes) -> bool:
        """Queue a frame. False: it was not queued."""
        size = UP_HEADER + len(frame)
        if self.run is None or size > self.room:
            return self.overflow(link, frame)
        self.run.append(link, frame)
        self.room -= size
        self.size += size
        return True

    def overflow(self, link: int, frame: bytes) -> bool:
        """Queue a frame that there is no room for. False: it was not queued."""
        return False


def _tail(form: str, links: Sequence[int], heads: Sequence[bytes], body: bytes) -> bytes:
    sized = (part for head in heads for part in (bytes((len(head),)), head))
    return b"".join((struct.pack(form, *links, len(body)), *sized, body))
