"""What a tick costs of a room in which everyone sees everything: 400 connections, each with an entity, and
all of them moved.

    .venv/bin/python benchmarks/fan_out.py

`broadcast_400_us` is CPU time of a tick beyond the room's own code: versions, the record, one body for all
and 400 links to send it to, on `RoomCore` with records made durable and the inspector's clock running; the
median of many. Exits 1 where it is over its budget; the pure engine (`PLAYHALL_PURE=1`) has none.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

from measuring import join_request

from playhall.engine.backend import native
from playhall.engine.core import RoomCore
from playhall.engine.outputs import BaseOut, FramesOut, Now, RecordOut, RoomIdentity, WakeInfo
from playhall.room import Connection, Entity, Room, Schema, f32

CONNECTIONS = 400
TICKS, WARM_UP = 200, 20
BUDGET_US = 150.0


class Mover(Entity):
    x: f32
    y: f32


class Plaza(Room):
    schema = Schema(entities=[Mover])
    tick_rate = 20
    max_players = CONNECTIONS
    spent = 0.0

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Mover(x=0.0, y=0.0), owner=conn.player)

    def on_tick(self, dt: float) -> None:
        began = time.thread_time()
        for mover in self.entities.all(Mover):
            mover.x += 1.0
            mover.y -= 0.5
        self.spent = time.thread_time() - began


def main() -> int:
    now = Now(0.0, 0.0)
    identity = RoomIdentity("bench", "plaza", "uid")
    core = RoomCore(Plaza, identity=identity, generation=1, clock=time.perf_counter)
    core.start(None, WakeInfo(), now)
    for link in range(1, CONNECTIONS + 1):
        core.join(link, join_request(link, Plaza.schema.hash), now)
    core.take_outputs()
    room: Any = core.room
    beyond: list[float] = []
    size = 0
    for _ in range(WARM_UP + TICKS):
        now = Now(now.mono + 0.05, now.wall + 0.05)
        began = time.thread_time()
        core.tick(now)
        outputs = core.take_outputs()
        beyond.append(time.thread_time() - began - room.spent)
        size = sum(len(output.data) for output in outputs if isinstance(output, FramesOut))
        for output in outputs:
            if isinstance(output, RecordOut | BaseOut):
                core.durable(output.version, now)
    spent = statistics.median(beyond[WARM_UP:]) * 1e6
    line: dict[str, Any] = {"metric": f"broadcast_{CONNECTIONS}_us", "value": round(spent, 1)}
    if native:
        line |= {"budget": BUDGET_US, "met": spent <= BUDGET_US}
    print(json.dumps({**line, "frame_bytes": size}))
    return int(native and spent > BUDGET_US)


if __name__ == "__main__":
    sys.exit(main())
