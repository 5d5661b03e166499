"""Projects and their settings."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_data import checks, tables

__all__ = ["Project", "Settings", "create", "get", "update_settings"]

DEFAULT_RETENTION = "7d"
BUILD_UPDATES = ("hibernate", "restart")
MAX_ORIGINS = 100

_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project allows. Empty strings mean the defaults; raises E_INVALID for what cannot be."""

    guests: bool = False
    create_rooms: bool = False
    list_public: bool = False
    retention: str = ""
    allowed_origins: tuple[str, ...] = ()
    build_update: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "retention", self.retention or DEFAULT_RETENTION)
        object.__setattr__(self, "build_update", self.build_update or BUILD_UPDATES[0])
        checks.retention("settings.retention", self.retention)
        if self.build_update not in BUILD_UPDATES:
            raise checks.invalid(
                "settings.build_update", f"{self.build_update!r} is not one of {', '.join(BUILD_UPDATES)}"
            )
        if len(self.allowed_origins) > MAX_ORIGINS:
            raise checks.invalid("settings.allowed_origins", f"more than {MAX_ORIGINS}")
        for origin in self.allowed_origins:
            if not _ORIGIN.fullmatch(origin):
                raise checks.invalid(
                    "settings.allowed_origins", f"{origin!r} is not scheme://host or scheme://host:port"
                )


@dataclass(frozen=True, slots=True)
class Project:
    slug: str
    settings: Settings
    created_at_ms: int
    live_build_id: str | None


async def create(connection: AsyncConnection, slug: str, settings: Settings, *, now_ms: int) -> Project:
    """Make a project. Raises E_INVALID, and E_EXISTS where the slug ever was in use."""
    checks.project_slug("slug", slug)
    taken = await connection.scalar(select(tables.projects.c.slug).where(tables.projects.c.slug == slug))
    if taken is not None:
        raise ApiError(ErrorCode.EXISTS, f"the slug {slug!r} is taken, and never free again", slug=slug)
    await connection.execute(insert(tables.projects).values(slug=slug, created_at_ms=now_ms, deploy_seq=0))
    await connection.execute(insert(tables.settings).values(project=slug, **_columns(settings)))
    return Project(slug, settings, now_ms, None)


async def get(connection: AsyncConnection, slug: str) -> Project:
    """Read a project. Raises E_UNKNOWN."""
    query = (
        select(tables.projects, tables.settings).join(tables.settings).where(tables.projects.c.slug == slug)
    )
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        raise ApiError(ErrorCode.UNKNOWN, f"there is no project {slug!r}", what="project", project=slug)
    settings = Settings(
        guests=row["guests"],
        create_rooms=row["create_rooms"],
        list_public=row["list_public"],
        retention=row["retention"],
        allowed_origins=tuple(json.loads(row["allowed_origins"])),
        build_update=row["build_update"],
    )
    return Project(row["slug"], settings, row["created_at_ms"], row["live_build_id"])


async def update_settings(connection: AsyncConnection, slug: str, settings: Settings) -> Project:
    """Replace the settings. Raises E_UNKNOWN."""
    table = tables.settings
    await connection.execute(update(table).where(table.c.project == slug).values(**_columns(settings)))
    return await get(connection, slug)


def _columns(settings: Settings) -> dict[str, object]:
    return {
        "guests": settings.guests,
        "create_rooms": settings.create_rooms,
        "list_public": settings.list_public,
        "retention": settings.retention,
        "allowed_origins": json.dumps(settings.allowed_origins),
        "build_update": settings.build_update,
    }
