"""What a tick costs in which everything moves and everybody sees what is near: finding what each connection
sees, and the frames that tell it.

    .venv/bin/python benchmarks/interest.py

The scenes: a world of 2,000 x 2,000 units, a range of 150, and 2,000 entities with 400 connections, or 16,384
with 1,000. Each connection looks from an entity of its own. Every entity moves at every tick, by `columns()`,
and has text, JSON and a field for owners only beside x and y. All of it is a room as a game declares it, on
`RoomCore`: records are written and made durable, and the inspector's clock runs.

`interest_..._ms` is CPU time from the end of the flush to the end of the frames, which is the step that
interest and sync have in the room's tick: what was changed is encoded there. The median of many ticks. The
rest of the tick (room code, stamps, the record) is printed beside it, without a budget. Exits 1 where a
budget is missed; the pure engine (`PLAYHALL_PURE=1`) has none.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import numpy as np
from measuring import join_request

from playhall.engine.backend import native
from playhall.engine.core import RoomCore
from playhall.engine.outputs import BaseOut, FramesOut, Now, RecordOut, RoomIdentity, WakeInfo
from playhall.room import Connection, Entity, Json, Room, Schema, f32, grid, owner_only, u16

SIZE, RANGE, CELL, STEP = 2_000, 150, 100, 5.0
TICKS, WARM_UP = 40, 5
SCENES = ((2_000, 400, 0.2), (16_384, 1_000, 3.5))


class Mover(Entity, max=16_384):
    x: f32
    y: f32
    name: str = "mover"
    purse: owner_only[u16] = 0
    bag: Json[Any] = {"things": []}  # noqa: RUF012 - a field's default, which every entity has for its own


class World(Room):
    schema = Schema(entities=[Mover])
    tick_rate = 20
    max_players = 1_000
    interest = grid(cell_size=CELL, range=RANGE, around=Mover)

    def fill(self, entities: int, dice: np.random.Generator) -> None:
        """Make what there is beside the entities of players, and say how all of it goes."""
        self.dice = dice
        for x, y in dice.uniform(0, SIZE, (entities, 2)).tolist():
            self.entities.add(Mover(x=x, y=y))

    def on_join(self, conn: Connection) -> None:
        x, y = self.dice.uniform(0, SIZE, 2).tolist()
        self.entities.add(Mover(x=x, y=y), owner=conn.player)

    def head_off(self) -> None:
        ways = self.dice.uniform(0, 2 * np.pi, len(self.entities.columns(Mover)))
        self.steps = (np.cos(ways) * STEP).astype(np.float32), (np.sin(ways) * STEP).astype(np.float32)

    def on_tick(self, dt: float) -> None:
        movers = self.entities.columns(Mover)
        movers.x = (movers.x + self.steps[0]) % SIZE
        movers.y = (movers.y + self.steps[1]) % SIZE


class TimedCore(RoomCore):
    """One whose methods can be replaced: it has a dict."""


class Scene:
    """The room with its connections, and a store that is done at once."""

    def __init__(self, entities: int, connections: int) -> None:
        self.now = Now(0.0, 0.0)
        # Interest and sync follow each other, so the clock runs from the first to the end of the second.
        self.spent = 0.0
        self.core = TimedCore(
            World,
            identity=RoomIdentity("bench", "world", "uid"),
            generation=1,
            clock=time.perf_counter,
        )
        self.core.start(None, WakeInfo(), self.now)
        room: Any = self.core.room
        room.fill(entities - connections, np.random.default_rng(7))
        for link in range(1, connections + 1):
            self.core.join(link, join_request(link, World.schema.hash), self.now)
        room.steps = np.float32(0), np.float32(0)
        self.tick()
        room.head_off()
        core: Any = self.core
        core._look = self._timed(core._look)
        core._runtime.sync.update = self._timed(core._runtime.sync.update)
        self.frame_bytes = 0

    def _timed(self, call: Any) -> Any:
        def timed(*args: Any, **options: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*args, **options)
            finally:
                self.spent += time.thread_time() - began

        return timed

    def tick(self) -> None:
        self.frame_bytes = 0
        self.now = Now(self.now.mono + 0.05, self.now.wall + 0.05)
        self.core.tick(self.now)
        for output in self.core.take_outputs():
            if isinstance(output, RecordOut | BaseOut):
                self.core.durable(output.version, self.now)
            elif isinstance(output, FramesOut):
                self.frame_bytes += len(output.data)

    def measure(self) -> tuple[float, float]:
        """Return CPU ms of interest and frames, and of the whole tick."""
        looks, wholes = [], []
        for tick in range(WARM_UP + TICKS):
            self.spent = 0.0
            began = time.thread_time()
            self.tick()
            if tick >= WARM_UP:
                wholes.append(time.thread_time() - began)
                looks.append(self.spent)
        return statistics.median(looks) * 1e3, statistics.median(wholes) * 1e3


def main() -> int:
    missed = False
    for entities, connections, budget in SCENES if native else SCENES[:1]:
        scene = Scene(entities, connections)
        interest, whole = scene.measure()
        metric = f"interest_{entities}x{connections}"
        line: dict[str, Any] = {"metric": f"{metric}_ms", "value": round(interest, 3)}
        if native:
            line |= {"budget": budget, "met": interest <= budget}
            missed = missed or interest > budget
        print(json.dumps(line))
        rest = {"value": round(whole - interest, 3), "frame_bytes": scene.frame_bytes}
        print(json.dumps({"metric": f"{metric}_rest_ms", **rest}))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
