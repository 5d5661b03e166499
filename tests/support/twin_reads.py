"""What room code can read of a room, which has to be the same on both engines after each step (`twins`)."""

from __future__ import annotations

from typing import Any

from playhall.engine.core import RoomCore
from playhall.engine.kinds import spec_of
from playhall.room import Entity

__all__ = [
    "read_columns",
    "read_core",
    "read_driver",
    "read_entities",
    "read_entity",
    "read_room",
    "read_table",
]


def read_entity(entity: Entity) -> Any:
    """All of a handle, as it is read, or what reading raises."""
    fields = [field.name for field in spec_of(entity).fields]
    read: list[Any] = [repr(entity), entity.owner]
    for name in ("id", *fields):
        try:
            read.append(getattr(entity, name))
        except Exception as error:  # of the dead, and of those that were not added yet
            read.append(error)
            break
    return read


def read_columns(columns: Any, kind: type[Entity]) -> Any:
    """The arrays of one `columns()`."""
    names = [field.name for field in spec_of(kind).fields]
    return len(columns), columns.id, columns.alive, [getattr(columns, name, None) for name in names]


def read_core(core: RoomCore) -> Any:
    """All that a room's code and its inspector can see."""
    try:
        room: Any = core.room
    except AttributeError:
        return core.status
    schema: Any = type(room).schema
    entities = room.entities
    kinds = [kind for kind in schema.classes if kind in schema.entities]
    return {
        "life": (core.status, core.version, core.tick_number, core.connection_count, core.next_timer()),
        "entities": [read_entity(entity) for entity in entities],
        "kinds": [
            (
                [entity.id for entity in entities.all(kind)],
                entities.count(kind),
                getattr(entities.first(kind), "id", None),
            )
            for kind in kinds
        ],
        "state": None if room.state is None else read_entity(room.state),
        "private": [
            (player, read_entity(room.private(player)))
            for player in (room.private_players() if schema.private else ())
        ],
        "presence": list(room.presence.items()),
        "bots": list(room.bots),
        "summary": core.summary(),
        "inspector": core.inspect(),
        "dirty": core.dirty,
    }


def read_driver(machine: Any) -> Any:
    """Of machines on `rooms.Driver`."""
    driver = machine.driver
    held = [(link, client.replica.__dict__.get("entities")) for link, client in driver.clients.items()]
    return read_core(driver.core), held


def read_table(machine: Any) -> Any:
    """Of machines on `converging.Table`."""
    return read_core(machine.table.core)


def read_room(machine: Any) -> Any:
    """Of machines whose `room` is a RoomCore."""
    return read_core(machine.room)


def read_entities(machine: Any) -> Any:
    """Of machines on a bare `Entities`."""
    return [read_entity(entity) for entity in machine.entities]
