"""Encoding: what a change of an entity costs a flush, in time and in bytes.

    .venv/bin/python benchmarks/encoding.py

A room of 1,000 entities of which room code moves all in every second tick, by writing x and y, and one in
the others; and one client, which sees all of them. Prints JSON lines:

- `encode_1000_us`: microseconds of CPU time in which a flush stamps 2,000 f32 fields with the room's
  version, encodes the changes of 1,000 entities, and puts them into the client's frame. It is the time of a
  flush of all without that of a flush of one, so what a flush costs whatever has changed is not in it; nor is
- `record_1000_us`, the time in which the record of the flush is written for the state store, found likewise.
- `bytes_f32` and `bytes_q16`: bytes of the client's frames for each entity that moved and tick.

Medians of RUNS ticks. Exits 1 where one is over its budget.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Annotated, Any
from unittest import mock

from measuring import Stage, report

from playhall.engine.statelog import write_record
from playhall.room import Entity, Json, Room, Schema, f32, owner_only, q16, u8

RUNS = 101
NPCS = 1_000
SIZE = 2_000.0
BUDGETS = {"encode_1000_us": 5.0, "record_1000_us": 5.0, "bytes_f32": 11.0, "bytes_q16": 7.0}


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


class Timed:
    """Writes records, and notes how long that took."""

    us = 0.0

    def __call__(self, *given: Any) -> bytes | None:
        began = time.process_time_ns()
        record = write_record(*given)
        self.us = (time.process_time_ns() - began) / 1e3
        return record


def flushes(room_class: type[Crowd]) -> tuple[float, float, int]:
    """Return microseconds that a flush of all takes more than that of one, but for its record; those of the
    record; and bytes of the frames of all.
    """
    stage, timed = Stage(room_class, links=1), Timed()
    encodes: tuple[list[float], list[float]] = ([], [])
    records: tuple[list[float], list[float]] = ([], [])
    frames = 0
    with mock.patch("playhall.engine.saving.write_record", timed):
        for _ in range(2 * RUNS):
            stage.tick()
            all_moved = stage.core.tick_number % 2
            encodes[all_moved].append(stage.flush_us - timed.us)
            records[all_moved].append(timed.us)
            frames = stage.frames if all_moved else frames
    return median(encodes[1]) - median(encodes[0]), median(records[1]) - median(records[0]), frames


def main() -> int:
    encode_us, record_us, f32_bytes = flushes(Crowd)
    _, _, q16_bytes = flushes(RoundedCrowd)
    figures = {"encode_1000_us": encode_us, "record_1000_us": record_us}
    return report(figures | {"bytes_f32": f32_bytes / NPCS, "bytes_q16": q16_bytes / NPCS}, BUDGETS)


if __name__ == "__main__":
    sys.exit(main())
