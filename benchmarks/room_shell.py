"""What the room host's shell adds to the engine, gRPC apart, with 200 rooms of 4 whose cores do nothing: to a
message, from the router's batch to the core; to a tick, from the scheduler to the batches in which its frame
and its record leave, with the acknowledgement of the record.

    .venv/bin/python benchmarks/room_shell.py

Prints JSON lines of CPU time, the best of several rounds.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from measuring import join_request

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2 as store_pb
from playhall.engine.core import RoomCore
from playhall.engine.frames import Message, encode_client
from playhall.engine.outputs import (
    FramesOut,
    Now,
    Output,
    RecordOut,
    RoomIdentity,
    Status,
    WakeInfo,
)
from playhall.engine.packing import STREAM_SHIFT, pack_group, pack_up
from playhall.engine.running import Watch
from playhall_common.record_runs import pack_durable, read_run
from playhall_roomhost.build import LoadedBuild
from playhall_roomhost.host import RoomHost
from playhall_roomhost.pulse import PulseWriter, create_page
from playhall_roomhost.room import RunningRoom
from playhall_roomhost.slow_calls import SlowCalls
from playhall_roomhost.statestore_client import ShardClient, Token

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from game.room import Small

ROOMS = 200
LINKS = 4
RATE = 20
MESSAGE_US = 1.5
TICK_US = 10.0
ROUNDS = 20
FRAME = bytes(24)
HIGH = 1 << STREAM_SHIFT
OTHERS = bytearray(8 * 1024 * 1024)
"""What others use between two passes: more than a core's own caches hold."""


class Core:
    """What a room's core looks like to the shell. A tick gives a frame for all and a record."""

    status = Status.ACTIVE
    shard_heard = True
    awaits_durable = False
    tick_rate = RATE

    def __init__(self, links: range) -> None:
        self.tick_number = self.received = self.acknowledged = 0
        self.outputs: list[Output] = []
        heads = [bytes([1, 2, 3, 4])] * len(links)
        self.frames = FramesOut(pack_group([HIGH | link for link in links], heads, bytes(60)))

    @property
    def has_outputs(self) -> bool:
        return bool(self.outputs)

    def take_outputs(self) -> list[Output]:
        outputs, self.outputs = self.outputs, []
        return outputs

    def receive_all(self, frames: Sequence[tuple[int, bytes]], start: int, until: float, now: Now) -> int:
        self.received += len(frames) - start
        return len(frames) - start

    def tick(self, now: Now) -> None:
        self.tick_number += 1
        number = self.tick_number
        self.outputs = [RecordOut(number - 1, number, number, bytes(40)), self.frames]

    def next_timer(self) -> float | None:
        return None

    def durable(self, version: int, now: Now) -> None:
        self.acknowledged += 1


