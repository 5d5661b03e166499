"""Columns: moving entities by arrays, and by their handles; and what a flush costs.

    .venv/bin/python benchmarks/columns.py

Prints JSON lines. The metric `columns_100k_ms` is milliseconds of CPU time in a room of 100,000 entities, all
of which on_tick moves by `npcs.x += npcs.vx * dt` and the same of y, while a client looks at the few around
it: on_tick, and of the flush all but the look for what the client sees. So there is in it that the 200,000
values are found and stamped, encoded once for clients and once for the record, and the client's frame. Of the
base, which takes the place of the log after some such ticks, there is nothing in it, as these are medians of
RUNS ticks (of the profile that the room keeps).

The others are microseconds of moving 10,000 entities, the best of several runs. Exits 1 unless the metric is
in its budget, arrays are at least 50 times as fast as handles, and a flush that finds nothing takes at most
1 ms.
"""

from __future__ import annotations

import json
import sys
import time
import timeit
from collections.abc import Callable

from measuring import Stage, report

from playhall.engine.backend import Tracker
from playhall.engine.columns import Columns
from playhall.engine.entities import Entities
from playhall.engine.store import EntityStore
from playhall.room import Connection, Entity, Json, Room, Schema, f32, grid, owner_only, u8

RUNS = 60
MANY = 100_000
SIDE = 10_000
BUDGETS = {"columns_100k_ms": 0.6}
ROWS = 10_000
RATIO = 50.0
QUIET_US = 1_000.0


class Npc(Entity):
    x: f32
    y: f32
    vx: f32
    vy: f32
    hp: u8 = 100


class Fish(Entity, max=MANY):
    x: f32
    y: f32
    vx: f32
    vy: f32
    name: str = ""
    ammo: owner_only[u8] = 0
    wears: Json[list[int] | None] = None


class Diver(Entity):
    x: f32
    y: f32


class Sea(Room):
    schema = Schema(entities=[Fish, Diver])
    interest = grid(cell_size=100, around=Diver, range=100)

    def on_create(self) -> None:
        for n in range(MANY):
            self.entities.add(Fish(x=n * 7919 % SIDE, y=n * 104_729 % SIDE, vx=n % 7 + 1, vy=n % 5 + 1))

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Diver(x=SIDE / 2, y=SIDE / 2), owner=conn.player)

    def on_tick(self, dt: float) -> None:
        fish = self.entities.columns(Fish)
        fish.x += fish.vx * dt
        fish.y += fish.vy * dt


def columns_100k_ms() -> float:
    stage = Stage(Sea, links=1, clock=time.process_time)
    for _ in range(RUNS):
        stage.tick()
    rows = stage.core.inspect()["minute"]["rows"]
    return float(rows["on_tick"]["p50_us"] + rows["flush"]["p50_us"]) / 1e3


class Swarm:
    """A store of ROWS entities, flushed."""

    def __init__(self) -> None:
        self.tracker = Tracker()
        self.entities = Entities(EntityStore(Schema(entities=[Npc]), self.tracker))
        self.npcs = [self.entities.add(Npc(x=n, y=n, vx=1, vy=2)) for n in range(ROWS)]
        self.version = 0
        self.flush()

    def flush(self) -> None:
        self.version += 1
        self.tracker.flush(self.version)

    def move_handles(self) -> None:
        for npc in self.npcs:
            npc.x += npc.vx * 0.05
            npc.y += npc.vy * 0.05


def move_arrays(npcs: Columns) -> None:
    npcs.x += npcs.vx * 0.05
    npcs.y += npcs.vy * 0.05


def best_us(call: Callable[[], object], after: Callable[[], object] = lambda: None, runs: int = 7) -> float:
    """Return the shortest time of a call; `after` it comes what is not measured."""
    times = []
    for _ in range(runs):
        times.append(timeit.timeit(call, number=1))
        after()
    return round(min(times) * 1e6, 1)


def main() -> int:
    plain, swarm = Swarm(), Swarm()
    figures = {"handles_before_columns": best_us(plain.move_handles, plain.flush)}
    npcs = swarm.entities.columns(Npc)
    figures["handles"] = best_us(swarm.move_handles, swarm.flush)
    figures["arrays"] = best_us(lambda: move_arrays(npcs), swarm.flush)
    figures["flush_nothing"] = best_us(lambda: swarm.tracker.dirty)

    def change(part: slice) -> Callable[[], None]:
        def write() -> None:
            npcs.x[part] += 1

        return write

    for name, part in (("flush_1_percent", slice(None, None, 100)), ("flush_all", slice(None))):
        change(part)()
        figures[name] = best_us(swarm.flush, change(part))
    for name, figure in figures.items():
        print(json.dumps({"benchmark": f"columns/{name}", "rows": ROWS, "us": figure}))
    ratio = figures["handles_before_columns"] / figures["arrays"]
    print(json.dumps({"benchmark": "columns/ratio", "value": round(ratio, 1), "least": RATIO}))
    missed = report({"columns_100k_ms": columns_100k_ms()}, BUDGETS)
    return 0 if ratio >= RATIO and figures["flush_nothing"] <= QUIET_US and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
