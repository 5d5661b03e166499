"""The room registry: which rooms there are, by the names that players use.

A room's id is a name and may be used again after the room was deleted. Its room_uid is a ULID, made at
creation and never again; everything that holds a room's state goes by that. Type and slot are fixed at
creation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from playhall.engine.codes import ErrorCode
from playhall_common import ids
from playhall_common.errors import ApiError
from playhall_data import builds, checks, projects, tables

__all__ = [
    "JOIN_CODE_ALPHABET",
    "NewRoom",
    "Room",
    "create",
    "find",
    "lookup",
    "mark_has_state",
    "random_code",
]

JOIN_CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""31 characters, none of which is easily taken for another: no 0 and O, no 1, I and L."""

JOIN_CODE_LENGTH = 6
MADE_UP_ID_LENGTH = 12
DEFAULT_TYPE = "default"


@dataclass(frozen=True, slots=True)
class Room:
    """A room. `retention` is in force now: its own, or the project's."""

    project: str
    room_id: str
    room_uid: str
    room_type: str
    slot: int
    has_state: bool
    public: bool
    join_code: str | None
    retention: str
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class NewRoom:
    """A room to be. Empty: an id is made up, the type is `default`, the retention is the project's.

    Raises E_INVALID.
    """

    project: str
    room_id: str = ""
    room_type: str = ""
    public: bool = False
    with_join_code: bool = False
    retention: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "room_type", self.room_type or DEFAULT_TYPE)
        if self.room_id:
            checks.room_id("room_id", self.room_id)
        checks.room_type("room_type", self.room_type)
        if self.retention:
            checks.retention("retention", self.retention)


async def lookup(connection: AsyncConnection, project: str, room_id: str) -> tuple[Room, builds.Build | None]:
    """A room, and the build it would run on. Raises E_UNKNOWN; its detail `what` is project or room."""
    found = await projects.get(connection, project)
    room = await find(connection, found, room_id)
    if room is None:
        raise ApiError(ErrorCode.UNKNOWN, f"project {project!r} has no room {room_id!r}", what="room")
    return room, await builds.live(connection, found)


async def find(connection: AsyncConnection, project: projects.Project, room_id: str) -> Room | None:
    """A room of a project; None where there is none."""
    table = tables.rooms
    query = select(table).where((table.c.project == project.slug) & (table.c.room_id == room_id))
    row = (await connection.execute(query)).mappings().one_or_none()
    return None if row is None else _room(row, project)


async def create(
    connection: AsyncConnection, new: NewRoom, *, now_ms: int, rng: Callable[[int], bytes]
) -> tuple[Room, builds.Build]:
    """Make a room. Raises E_EXISTS, E_UNKNOWN (project, or no build is live), E_INVALID (no such type).

    An IntegrityError says that another transaction took the id or the join code meanwhile: try again.
    """
    project = await projects.get(connection, new.project)
    if new.room_id and await find(connection, project, new.room_id) is not None:
        raise ApiError(ErrorCode.EXISTS, f"there is a room {new.room_id!r} already", room_id=new.room_id)
    build = await builds.live(connection, project)
    if build is None:
        raise ApiError(ErrorCode.UNKNOWN, f"project {new.project!r} has no live build", what="build")
    if not build.has_room_type(new.room_type):
        raise checks.invalid("room_type", f"the live build has no room type {new.room_type!r}")
    room_uid = ids.ulid(now_ms, rng)
    row: dict[str, Any] = {
        "room_uid": room_uid,
        "project": new.project,
        "room_id": new.room_id or random_code(MADE_UP_ID_LENGTH, rng).lower(),
        "room_type": new.room_type,
        "slot": ids.slot_of(room_uid),
        "has_state": False,
        "public": new.public,
        "join_code": random_code(JOIN_CODE_LENGTH, rng) if new.with_join_code else None,
        "retention": new.retention or None,
        "created_at_ms": now_ms,
    }
    await connection.execute(insert(tables.rooms).values(**row))
    return _room(row, project), build


async def mark_has_state(connection: AsyncConnection, room_uid: str) -> None:
    """Note that a room's first state is stored; it may be noted already. Raises E_UNKNOWN."""
    table = tables.rooms
    result = await connection.execute(
        update(table).where(table.c.room_uid == room_uid).values(has_state=True)
    )
    if result.rowcount == 0:
        raise ApiError(ErrorCode.UNKNOWN, f"there is no room {room_uid!r}", what="room")


def random_code(length: int, rng: Callable[[int], bytes]) -> str:
    """Random characters of JOIN_CODE_ALPHABET, each as likely as the next."""
    size = len(JOIN_CODE_ALPHABET)
    fair = 256 - 256 % size
    code = ""
    while len(code) < length:
        # Bytes past the last whole multiple would make the first characters likelier.
        code += "".join(JOIN_CODE_ALPHABET[byte % size] for byte in rng(length) if byte < fair)
    return code[:length]


def _room(row: Any, project: projects.Project) -> Room:
    return Room(
        project=row["project"],
        room_id=row["room_id"],
        room_uid=row["room_uid"],
        room_type=row["room_type"],
        slot=row["slot"],
        has_state=row["has_state"],
        public=row["public"],
        join_code=row["join_code"],
        retention=row["retention"] or project.settings.retention,
        created_at_ms=row["created_at_ms"],
    )
