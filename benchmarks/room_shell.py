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
import time
from collections.abc import Sequence
from typing import Any

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2 as store_pb
from playhall.engine.outputs import FramesOut, Now, Output, RecordOut, RoomIdentity, Status
from playhall.engine.packing import STREAM_SHIFT, pack_group, pack_up
from playhall.engine.running import Watch
from playhall_common.record_runs import pack_durable, read_run
from playhall_roomhost.build import LoadedBuild
from playhall_roomhost.host import RoomHost
from playhall_roomhost.pulse import PulseWriter, create_page
from playhall_roomhost.room import RunningRoom
from playhall_roomhost.slow_calls import SlowCalls
from playhall_roomhost.statestore_client import ShardClient, Token

ROOMS = 200
LINKS = 4
RATE = 20
MESSAGE_US = 1.5
TICK_US = 10.0
ROUNDS = 20
FRAME = bytes(24)
HIGH = 1 << STREAM_SHIFT


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
    """A host that is called as its loop and its streams would call it."""

    def __init__(self) -> None:
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
        self.cores = [self._room(index) for index in range(ROOMS)]
        # As many small rooms have it: in a batch there is a frame or two of a room.
        runs = [
            b"".join(pack_up(link, FRAME) for link in self.stream.links if link % LINKS == n)
            for n in range(LINKS)
        ]
        self.ups = [pb.AttachRequest(items=[pb.Up(frames=run)]) for run in runs]

    def _room(self, index: int) -> Core:
        links = range(index * LINKS + 1, (index + 1) * LINKS + 1)
        core: Any = Core(links)
        identity = RoomIdentity("bench", f"room-{index}", f"01M8PKXT20EYZK75{index:010}")
        watch = Watch(self.host.pulse.hook_page, 1 / RATE, time.monotonic)
        room = RunningRoom(core, identity, 1, self.shard, self.host, SlowCalls(1 / RATE, watch))
        self.shard.add(identity.room_uid, 1)
        self.host.scheduler.add(room)
        self.host.scheduler.start(room, RATE, 0.0)
        room._status = Status.ACTIVE
        list(room._arrivals.open(to_all=True))
        for link in links:
            self.stream.admit(link, room)
            room._links.add(HIGH | link)
        place: Any = type("Place", (), {"room": room})
        self.host.rooms._places[identity.room_uid] = place
        return core

    async def messages_us(self) -> float:
        """A message of each client."""
        self.shard.stream.received(store_pb.WriteResponse(), time.monotonic())
        began = time.thread_time()
        for up in self.ups:
            await self.host.upstream(self.stream, up)
        return (time.thread_time() - began) / (ROOMS * LINKS) * 1e6

    def ticks_us(self, at: float) -> float:
        """A tick of each room, in passes as the ticker makes them."""
        scheduler, run = self.host.scheduler, self.host._due
        writes = self.shard.stream
        began = time.thread_time()
        ticks = 0
        while (due := scheduler.next_due()) is not None and due < at + 1 / RATE:
            while (taken := scheduler.take(due)) is not None:
                run(taken, time.monotonic())
                scheduler.took(taken.key, 0.0)
                ticks += 1
            self.host._flush()
            sent = writes.next_request()
            self.stream.take()
            if sent is not None:
                # Not the shell's: what the shard says.
                paused = time.thread_time()
                durable = pack_durable((record[0], record[2]) for record in read_run(sent.run))
                began += time.thread_time() - paused
                writes.received(store_pb.WriteResponse(durable=durable), time.monotonic())
                self.shard._dispatch()
        return (time.thread_time() - began) / ticks * 1e6


async def main() -> None:
    bench = Bench()
    messages, ticks = [], []
    for number in range(ROUNDS):
        ticks.append(bench.ticks_us(number / RATE))
        messages.append(await bench.messages_us())
    assert all(
        core.received == LINKS * ROUNDS and core.acknowledged == core.tick_number for core in bench.cores
    )
    for metric, value, budget in (
        ("shell_message_us", min(messages), MESSAGE_US),
        ("shell_tick_us", min(ticks), TICK_US),
    ):
        print(
            json.dumps({"metric": metric, "value": round(value, 2), "budget": budget, "met": value <= budget})
        )
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
