"""Histories: recording a tick, and rewinding to shoot through it, as room code does.

    .venv/bin/python benchmarks/history.py

Prints JSON lines, microseconds of CPU time:

- `history_100_us`: recording one tick of 100 entities, x and y. It is the difference between the ticks of a
  room that keeps fifty such histories and of one that keeps none, by fifty.
- `rewind_ray_100_us`, `rewind_ray_1000_us`: `rewind` to between two ticks, and `ray` with its hit if there is
  one, called in on_tick.

Medians of several runs. Exits 1 where one is over its budget.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable
from statistics import median

from measuring import report

from playhall.engine.core import RoomCore
from playhall.engine.outputs import Now, RoomIdentity, WakeInfo
from playhall.room import Entity, History, Json, Room, Schema, f32, owner_only, u8

RUNS = 15
HISTORIES = 50
SIZE = 1000.0
BUDGETS = {"history_100_us": 1.0, "rewind_ray_100_us": 2.0, "rewind_ray_1000_us": 5.0}


class Npc(Entity):
    x: f32
    y: f32
    name: str = ""
    ammo: owner_only[u8] = 0
    wears: Json[list[int] | None] = None


poses = History(Npc, "x", "y")
SCHEMA = Schema(entities=[Npc])


class Crowd(Room):
    """`npcs` of them, all of which move each tick. `then` is what else on_tick does."""

    schema = SCHEMA
    npcs = 100
    then: Callable[[], None] | None = None

    def on_create(self) -> None:
        place = random.Random(4)
        for _ in range(self.npcs):
            self.entities.add(Npc(x=place.uniform(0, SIZE), y=place.uniform(0, SIZE), name="npc"))

    def on_tick(self, dt: float) -> None:
        npcs = self.entities.columns(Npc)
        npcs.x += 0.5
        if self.then is not None:
            self.then()


class Recorded(Crowd):
    history = tuple(History(Npc, "x", "y") for _ in range(HISTORIES))


class Range(Crowd):
    history = (poses,)


class BigRange(Range):
    npcs = 1000


class Runner:
    """A room, and the clock that its ticks go by."""

    def __init__(self, room_class: type[Crowd]) -> None:
        self.now = 0.0
        self.core = RoomCore(room_class, identity=RoomIdentity("bench", "room", "uid"), generation=1)
        self.core.start(None, WakeInfo("connect"), Now(0.0, 0.0))
        self.tick(20)

    @property
    def room(self) -> Crowd:
        room: Crowd = self.core.room  # type: ignore[assignment]
        return room

    def tick(self, count: int) -> None:
        for _ in range(count):
            self.now += 0.05
            self.core.tick(Now(self.now, self.now))
            self.core.take_outputs()
            self.core.durable(self.core.version, Now(self.now, self.now))

    def tick_us(self, count: int = 200) -> float:
        started = time.process_time()
        self.tick(count)
        return (time.process_time() - started) / count * 1e6


def recording_us() -> float:
    without, recorded = Runner(Crowd), Runner(Recorded)
    differences = []
    for _ in range(RUNS):
        base = without.tick_us()
        differences.append((recorded.tick_us() - base) / HISTORIES)
    return median(differences)


def shooting_us(room_class: type[Range]) -> float:
    runner, room_times = Runner(room_class), []
    chance = random.Random(5)
    shots = [
        (
            chance.uniform(1.01, 4.99),
            (chance.uniform(0, SIZE), chance.uniform(0, SIZE)),
            (math.cos(angle), math.sin(angle)),
        )
        for angle in (chance.uniform(0, 2 * math.pi) for _ in range(500))
    ]
    room = runner.room

    def shoot() -> None:
        started = time.process_time()
        for ago, origin, direction in shots:
            past = room.rewind(poses, room.tick - ago)
            past.ray(origin, direction, reach=400, radius=8, skip={2})
        room_times.append((time.process_time() - started) / len(shots) * 1e6)

    room.then = shoot
    runner.tick(RUNS)
    return median(room_times)


def main() -> int:
    figures = {
        "history_100_us": recording_us(),
        "rewind_ray_100_us": shooting_us(Range),
        "rewind_ray_1000_us": shooting_us(BigRange),
    }
    return report(figures, BUDGETS)


if __name__ == "__main__":
    sys.exit(main())
