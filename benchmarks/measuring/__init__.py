"""What the benchmarks of the engine share: a room as a room host runs it, without I/O, and their output."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from playhall.engine.core import RoomCore
from playhall.engine.frames import Resume
from playhall.engine.outputs import BaseOut, FramesOut, JoinRequest, Now, RecordOut, RoomIdentity, WakeInfo
from playhall.room import Room

__all__ = ["Stage", "join_request", "report"]


class Stage:
    """A room with a clock, whose records are durable at once, and some links that read all they get.

    Of the last tick there are `records`, the bytes of each record and base; `frames`, the bytes of all frame
    groups; and `flush_us`, microseconds of CPU time from the end of on_tick to that of the tick, where the
    room's on_tick notes its end as `ended_ns` (time.process_time_ns).
    """

    def __init__(
        self,
        room_class: type[Room[Any, Any, Any]],
        *,
        links: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`clock`: seconds, by which the room times itself."""
        self.now = Now(0.0, 0.0)
        self.records: list[int] = []
        self.frames = 0
        self.flush_us = 0.0
        self.core = RoomCore(
            room_class,
            identity=RoomIdentity("bench", "stage", "uid"),
            generation=1,
            clock=clock,
        )
        self.core.start(None, WakeInfo(), self.now)
        self._carry_out()
        for link in range(1, links + 1):
            self.core.join(link, join_request(link, room_class.schema.hash), self.now)
            self._carry_out()

    @property
    def room(self) -> Any:
        return self.core.room

    def tick(self) -> None:
        """Run a tick, and carry out what comes of it."""
        at = self.now.mono + 1 / self.core.tick_rate
        self.now = Now(at, at)
        self.records, self.frames = [], 0
        self.core.tick(self.now)
        self.flush_us = (time.process_time_ns() - getattr(self.room, "ended_ns", 0)) / 1e3
        self._carry_out()

    def _carry_out(self) -> None:
        for output in self.core.take_outputs():
            if isinstance(output, RecordOut | BaseOut):
                self.records.append(len(output.data))
                self.core.durable(output.version, self.now)
            elif isinstance(output, FramesOut):
                self.frames += len(output.data)
        status = self.core.status.value
        if status not in ("starting", "active"):
            raise RuntimeError(f"the room of the benchmark is {status}")


def join_request(link: int, schema_hash: Any, room_type: str = "") -> JoinRequest:
    """A player who was not there before, with credit for all that the room sends."""
    return JoinRequest(
        player=f"p{link}",
        meta=None,
        schema_hash=schema_hash,
        session=b"%d" % link,
        attempt=0,
        connected_at_ms=link,
        was_joined=False,
        resume=Resume(0, 0, 0, full=False, held=()),
        connection_id=f"c{link}",
        room_type=room_type,
        credit_bytes=2**40,
    )


def report(figures: Mapping[str, float], budgets: Mapping[str, float]) -> int:
    """Print a JSON line for each figure. Returns a process's status: 1 where one is over its budget."""
    missed = 0
    for metric, value in figures.items():
        met = value <= budgets[metric]
        missed |= not met
        line = {"metric": metric, "value": round(value, 3), "budget": budgets[metric], "met": met}
        print(json.dumps(line), flush=True)
    return int(missed)
