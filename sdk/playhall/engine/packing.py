"""Frame groups: how frames travel from a room's engine to the processes that send them.

A group is one frame for several links: a head, of which there is one for all or one for each, and a body
that they share. Everything is little-endian.

    group = size u32 (of what follows), flags u8, count u32, links u64[count], body u32 (size), heads, body
    head  = size u8, bytes

Flags: 1 the frame may be lost; 2 there is a head for each link, else one for all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["EACH_HEAD", "UNRELIABLE", "Group", "pack_group", "read_groups", "unpack_groups"]

UNRELIABLE = 1
EACH_HEAD = 2

_START = struct.Struct("<IBI")


class Group(NamedTuple):
    """One frame for several links. `heads` holds one for all of them, or one for each."""

    links: Sequence[int]
    heads: Sequence[bytes]
    body: bytes
    unreliable: bool


def pack_group(
    links: Sequence[int], heads: Sequence[bytes], body: bytes, *, unreliable: bool = False
) -> bytes:
    """Return one group. `heads`: one, or one for each link, of at most 255 bytes."""
    flags = UNRELIABLE * unreliable | EACH_HEAD * (len(heads) > 1)
    count = len(links)
    parts = [
        struct.pack(f"<{count}QI", *links, len(body)),
        *(part for head in heads for part in (bytes((len(head),)), head)),
        body,
    ]
    rest = b"".join(parts)
    return _START.pack(len(rest) + 5, flags, count) + rest


def read_groups(data: bytes) -> Iterator[Group]:
    """Give the groups, in order. For what this process packed: what does not fit raises struct.error or
    IndexError.
    """
    at = 0
    while at < len(data):
        size, flags, count = _START.unpack_from(data, at)
        end, at = at + 4 + size, at + _START.size
        links = struct.unpack_from(f"<{count}Q", data, at)
        (body_size,) = struct.unpack_from("<I", data, at + 8 * count)
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
