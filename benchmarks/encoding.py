"""Encoding: what a change of an entity costs a flush, in time and in bytes.

    .venv/bin/python benchmarks/encoding.py

A room of 1,000 entities of which room code moves all in every second tick, by writing x and y, and one in the
others; and one client, which sees all of them. Prints JSON lines:

- `encode_1000_us`: microseconds of CPU time in which a flush stamps 2,000 f32 fields with the room's version,
  encodes the changes of 1,000 entities, and puts them into the client's frame and the record for the state
  store. It is the time of a flush of all without that of a flush of one, so what a flush costs whatever has
  changed is not in it.
- `bytes_f32` and `bytes_q16`: bytes of the client's frames for each entity that moved and tick.

Medians of RUNS ticks. Exits 1 where one is over its budget.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Annotated

from measuring import Stage, report

from playhall.room import Entity, Json, Room, Schema, f32, owner_only, q16, u8

RUNS = 101
NPCS = 1_000
SIZE = 2_000.0
BUDGETS = {"encode_1000_us": 5.0, "bytes_f32": 11.0, "bytes_q16": 7.0}


class Npc(Entity):
    x: f32
    y: f32
    name: str = ""
    ammo: owner_only[u8] = 0
    wears: Json[list[int] | None] = None


class Rounded(Entity):
    x: Annotated[float, q16(0, SIZE)]
    y: Annotated[float, q16(0, SIZE)]
    name: str = ""
    ammo: owner_only[u8] = 0
    wears: Json[list[int] | None] = None


class Crowd(Room):
    schema = Schema(entities=[Npc, Rounded])
    kind: type[Npc] | type[Rounded] = Npc

    def on_create(self) -> None:
        for n in range(NPCS):
            self.entities.add(self.kind(x=n, y=n, name=f"npc {n}"))

    def on_tick(self, dt: float) -> None:
        moving = self.entities.all(self.kind) if self.tick % 2 else [self.entities.all(self.kind)[0]]
        for npc in moving:
            npc.x = (npc.x + 3.7) % SIZE
            npc.y = (npc.y + 2.9) % SIZE
        self.ended_ns = time.process_time_ns()


class RoundedCrowd(Crowd):
    kind = Rounded


def flushes(room_class: type[Crowd]) -> tuple[float, float]:
    """Return microseconds that a flush of all takes more than that of one, and bytes of frames likewise."""
    stage = Stage(room_class, links=1)
    times: tuple[list[float], list[float]] = ([], [])
    sizes = [0, 0]
    for _ in range(2 * RUNS):
        stage.tick()
        times[stage.core.tick_number % 2].append(stage.flush_us)
        sizes[stage.core.tick_number % 2] = stage.frames
    return median(times[1]) - median(times[0]), float(sizes[1])


def main() -> int:
    encode_us, f32_bytes = flushes(Crowd)
    _, q16_bytes = flushes(RoundedCrowd)
    return report(
        {"encode_1000_us": encode_us, "bytes_f32": f32_bytes / NPCS, "bytes_q16": q16_bytes / NPCS}, BUDGETS
    )


if __name__ == "__main__":
    sys.exit(main())
