"""A room whose code takes longer than its ticks runs in slow motion; its process goes on for everybody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.packing import pack_up
from tests.support.processes import Processes, ServiceProcess
from tests.support.room_hosts import GAME, Pod, Shard, make_build, message_frame, new_uid

SLOW_GAME = GAME.replace(
    "    def on_tick(self, dt):\n",
    """
    def on_tick(self, dt):
        if self.id.endswith("slow"):
            time.sleep(0.12)
            self.state.moves += 1
""",
).replace(
    '        if do == "move":\n',
    """
        if do == "dawdle":
            time.sleep(0.12)
            return
        if do == "stumble":
            raise ValueError("a stone")
        if do == "move":
""",
)
LASTS_S = 8.0
"""Longer than a shard waits for a holder's heartbeats."""
RATE = 20


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shard]:
    with Shard(tmp_path_factory.mktemp("shard")) as shard:
        yield shard


@pytest.fixture
def supervisor(processes: Processes, tmp_path: Path) -> ServiceProcess:
    return processes.start("roomhost", RUN_DIR=tmp_path)


@pytest_asyncio.fixture
async def pod(supervisor: ServiceProcess, shard: Shard) -> AsyncIterator[Pod]:
    async with Pod(supervisor.grpc, shard.address) as connected:
        yield connected


@pytest.mark.asyncio
async def test_a_room_that_is_slower_than_its_ticks_keeps_its_grant_and_lets_others_tick(
    pod: Pod, supervisor: ServiceProcess, tmp_path: Path
) -> None:
    process = await pod.prepare(make_build(tmp_path / "build", SLOW_GAME))
    slow, quick = new_uid(), new_uid()
    router = await pod.attach(process)
    slow_generation = await pod.started(process, slow, room_id="slow")
    slow_link = await router.enter(slow, slow_generation)
    quick_link = await router.enter(quick, await pod.started(process, quick, room_id="quick"))
    began, before = time.monotonic(), await router.ask(quick_link)
    updates = router.updates[slow_link]
    asked = 0
    while time.monotonic() - began < LASTS_S:
        await router.ask(quick_link, timeout_s=5.0)
        asked += 1
    after, took_s = await router.ask(quick_link), time.monotonic() - began
    assert (await router.ask(slow_link))["tick"] > LASTS_S
    assert router.endings(slow) == router.endings(quick) == []
    assert router.updates[slow_link] - updates > LASTS_S
    assert asked > 5 * LASTS_S, "the process has time for RPCs"
    assert after["tick"] - before["tick"] > RATE * took_s / 2
    await pod.everything_durable(process)
    told = supervisor.log_lines("room_slow")
    assert {(line["room_uid"], line["hook"]) for line in told} == {(slow, "on_tick")}
    assert "ms of the 50 ms of a tick" in told[0]["reason"]
    assert len(told) <= 3, "it is told of once in ten seconds"
    assert supervisor.log_lines("room_lost") == []
    assert supervisor.log_lines("shard_silent") == []
    assert (await pod.start(process, slow, has_state=True)).started.generation == slow_generation


@pytest.mark.asyncio
async def test_many_slow_messages_at_once_block_nobody(
    pod: Pod, supervisor: ServiceProcess, tmp_path: Path
) -> None:
    """All together they take longer than the watchdog lets one call block."""
    process = await pod.prepare(make_build(tmp_path / "build", SLOW_GAME))
    flooded, quick = new_uid(), new_uid()
    flood, router = await pod.attach(process, "r1"), await pod.attach(process, "r2")
    link = await flood.enter(flooded, await pod.started(process, flooded))
    quick_link = await router.enter(quick, await pod.started(process, quick))
    before = (await router.ask(quick_link))["tick"]
    payload = message_frame({"do": "dawdle"})
    await flood.send(pb.Up(frames=pack_up(link, payload) * 43))
    answering = asyncio.create_task(flood.ask(link))
    asked = 0
    while not answering.done():
        ticks = (await router.ask(quick_link, timeout_s=4.0))["tick"] - before
        asked += 1
    await answering
    assert asked > 5
    assert ticks > RATE
    assert supervisor.log_lines("process_stuck") == []
    (told,) = supervisor.log_lines("room_slow")
    assert (told["room_uid"], told["hook"]) == (flooded, "on_message")


@pytest.mark.asyncio
async def test_an_error_that_comes_again_and_again_is_told_once_with_how_often(
    pod: Pod, supervisor: ServiceProcess, tmp_path: Path
) -> None:
    process = await pod.prepare(make_build(tmp_path / "build", SLOW_GAME))
    uid = new_uid()
    router = await pod.attach(process)
    generation = await pod.started(process, uid)
    link = await router.enter(uid, generation)
    for _ in range(38):
        await router.say(link, do="stumble")
    await router.ask(link)
    (line,) = supervisor.log_lines("room.hook_failed")
    assert "a stone" in line["traceback"]
    await router.leave(link)
    await pod.hibernate(process, uid, generation)
    _, again = supervisor.log_lines("room.hook_failed")
    assert (again["hook"], again["error"]) == ("on_message", "ValueError: a stone")
    assert again["reason"] == "same error 37 times before the room ended"
    assert "traceback" not in again