class Bench:
    """A host that is called as its loop and its streams would call it. `between` is called, and not counted,
    between passes."""

    frame = FRAME

    def __init__(self, between: Callable[[], object] = lambda: None) -> None:
        self.between = between
        self.host = RoomHost(
            LoadedBuild({}),
            host_id="h1",
            address="unix:/nowhere",
            project="bench",
            max_rooms=ROOMS,
            pulse=PulseWriter(create_page()),
            on_change=lambda: None,
            on_token=lambda token: None,
        )
        self.host._ticker.stop()
        hello = pb.AttachHello(host_id="h1", router_id="r1")
        self.stream, _ = self.host.attach(hello, lambda: None)
        self.shard = ShardClient("unix:/nowhere", "h1", Token(), self.host._on_events, list)
        self.shard.stream.connected(time.monotonic())
        self.shard.stream.next_request()
        self.shard.stream.received(store_pb.WriteResponse(hello=True), time.monotonic())
        self.cores: list[Any] = [self._room(index) for index in range(ROOMS)]
        # As many small rooms have it: in a batch there is a frame or two of a room.
        runs = [
            b"".join(pack_up(link, self.frame) for link in self.stream.links if link % LINKS == n)
            for n in range(LINKS)
        ]
        self.ups = [pb.AttachRequest(items=[pb.Up(frames=run)]) for run in runs]

    def _room(self, index: int) -> Any:
        links = range(index * LINKS + 1, (index + 1) * LINKS + 1)
        identity = RoomIdentity("bench", f"room-{index}", f"01M8PKXT20EYZK75{index:010}", "small")
        watch = Watch(self.host.pulse.hook_page, 1 / RATE, time.monotonic)
        core = self._core(links, identity, watch)
        room = RunningRoom(core, identity, 1, self.shard, self.host, SlowCalls(1 / RATE, watch))
        self.shard.add(identity.room_uid, 1)
        place: Any = type("Place", (), {"room": room})
        self.host.rooms._places[identity.room_uid] = place
        for link in links:
            self.stream.admit(link, room)
        self._start(room, links)
        return core

    def _core(self, links: range, identity: RoomIdentity, watch: Watch) -> Any:
        return Core(links)

    def _start(self, room: RunningRoom, links: range) -> None:
        self.host.scheduler.add(room)
        self.host.scheduler.start(room, RATE, 0.0)
        room._status = Status.ACTIVE
        list(room._arrivals.open(to_all=True))
        room._links |= {HIGH | link for link in links}

    async def messages_us(self) -> float:
        """A message of each client."""
        self.shard.stream.received(store_pb.WriteResponse(), time.monotonic())
        took = 0.0
        for up in self.ups:
            self.between()
            began = time.thread_time()
            await self.host.upstream(self.stream, up)
            took += time.thread_time() - began
        return took / (ROOMS * LINKS) * 1e6

    def ticks_us(self, at: float) -> float:
        """A tick of each room, in passes as the ticker makes them."""
        scheduler, run = self.host.scheduler, self.host._due
        writes = self.shard.stream
        took = 0.0
        ticks = 0
        while (due := scheduler.next_due()) is not None and due < at + 1 / RATE:
            self.between()
            began = time.thread_time()
            while (taken := scheduler.take(due)) is not None:
                run(taken, time.monotonic())
                scheduler.took(taken.key, 0.0)
                ticks += 1
            self.host._flush()
            sent = writes.next_request()
            self.host.take(self.stream)
            took += time.thread_time() - began
            if sent is not None:
                # Not the shell's: what the shard says.
                durable = pack_durable((record[0], record[2]) for record in read_run(sent.run))
                began = time.thread_time()
                writes.received(store_pb.WriteResponse(durable=durable), time.monotonic())
                self.shard._dispatch()
                took += time.thread_time() - began
        return took / ticks * 1e6


class SmallBench(Bench):
    """A host with rooms that are real."""

    frame = encode_client(Message({"type": "move", "dx": 0.25, "dy": -0.5, "seq": 7}, 1))

    def _core(self, links: range, identity: RoomIdentity, watch: Watch) -> RoomCore:
        return RoomCore(Small, identity=identity, generation=1, clock=time.perf_counter, watch=watch)

    def _start(self, room: RunningRoom, links: range) -> None:
        room.start(None, WakeInfo())
        for link in links:
            room.join(HIGH | link, join_request(link, Small.schema.hash, "small"))
        assert room.connections == len(links)
        # The shard has what it was sent so far, and what it says of itself is up to date.
        self.host.scheduler.start(room, RATE, 0.0)


def use_caches() -> None:
    """Use more memory than they hold, as other processes and what stands between two passes do."""
    OTHERS[::64] = bytes(len(OTHERS) // 64)


async def main() -> None:
    bench = Bench()
    cold = SmallBench(use_caches)
    messages, ticks, cold_messages, cold_ticks = [], [], [], []
    for number in range(ROUNDS):
        ticks.append(bench.ticks_us(number / RATE))
        messages.append(await bench.messages_us())
        cold_messages.append(await cold.messages_us())
        cold_ticks.append(cold.ticks_us(number / RATE))
    assert all(
        core.received == LINKS * ROUNDS and core.acknowledged == core.tick_number for core in bench.cores
    )
    assert all(core.tick_number == ROUNDS for core in cold.cores)
    for metric, times, budget in (
        ("shell_message_us", messages, MESSAGE_US),
        ("shell_tick_us", ticks, TICK_US),
        ("cold_message_us", cold_messages, None),
        ("cold_tick_us", cold_ticks, None),
    ):
        line: dict[str, object] = {"metric": metric, "value": round(min(times), 2)}
        if budget is not None:
            line |= {"budget": budget, "met": min(times) <= budget}
        print(json.dumps(line))
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
