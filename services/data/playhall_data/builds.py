"""Builds, and which of them is live."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from playhall.engine.codes import ErrorCode
from playhall_common import ids
from playhall_common.errors import ApiError
from playhall_data import checks, projects, tables

__all__ = ["Build", "Bundle", "RoomType", "get", "go_live", "live", "of_deploy", "register"]

MAX_ROOM_TYPES = 64
MAX_PLAYERS = 1024
SCHEMA_HASH_BYTES = 16
MAX_DEPLOY_SEQ = (1 << 53) - 1

_BUNDLE_HASH = re.compile(r"[A-Za-z0-9:_.-]{1,128}")
_ENTRY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class RoomType:
    """One room type of a build. Raises E_INVALID."""

    name: str
    entry: str
    schema_hash: bytes
    state_version: int
    max_players: int

    def __post_init__(self) -> None:
        checks.room_type("room_types.name", self.name)
        if not _ENTRY.fullmatch(self.entry) or len(self.entry) > 512:
            raise checks.invalid("room_types.entry", f"{self.entry!r} is not module:Class")
        if len(self.schema_hash) != SCHEMA_HASH_BYTES:
            raise checks.invalid("room_types.schema_hash", f"expected {SCHEMA_HASH_BYTES} bytes")
        if not 1 <= self.max_players <= MAX_PLAYERS:
            raise checks.invalid("room_types.max_players", f"{self.max_players} is not 1 to {MAX_PLAYERS}")


@dataclass(frozen=True, slots=True)
class Bundle:
    """What is registered. Raises E_INVALID."""

    bundle_hash: str
    location: str
    site: str
    room_types: tuple[RoomType, ...]

    def __post_init__(self) -> None:
        if not _BUNDLE_HASH.fullmatch(self.bundle_hash):
            raise checks.invalid("bundle_hash", "expected 1 to 128 of A-Z a-z 0-9 : _ . -")
        checks.text("location", self.location, low=1, high=4096)
        checks.text("site", self.site, high=4096)
        names = [room_type.name for room_type in self.room_types]
        if not 1 <= len(names) <= MAX_ROOM_TYPES:
            raise checks.invalid("room_types", f"expected 1 to {MAX_ROOM_TYPES}, not {len(names)}")
        if len(set(names)) < len(names):
            raise checks.invalid("room_types", "two have the same name")


@dataclass(frozen=True, slots=True)
class Build:
    build_id: str
    project: str
    bundle: Bundle
    deploy_seq: int
    created_at_ms: int

    def has_room_type(self, name: str) -> bool:
        return any(room_type.name == name for room_type in self.bundle.room_types)


async def register(
    connection: AsyncConnection, project: str, bundle: Bundle, *, now_ms: int, rng: Callable[[int], bytes]
) -> Build:
    """The build of a bundle, made where there is none.

    A bundle that is known keeps its build; where it lies and its site are replaced by what is said now. Its
    room types are part of it: others under the same hash are E_INVALID. Raises E_UNKNOWN too.
    """
    await projects.get(connection, project)
    known = await _find(
        connection, (tables.builds.c.project == project) & (tables.builds.c.bundle_hash == bundle.bundle_hash)
    )
    if known is None:
        return await _insert(connection, Build(ids.ulid(now_ms, rng), project, bundle, 0, now_ms))
    if known.bundle.room_types != bundle.room_types:
        raise checks.invalid("room_types", "this bundle_hash was registered with other room types")
    if known.bundle != bundle:
        moved = update(tables.builds).where(tables.builds.c.build_id == known.build_id)
        await connection.execute(moved.values(location=bundle.location, site=bundle.site))
    return replace(known, bundle=bundle)


async def go_live(connection: AsyncConnection, project: str, build_id: str) -> Build:
    """Make a build live, an older or the live one too, under the next deploy_seq. Raises E_UNKNOWN."""
    build = await get(connection, project, build_id)
    table = tables.projects
    next_seq = (
        update(table)
        .where(table.c.slug == project)
        .values(deploy_seq=table.c.deploy_seq + 1, live_build_id=build_id)
        .returning(table.c.deploy_seq)
    )
    deploy_seq = (await connection.execute(next_seq)).scalar_one()
    await connection.execute(
        update(tables.builds).where(tables.builds.c.build_id == build_id).values(deploy_seq=deploy_seq)
    )
    return replace(build, deploy_seq=deploy_seq)


async def get(connection: AsyncConnection, project: str, build_id: str) -> Build:
    """Read a build of a project. Raises E_UNKNOWN."""
    await projects.get(connection, project)
    build = await _find(
        connection, (tables.builds.c.project == project) & (tables.builds.c.build_id == build_id)
    )
    if build is None:
        raise ApiError(ErrorCode.UNKNOWN, f"project {project!r} has no build {build_id!r}", what="build")
    return build


async def live(connection: AsyncConnection, project: projects.Project) -> Build | None:
    """The live build; None where none went live yet."""
    if project.live_build_id is None:
        return None
    return await _find(connection, tables.builds.c.build_id == project.live_build_id)


async def of_deploy(connection: AsyncConnection, project: str, deploy_seq: int) -> Build | None:
    """The build that went live under this deploy_seq; None where there is none, or it did so again since."""
    if not 0 < deploy_seq <= MAX_DEPLOY_SEQ:
        return None
    return await _find(
        connection, (tables.builds.c.project == project) & (tables.builds.c.deploy_seq == deploy_seq)
    )


async def _insert(connection: AsyncConnection, build: Build) -> Build:
    bundle = build.bundle
    await connection.execute(
        insert(tables.builds).values(
            build_id=build.build_id,
            project=build.project,
            bundle_hash=bundle.bundle_hash,
            location=bundle.location,
            site=bundle.site,
            created_at_ms=build.created_at_ms,
            deploy_seq=0,
        )
    )
    rows = [
        {
            "build_id": build.build_id,
            "name": room_type.name,
            "position": position,
            "entry": room_type.entry,
            "schema_hash": room_type.schema_hash,
            "state_version": room_type.state_version,
            "max_players": room_type.max_players,
        }
        for position, room_type in enumerate(bundle.room_types)
    ]
    await connection.execute(insert(tables.room_types), rows)
    return build


async def _find(connection: AsyncConnection, condition: Any) -> Build | None:
    joined = tables.builds.join(tables.room_types)
    query = (
        select(*tables.builds.c, *(c for c in tables.room_types.c if c.name != "build_id"))
        .select_from(joined)
        .where(condition)
        .order_by(tables.room_types.c.position)
    )
    rows = (await connection.execute(query)).mappings().all()
    if not rows:
        return None
    room_types = tuple(
        RoomType(row["name"], row["entry"], row["schema_hash"], row["state_version"], row["max_players"])
        for row in rows
    )
    first = rows[0]
    bundle = Bundle(first["bundle_hash"], first["location"], first["site"], room_types)
    return Build(first["build_id"], first["project"], bundle, first["deploy_seq"], first["created_at_ms"])
