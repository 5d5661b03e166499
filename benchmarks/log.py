"""The log: how many bytes a change adds to what is saved of a room.

    .venv/bin/python benchmarks/log.py

Prints a JSON line: `log_append_one_of_10000_bytes`, the bytes of the record of a tick in which room code
moved one of a room's 10,000 entities: of the longest of RUNS such ticks. Exits 1 where that is over its
budget, or where a tick writes anything but one record.
"""

from __future__ import annotations

import sys

from measuring import Stage, report

from playhall.room import Entity, Json, Room, Schema, f32, owner_only, u8

RUNS = 20
NPCS = 10_000
BUDGETS = {"log_append_one_of_10000_bytes": 100.0}


class Npc(Entity):
    x: f32
    y: f32
    name: str = ""
    ammo: owner_only[u8] = 0
    wears: Json[list[int] | None] = None


class Crowd(Room):
    schema = Schema(entities=[Npc])

    def on_create(self) -> None:
        self.npcs = [self.entities.add(Npc(x=n, y=n, name=f"npc {n}")) for n in range(NPCS)]

    def on_tick(self, dt: float) -> None:
        npc = self.npcs[self.tick * 997 % NPCS]
        npc.x += 1
        npc.y += 1


def main() -> int:
    stage = Stage(Crowd)
    most = 0
    for _ in range(RUNS):
        stage.tick()
        if len(stage.records) != 1:
            raise RuntimeError(f"a tick wrote {len(stage.records)} records")
        most = max(most, stage.records[0])
    return report({"log_append_one_of_10000_bytes": most}, BUDGETS)


if __name__ == "__main__":
    sys.exit(main())
