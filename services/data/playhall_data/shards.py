"""State store shards: who owns which slots, and under which epoch.

An epoch is the upper half of every generation that a shard grants, so none may ever be given twice: a new one
comes from one sequence for all shards, and is given only to an empty volume. What a volume remembers may be
newer than this database, where that was restored from a backup; then the sequence follows the volume.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from playhall.engine.codes import ErrorCode
from playhall_common import ids
from playhall_common.errors import ApiError
from playhall_data import checks, tables

__all__ = ["Registration", "Shard", "ShardMap", "read_map", "register"]

# With 32 bits of counter below it, a generation of such an epoch is exact in JavaScript's numbers.
MAX_EPOCH = (1 << 20) - 1

_EPOCH = "shard_epoch"
_MAP_VERSION = "map_version"


@dataclass(frozen=True, slots=True)
class Registration:
    """A shard that starts. `volume_epoch` 0: its volume is empty. Raises E_INVALID."""

    shard_id: str
    address: str
    volume_epoch: int
    replace: bool
    min_epoch: int = 0
    """A new epoch is above this: what the object store remembers, where that is more than this database."""

    def __post_init__(self) -> None:
        checks.text("shard_id", self.shard_id, low=1, high=64)
        checks.text("address", self.address, low=1, high=256)
        for name in ("volume_epoch", "min_epoch"):
            epoch: int = getattr(self, name)
            if epoch > MAX_EPOCH:
                raise checks.invalid(name, f"{epoch} is beyond {MAX_EPOCH}")


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard and the half-open ranges of its slots, ordered."""

    shard_id: str
    address: str
    epoch: int
    slots: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ShardMap:
    version: int
    shards: tuple[Shard, ...]


async def register(connection: AsyncConnection, new: Registration, *, now_ms: int) -> tuple[int, int]:
    """The epoch to serve under, and the map's version. Raises E_STALE_VOLUME, E_EMPTY_VOLUME, E_FULL.

    A shard that starts again on its volume keeps its epoch. The first shard of all owns every slot.
    """
    known = await _find(connection, new.shard_id)
    epoch = await _settle_epoch(connection, new, None if known is None else known.epoch)
    if known is None:
        row = {"shard_id": new.shard_id, "address": new.address, "epoch": epoch, "registered_at_ms": now_ms}
        await connection.execute(insert(tables.shards).values(**row))
        await _take_unowned(connection, new.shard_id)
    elif known == Shard(new.shard_id, new.address, epoch, known.slots):
        return epoch, await _value(connection, _MAP_VERSION)
    else:
        changed = update(tables.shards).where(tables.shards.c.shard_id == new.shard_id)
        await connection.execute(changed.values(address=new.address, epoch=epoch, registered_at_ms=now_ms))
    return epoch, await _draw(connection, _MAP_VERSION)


async def read_map(connection: AsyncConnection) -> ShardMap:
    """Every shard and its slots."""
    slots: dict[str, list[tuple[int, int]]] = {}
    for row in await connection.execute(select(tables.shard_slots).order_by(tables.shard_slots.c.slot_from)):
        slots.setdefault(row.shard_id, []).append((row.slot_from, row.slot_to))
    rows = await connection.execute(select(tables.shards).order_by(tables.shards.c.shard_id))
    shards = tuple(
        Shard(row.shard_id, row.address, row.epoch, tuple(slots.get(row.shard_id, ()))) for row in rows
    )
    return ShardMap(await _value(connection, _MAP_VERSION), shards)


async def _settle_epoch(connection: AsyncConnection, new: Registration, known: int | None) -> int:
    if new.volume_epoch == 0:
        if known is not None and not new.replace:
            raise ApiError(ErrorCode.EMPTY_VOLUME, shard_id=new.shard_id, epoch=known)
        await _follow(connection, new.min_epoch)
        epoch = await _draw(connection, _EPOCH)
        if epoch > MAX_EPOCH:
            raise ApiError(ErrorCode.FULL, "every shard epoch was given")
        return epoch
    if known is not None and new.volume_epoch < known:
        raise ApiError(
            ErrorCode.STALE_VOLUME, shard_id=new.shard_id, epoch=known, volume_epoch=new.volume_epoch
        )
    await _follow(connection, new.volume_epoch)
    return new.volume_epoch


async def _follow(connection: AsyncConnection, epoch: int) -> None:
    """Epochs up to this one were given, whatever the sequence says."""
    table = tables.sequences
    behind = (table.c.name == _EPOCH) & (table.c.value < epoch)
    await connection.execute(update(table).where(behind).values(value=epoch))


async def _take_unowned(connection: AsyncConnection, shard_id: str) -> None:
    if await connection.scalar(select(tables.shard_slots.c.slot_from).limit(1)) is None:
        everything = {"slot_from": 0, "slot_to": ids.SLOTS, "shard_id": shard_id}
        await connection.execute(insert(tables.shard_slots).values(**everything))


async def _find(connection: AsyncConnection, shard_id: str) -> Shard | None:
    table = tables.shards
    row = (await connection.execute(select(table).where(table.c.shard_id == shard_id))).one_or_none()
    return None if row is None else Shard(row.shard_id, row.address, row.epoch, ())


async def _draw(connection: AsyncConnection, name: str) -> int:
    table = tables.sequences
    step = update(table).where(table.c.name == name).values(value=table.c.value + 1).returning(table.c.value)
    value: int = (await connection.execute(step)).scalar_one()
    return value


async def _value(connection: AsyncConnection, name: str) -> int:
    query = select(tables.sequences.c.value).where(tables.sequences.c.name == name)
    value: int = (await connection.execute(query)).scalar_one()
    return value
