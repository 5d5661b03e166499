"""A room of 200 connections without I/O: what a tick costs in which everybody sends and everything moves, and
what one costs in which clients write as much as they can.

    .venv/bin/python benchmarks/room_core.py

Prints JSON lines of CPU times in milliseconds, the best of several ticks. Exits 1 where a busy tick takes
over a tenth of its 50 ms, or where the writes of many clients cost far more than so many times those of one.
"""

from __future__ import annotations

import json
import sys
import time

from measuring import join_request

from playhall.engine.core import RoomCore
from playhall.engine.frames import Message as MessageFrame
from playhall.engine.frames import Write, WriteEntry, encode_client
from playhall.engine.kinds import spec_of
from playhall.engine.outputs import BaseOut, Now, RecordOut, RoomIdentity, WakeInfo
from playhall.engine.writes import MAX_WAITING
from playhall.room import Connection, Entity, Message, Room, Schema, f32, u32, writable

CONNECTIONS = 200
TICKS = 60
BUSY_MS = 5.0
WRITERS = 20
# They are linear, but for what no cache holds.
WRITES_RATIO = 2.0 * WRITERS


class Mover(Entity):
    x: f32
    y: f32


class Cursor(Entity):
    x: writable[f32] = 0.0


class Board(Entity):
    moves: u32 = 0


class Moving(Room[Board]):
    """A message moves the sender's entity."""

    schema = Schema(state=Board, entities=[Mover, Cursor])
    tick_rate = 20
    max_players = CONNECTIONS

    def on_join(self, conn: Connection) -> None:
        self.entities.add(Mover(x=0.0, y=0.0), owner=conn.player)

    def on_message(self, conn: Connection, message: Message) -> None:
        mover = self.entities.first(Mover, owner=conn.player)
        assert mover is not None
        assert isinstance(message, list)
        mover.x, mover.y = message  # type: ignore[assignment]
        self.state.moves += 1


class Hall:
    """The room, its connections, and a store that is done at once."""

    def __init__(self) -> None:
        self.now = Now(0.0, 0.0)
        self.core = RoomCore(Moving, identity=RoomIdentity("bench", "hall", "uid"), generation=1)
        self.core.start(None, WakeInfo(), self.now)
        self.carry_out()
        for link in range(1, CONNECTIONS + 1):
            self.core.join(link, join_request(link, Moving.schema.hash), self.now)
            self.carry_out()

    def carry_out(self) -> None:
        for output in self.core.take_outputs():
            if isinstance(output, RecordOut | BaseOut):
                self.core.durable(output.version, self.now)

    def tick_ms(self, frames: list[tuple[int, bytes]]) -> float:
        """Return the CPU time of these frames and a tick."""
        began = time.process_time()
        for link, frame in frames:
            self.core.receive(link, frame, self.now)
        self.now = Now(self.now.mono + 0.05, self.now.wall + 0.05)
        self.core.tick(self.now)
        self.carry_out()
        return (time.process_time() - began) * 1e3


def _moves(tick: int) -> list[tuple[int, bytes]]:
    return [
        (link, encode_client(MessageFrame([tick * 0.5 + link, tick - link * 0.5], tick)))
        for link in range(1, CONNECTIONS + 1)
    ]


def _writes(links: int) -> list[tuple[int, bytes]]:
    """As many writes as may wait, to what is not there."""
    spec = spec_of(Cursor)
    ids = range(1_000_000, 1_000_000 + MAX_WAITING)
    entries = tuple(WriteEntry(id, 1, spec, {0: 1.0}) for id in ids)
    frame = encode_client(Write(0, entries))
    return [(link, frame) for link in range(1, links + 1)]


def main() -> int:
    hall = Hall()
    busy = min(hall.tick_ms(_moves(tick)) for tick in range(TICKS))
    one, many = (min(hall.tick_ms(_writes(links)) for _ in range(3)) for links in (1, WRITERS))
    for name, ms in (("busy_tick", busy), ("writes_of_1", one), (f"writes_of_{WRITERS}", many)):
        print(json.dumps({"benchmark": f"room_core/{name}", "ms": round(ms, 2)}))
    return int(busy > BUSY_MS or many > WRITES_RATIO * one)


if __name__ == "__main__":
    sys.exit(main())
