"""Fields: what reading and writing one costs room code.

    .venv/bin/python benchmarks/fields.py

Prints JSON lines of nanoseconds of CPU time, measured in on_tick of a room whose records are written and
whose profile is kept:

- `field_get_ns`: reading an f32 field of an entity, `npc.x`;
- `field_set_ns`: writing another number to one, `npc.x = value`: checked, rounded and noted for the flush.

Each is the time of ten in a loop over 1,000 entities, without the loop itself, by ten: the median of RUNS
ticks. Exits 1 where one is over its budget.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

from measuring import Stage, report

from playhall.room import Entity, Json, Room, Schema, f32, owner_only, u8

RUNS = 41
NPCS = 1_000
BUDGETS = {"field_get_ns": 22.0, "field_set_ns": 22.0}


class Npc(Entity):
    x: f32
    y: f32
    name: str = ""
    ammo: owner_only[u8] = 0
    wears: Json[list[int] | None] = None


def loop(npcs: Sequence[Npc]) -> None:
    for _npc in npcs:
        pass


def read(npcs: Sequence[Npc]) -> None:
    for npc in npcs:
        npc.x  # noqa: B018
        npc.x  # noqa: B018
        npc.x  # noqa: B018
        npc.x  # noqa: B018
        npc.x  # noqa: B018
        npc.x  # noqa: B018
        npc.x  # noqa: B018
        npc.x  # noqa: B018
        npc.x  # noqa: B018
        npc.x  # noqa: B018


def write(npcs: Sequence[Npc], one: float = 0.1, other: float = 0.2) -> None:
    for npc in npcs:
        npc.x = one
        npc.x = other
        npc.x = one
        npc.x = other
        npc.x = one
        npc.x = other
        npc.x = one
        npc.x = other
        npc.x = one
        npc.x = other


class Crowd(Room):
    """Notes how long each loop took, tick by tick."""

    schema = Schema(entities=[Npc])

    def on_create(self) -> None:
        for n in range(NPCS):
            self.entities.add(Npc(x=n, y=n, name=f"npc {n}"))
        self.took: dict[str, list[float]] = {"field_get_ns": [], "field_set_ns": []}

    def on_tick(self, dt: float) -> None:
        npcs = self.entities.all(Npc)
        loop(npcs)
        for metric, body in (("field_get_ns", read), ("field_set_ns", write)):
            self.took[metric].append((cpu_ns(body, npcs) - cpu_ns(loop, npcs)) / (10 * NPCS))


def cpu_ns(call: Callable[[Sequence[Npc]], None], npcs: Sequence[Npc]) -> int:
    began = time.process_time_ns()
    call(npcs)
    return time.process_time_ns() - began


def main() -> int:
    stage = Stage(Crowd, links=1)
    for _ in range(RUNS):
        stage.tick()
    return report({metric: median(took) for metric, took in stage.room.took.items()}, BUDGETS)


if __name__ == "__main__":
    sys.exit(main())
