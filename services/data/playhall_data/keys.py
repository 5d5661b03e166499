"""API keys, and the keys that player tokens are signed with.

A key of either kind has 256 random bits. Of an API key only the hash is kept; see `tables.api_keys`.
"""

from __future__ import annotations

import base64
import enum
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from playhall.engine.codes import ErrorCode
from playhall_common import ids
from playhall_common.errors import ApiError
from playhall_data import checks, projects, tables

__all__ = ["Key", "Kind", "TokenKey", "check", "create", "list_keys", "revoke", "token_keys"]

MAX_KEYS = 1000
API_PREFIX = "pk_"

_SECRET_BYTES = 32


class Kind(enum.IntEnum):
    """What a key is for; numbers as in data.v1.KeyKind."""

    API = 1
    PLAYER_TOKEN = 2


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret."""

    key_id: str
    project: str
    kind: Kind
    name: str
    created_at_ms: int
    revoked: bool


@dataclass(frozen=True, slots=True)
class TokenKey:
    """A key that signs player tokens; `key_id` is the token's `kid`."""

    key_id: str
    secret: str


async def create(
    connection: AsyncConnection,
    project: str,
    kind: int,
    name: str,
    *,
    now_ms: int,
    rng: Callable[[int], bytes],
) -> tuple[Key, str]:
    """Make a key; its secret is nowhere else again. Raises E_UNKNOWN, E_INVALID, and E_QUOTA."""
    if kind not in Kind.__members__.values():
        raise checks.invalid("kind", "expected KEY_KIND_API or KEY_KIND_PLAYER_TOKEN")
    checks.text("name", name, high=128)
    await projects.get(connection, project)
    if len(await list_keys(connection, project)) >= MAX_KEYS:
        raise ApiError(ErrorCode.QUOTA, f"a project has at most {MAX_KEYS} keys, revoked ones too")
    key = Key(ids.ulid(now_ms, rng), project, Kind(kind), name, now_ms, revoked=False)
    secret = base64.urlsafe_b64encode(rng(_SECRET_BYTES)).decode().rstrip("=")
    stored: dict[str, Any] = {"signing_secret": secret}
    if key.kind is Kind.API:
        secret = API_PREFIX + secret
        stored = {"secret_hash": _hash(secret)}
    await connection.execute(
        insert(tables.api_keys).values(
            key_id=key.key_id, project=project, kind=int(key.kind), name=name, created_at_ms=now_ms, **stored
        )
    )
    return key, secret


async def revoke(connection: AsyncConnection, project: str, key_id: str, *, now_ms: int) -> None:
    """End a key; it may be ended already. Raises E_UNKNOWN."""
    table = tables.api_keys
    mine = (table.c.project == project) & (table.c.key_id == key_id)
    if await connection.scalar(select(table.c.key_id).where(mine)) is None:
        raise ApiError(ErrorCode.UNKNOWN, f"project {project!r} has no key {key_id!r}", what="key")
    unended = mine & table.c.revoked_at_ms.is_(None)
    await connection.execute(update(table).where(unended).values(revoked_at_ms=now_ms))


async def list_keys(connection: AsyncConnection, project: str) -> list[Key]:
    """The keys of a project, oldest first. Raises E_UNKNOWN."""
    await projects.get(connection, project)
    table = tables.api_keys
    rows = await connection.execute(select(table).where(table.c.project == project).order_by(table.c.key_id))
    return [_key(row) for row in rows.mappings()]


async def check(connection: AsyncConnection, secret: str) -> Key:
    """The API key with this secret. Raises E_UNAUTHENTICATED."""
    table = tables.api_keys
    row = (await connection.execute(select(table).where(table.c.secret_hash == _hash(secret)))).mappings()
    found = row.one_or_none()
    if found is None or found["revoked_at_ms"] is not None:
        raise ApiError(ErrorCode.UNAUTHENTICATED, "the key is unknown or revoked")
    return _key(found)


async def token_keys(connection: AsyncConnection, project: str) -> list[TokenKey]:
    """The keys that player tokens of a project may be signed with now."""
    table = tables.api_keys
    active = (
        (table.c.project == project)
        & (table.c.kind == int(Kind.PLAYER_TOKEN))
        & (table.c.revoked_at_ms.is_(None))
    )
    query = select(table.c.key_id, table.c.signing_secret).where(active).order_by(table.c.key_id)
    return [TokenKey(row.key_id, row.signing_secret) for row in await connection.execute(query)]


def _key(row: Any) -> Key:
    return Key(
        row["key_id"],
        row["project"],
        Kind(row["kind"]),
        row["name"],
        row["created_at_ms"],
        row["revoked_at_ms"] is not None,
    )


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
