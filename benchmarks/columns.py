"""Columns: moving 10,000 entities by arrays, and by their handles; and what a flush costs.

    .venv/bin/python benchmarks/columns.py

Prints JSON lines of times in microseconds, the best of several runs. Exits 1 unless arrays are at least
50 times as fast as handles, and a flush that finds nothing takes at most 1 ms.
"""

from __future__ import annotations

import json
import sys
import timeit
from collections.abc import Callable

from playhall.engine.backend import Tracker
from playhall.engine.columns import Columns
from playhall.engine.entities import Entities
from playhall.engine.store import EntityStore
from playhall.room import Entity, Schema, f32, u8

ROWS = 10_000
RATIO = 50.0
QUIET_US = 1_000.0


class Npc(Entity):
    x: f32
    y: f32
    vx: f32
    vy: f32
    hp: u8 = 100


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
    return 0 if ratio >= RATIO and figures["flush_nothing"] <= QUIET_US else 1


if __name__ == "__main__":
    sys.exit(main())
