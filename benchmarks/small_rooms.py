"""Two hundred small rooms without I/O: what one message and one tick cost beside the room's own code.

    .venv/bin/python benchmarks/small_rooms.py

The rooms are those of benchmarks/peers/game: four connections each at 20 ticks a second, everybody sends a
move a tick and sees everybody. They are timed and recorded for the inspector, and what they save is
acknowledged. CPU times in microseconds, the best of several rounds, less what on_message and on_tick take
when they are called alone. Exits 1 where one is over its budget.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import join_request

from playhall.engine.core import RoomCore
from playhall.engine.frames import Message, encode_client
from playhall.engine.outputs import (
    BaseOut,
    FramesOut,
    Now,
    Output,
    RecordOut,
    RoomIdentity,
    WakeInfo,
)
from playhall.engine.packing import read_groups

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from game.room import Small

ROOMS = 200
LINKS = 4
ROUNDS = 15
TICK_S = 0.05
BUDGETS = {"message_us": 2.5, "small_tick_us": 15.0, "drained_us": 0.5}


class Hall:
    """One room, its connections, and what the last tick sent them."""

    def __init__(self, number: int) -> None:
        self.now = Now(100.0, 1_700_000_000.0)
        self.drained = dict.fromkeys(range(number * LINKS + 1, (number + 1) * LINKS + 1), 0)
        self.links = list(self.drained)
        identity = RoomIdentity("bench", f"hall-{number}", f"uid{number}", "small")
        self.core = RoomCore(Small, identity=identity, generation=1, clock=time.perf_counter)
        self.core.start(None, WakeInfo(), self.now)
        self.carry_out()
        for link in self.links:
            self.core.join(link, join_request(link, Small.schema.hash, "small"), self.now)
            self.carry_out()
        assert self.core.connection_count == LINKS

    def carry_out(self) -> None:
        """Do with the outputs what costs least."""
        for output in self.core.take_outputs():
            if type(output) is FramesOut:
                self.count(output.data)
            elif type(output) is RecordOut or type(output) is BaseOut:
                self.core.durable(output.version, self.now)

    def count(self, groups: bytes) -> None:
        for group in read_groups(groups):
            for index, link in enumerate(group.links):
                head = group.heads[index if len(group.heads) > 1 else 0]
                self.drained[link] += len(head) + len(group.body)

    def tick(self) -> list[Output]:
        """Tick, and return the outputs, which are not carried out but for the records that become durable."""
        self.now = Now(self.now.mono + TICK_S, self.now.wall + TICK_S)
        self.core.tick(self.now)
        self.core.next_timer()
        outputs = self.core.take_outputs()
        for output in outputs:
            if type(output) is RecordOut:
                self.core.durable(output.version, self.now)
        return outputs


class Bench:
    """All rooms, and the best time of each measure."""

    def __init__(self) -> None:
        self.halls = [Hall(number) for number in range(ROOMS)]
        self.best: dict[str, float] = {}

    def run(self, round_: int) -> None:
        """Do once all that is measured."""
        moves: list[Any] = [
            {"type": "move", "dx": 0.25 * n, "dy": -0.5, "seq": round_ * LINKS + n} for n in range(LINKS)
        ]
        frames = [encode_client(Message(move, round_)) for move in moves]
        batches = [list(zip(hall.links, frames, strict=True)) for hall in self.halls]
        outputs: list[list[Output]] = []

        def receive() -> None:
            for hall, batch in zip(self.halls, batches, strict=True):
                hall.core.receive_all(batch, 0, math.inf, hall.now)

        def tick() -> None:
            outputs.extend([hall.tick() for hall in self.halls])

        def drain() -> None:
            for hall in self.halls:
                for link, total in hall.drained.items():
                    hall.core.drained(link, total, hall.now)

        def handle_alone() -> None:
            for hall in self.halls:
                room = hall.core.room
                for conn, move in zip(room.connections.values(), moves, strict=True):
                    room.on_message(conn, move)

        def tick_alone() -> None:
            for hall in self.halls:
                hall.core.room.on_tick(TICK_S)

        self.note("message_whole_us", receive, LINKS)
        self.note("small_tick_whole_us", tick, 1)
        for hall, each in zip(self.halls, outputs, strict=True):
            hall.count(b"".join(output.data for output in each if isinstance(output, FramesOut)))
        self.note("drained_us", drain, LINKS)
        self.note("on_message_us", handle_alone, LINKS)
        self.note("on_tick_us", tick_alone, 1)

    def note(self, name: str, call: Callable[[], object], times: int) -> None:
        """Measure a call that does something so many times in each room."""
        began = time.process_time()
        call()
        took = (time.process_time() - began) / (ROOMS * times) * 1e6
        self.best[name] = min(self.best.get(name, math.inf), took)


def main() -> int:
    bench = Bench()
    for round_ in range(ROUNDS):
        bench.run(round_)
    best = bench.best
    best["message_us"] = best["message_whole_us"] - best["on_message_us"]
    best["small_tick_us"] = best["small_tick_whole_us"] - best["on_tick_us"]
    met = True
    for name, value in best.items():
        line: dict[str, object] = {"metric": name, "value": round(value, 2)}
        if name in BUDGETS:
            line |= {"budget": BUDGETS[name], "met": value <= BUDGETS[name]}
            met = met and value <= BUDGETS[name]
        print(json.dumps(line))
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
