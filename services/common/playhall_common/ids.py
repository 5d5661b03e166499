"""Ids and names: how they are made, and what they may look like.

Clocks and randomness are arguments, so that a test decides both.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

__all__ = [
    "SLOTS",
    "is_player_id",
    "is_project_slug",
    "is_room_id",
    "is_room_type",
    "is_ulid",
    "slot_of",
    "ulid",
]

SLOTS = 1024
"""Rooms are spread over this many slots; shards own slots."""

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BYTES = 10
_MAX_PLAYER_BYTES = 128

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_SLUG = re.compile(r"(?=.{3,40}\Z)[a-z][a-z0-9]*(-[a-z0-9]+)*")
_ROOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ROOM_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def ulid(now_ms: int, rng: Callable[[int], bytes]) -> str:
    """A ULID: 48 bits of time, then 80 of `rng(10)`; 26 characters that sort by time."""
    if not 0 <= now_ms < 1 << 48:
        raise ValueError(f"{now_ms} ms is no time a ULID can hold")
    number = now_ms << 80 | int.from_bytes(rng(_RANDOM_BYTES), "big")
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def slot_of(room_uid: str) -> int:
    """The slot of a room, 0 to 1,023: CRC-32 of its uid. Never to change: shards hold state by it."""
    return zlib.crc32(room_uid.encode()) % SLOTS


def is_ulid(text: str) -> bool:
    """Whether this is a ULID as `ulid` writes it."""
    return _ULID.fullmatch(text) is not None


def is_project_slug(text: str) -> bool:
    """3 to 40 of a-z, 0-9 and single hyphens; a letter first, no hyphen last: it becomes a host name."""
    return _SLUG.fullmatch(text) is not None


def is_room_id(text: str) -> bool:
    """1 to 64 of A-Z a-z 0-9 _ -."""
    return _ROOM_ID.fullmatch(text) is not None


def is_room_type(text: str) -> bool:
    """A letter, then up to 63 of A-Z a-z 0-9 _ -."""
    return _ROOM_TYPE.fullmatch(text) is not None


def is_player_id(text: str) -> bool:
    """1 to 128 bytes of UTF-8 without control characters, and not a bot's (`bot:...`): those are the room's
    to hand out.
    """
    if text.startswith("bot:") or _CONTROL.search(text):
        return False
    try:
        return 0 < len(text.encode()) <= _MAX_PLAYER_BYTES
    except UnicodeEncodeError:
        return False
