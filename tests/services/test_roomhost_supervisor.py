"""The supervisor: builds, processes, the watchdog, drains."""

from __future__ import annotations

import asyncio
import os
import signal
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2 as store_pb
from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from tests.support.processes import Processes, ServiceProcess
from tests.support.room_hosts import GAME, Pod, Shard, make_build, new_uid, pid_of

RELEASED = pb.RoomEnded.REASON_RELEASED
FENCED = pb.RoomEnded.REASON_FENCED
DEAD = store_pb.RoomStatus.STATUS_DEAD
DEADLINE_S = 15.0


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shard]:
    with Shard(tmp_path_factory.mktemp("shard")) as shard:
        yield shard


@pytest.fixture
def supervisor(processes: Processes) -> ServiceProcess:
    return processes.start("roomhost", STUCK_S=1, METRICS_ADDRESS="127.0.0.1:0", IDLE_PROCESS_S=0)


@pytest_asyncio.fixture
async def pod(supervisor: ServiceProcess, shard: Shard) -> AsyncIterator[Pod]:
    async with Pod(supervisor.grpc, shard.address) as connected:
        yield connected


@pytest.fixture
def build(tmp_path: Path) -> pb.Build:
    return make_build(tmp_path / "build")


def wait_for_end(pid: int) -> None:
    """Return when no process of this pid runs."""
    try:
        psutil.Process(pid).wait(DEADLINE_S)
    except psutil.NoSuchProcess:
        return


@pytest.mark.asyncio
async def test_concurrent_prepares_share_one_process(pod: Pod, build: pb.Build) -> None:
    prepared = await asyncio.gather(*(pod.prepare(build) for _ in range(5)))
    assert len({process.host_id for process in prepared}) == 1
    state = await pod.until_state(lambda state: state.processes)
    assert state.project == build.project
    assert [process.host_id for process in state.processes] == [prepared[0].host_id]


@pytest.mark.asyncio
async def test_a_build_that_cannot_be_imported_is_refused_with_the_reason(
    pod: Pod, build: pb.Build, tmp_path: Path
) -> None:
    broken = make_build(tmp_path / "broken", "import no_such_module\n", build_id="b0")
    with pytest.raises(ApiError, match="No module named 'no_such_module'") as raised:
        await pod.prepare(broken)
    assert raised.value.code == ErrorCode.INVALID
    exits = make_build(tmp_path / "exits", "raise SystemExit(0)\n", build_id="b2")
    with pytest.raises(ApiError, match="SystemExit"):
        await pod.prepare(exits)
    assert (await pod.prepare(build)).build_id == "b1"


@pytest.mark.asyncio
async def test_a_pod_is_bound_to_one_project(pod: Pod, build: pb.Build) -> None:
    await pod.prepare(build)
    other = pb.Build()
    other.CopyFrom(build)
    other.project = "casino"
    with pytest.raises(ApiError) as raised:
        await pod.prepare(other)
    assert raised.value.code == ErrorCode.BUSY


@pytest.mark.asyncio
async def test_a_free_pod_retires_builds_of_that_project_only(pod: Pod, build: pb.Build) -> None:
    await pod.retire(5, project="casino")
    assert (await pod.prepare(build)).build_id == "b1"


@pytest.mark.asyncio
async def test_retired_rooms_move_to_the_new_build_with_their_players(
    pod: Pod, build: pb.Build, tmp_path: Path
) -> None:
    """Modules of both builds have the same name; each process has its own."""
    process = await pod.prepare(build)
    uid = new_uid()
    generation = await pod.started(process, uid)
    router = await pod.attach(process)
    link = await router.enter(uid, generation)
    await router.say(link, do="move", by=3)
    source = GAME.replace('message.get("by", 1)', '100 * message.get("by", 1)')
    newer = make_build(tmp_path / "newer", source, build_id="b2", deploy_seq=2)
    await pod.prepare(newer)
    assert await pod.retire(2) == 1
    await pod.until_state(lambda state: any(each.draining for each in state.processes))
    assert (await router.ask(link))["moves"] == 3, "it stays until a router found a place for it"
    assert router.endings(uid) == []
    await router.send(places=1)
    await router.until(lambda: RELEASED in router.endings(uid))
    assert not router.closed, "a move closes nobody"
    process = await pod.prepare(newer)
    router = await pod.attach(process)
    link = await router.enter(uid, await pod.started(process, uid, has_state=True))
    await router.say(link, do="move", by=1)
    assert (await router.ask(link))["moves"] == 103
    await pod.until_state(lambda state: [p.build_id for p in state.processes] == ["b2"])
    with pytest.raises(ApiError) as raised:
        await pod.prepare(build)
    assert raised.value.code == ErrorCode.STALE_BUILD, "a router that did not hear of it looks up again"


@pytest.mark.asyncio
@pytest.mark.ledger("HOOK-24")
async def test_a_blocked_loop_costs_the_process_and_a_strike_for_the_room(
    pod: Pod, build: pb.Build, supervisor: ServiceProcess, shard: Shard
) -> None:
    process = await pod.prepare(build)
    bad, good = new_uid(), new_uid()
    router = await pod.attach(process)
    bad_link = await router.enter(bad, await pod.started(process, bad))
    good_link = await router.enter(good, await pod.started(process, good))
    await router.say(good_link, do="move", by=9)
    await router.until(lambda: router.updates[good_link] >= 2)
    await pod.everything_durable(process)
    await router.say(bad_link, do="block")
    # Routers hear of it while the process still stands, so that the break is no failover of this room.
    state = await pod.until_state(lambda state: state.stopped)
    assert [(room.room_uid, room.host_id, room.code) for room in state.stopped] == [
        (bad, process.host_id, 4007)
    ]
    assert [each.host_id for each in state.processes] == [process.host_id]
    await router.until(lambda: router.broke)
    await pod.until_state(lambda state: not state.processes)
    (line,) = supervisor.log_lines("process_stuck")
    assert (line["room_uid"], line["call"]) == (bad, "on_message")
    _, *frames = line["traceback"].splitlines()
    assert len(frames) == 1, "nothing of the engine's, and no other thread"
    assert "game.py" in frames[0]
    assert "in on_message" in frames[0]
    await pod.room_status(good, DEAD)
    replaced = await pod.prepare(build)
    assert replaced.host_id != process.host_id
    router = await pod.attach(replaced)
    link = await router.enter(good, await pod.started(replaced, good, has_state=True))
    assert (await router.ask(link))["moves"] == 9
    await pod.started(replaced, bad, has_state=True)
    assert (shard.strikes(bad), shard.strikes(good)) == (1, 0)


@pytest.mark.asyncio
async def test_a_process_that_answers_nobody_is_replaced(
    pod: Pod, build: pb.Build, supervisor: ServiceProcess
) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    router = await pod.attach(process)
    link = await router.enter(uid, await pod.started(process, uid))
    await pod.everything_durable(process)
    await router.say(link, do="deafen")
    await pod.until_state(lambda state: not state.processes)
    assert len(supervisor.log_lines("process_silent")) == 1
    assert supervisor.log_lines("process_stuck") == []
    await pod.room_status(uid, DEAD)
    replaced = await pod.prepare(build)
    assert replaced.host_id != process.host_id
    await pod.started(replaced, uid, has_state=True)


@pytest.mark.asyncio
async def test_processes_end_with_their_supervisor(
    pod: Pod, build: pb.Build, supervisor: ServiceProcess
) -> None:
    process = await pod.prepare(build)
    children = psutil.Process(supervisor.pid).children(recursive=True)
    assert pid_of(supervisor, process) in [child.pid for child in children]
    supervisor.kill()
    for child in children:
        wait_for_end(child.pid)


@pytest.mark.asyncio
async def test_a_drain_releases_every_room_and_exits_with_0(
    pod: Pod, build: pb.Build, supervisor: ServiceProcess, processes: Processes, shard: Shard
) -> None:
    process = await pod.prepare(build)
    rooms = [new_uid() for _ in range(6)]
    generations = [await pod.started(process, uid) for uid in rooms]
    router = await pod.attach(process)
    link = await router.enter(rooms[0], generations[0])
    await router.say(link, do="move", by=7)
    await router.until(lambda: router.updates[link] >= 2)
    supervisor.signal(signal.SIGTERM)
    supervisor.signal(signal.SIGTERM)
    await pod.until_state(lambda state: all(each.rooms == 1 for each in state.processes))
    assert router.endings(rooms[0]) == []
    await router.send(places=1)
    await router.until(lambda: RELEASED in router.endings(rooms[0]))
    assert await asyncio.to_thread(supervisor.wait) == 0
    for uid in rooms:
        assert (await pod.room_status(uid)).status == store_pb.RoomStatus.STATUS_CLOSED
    other = processes.start("roomhost")
    async with Pod(other.grpc, shard.address) as next_pod:
        process = await next_pod.prepare(build)
        router = await next_pod.attach(process)
        link = await router.enter(rooms[0], await next_pod.started(process, rooms[0], has_state=True))
        assert (await router.ask(link))["moves"] == 7


@pytest.mark.asyncio
async def test_rooms_without_a_place_by_the_deadline_fail_over_with_nothing_lost(
    build: pb.Build, processes: Processes, shard: Shard, tmp_path: Path
) -> None:
    stopping = processes.start("roomhost", RUN_DIR=tmp_path, DRAIN_S=6)
    uid, quiet = new_uid(), new_uid()
    async with Pod(stopping.grpc, shard.address) as pod:
        process = await pod.prepare(build)
        generation = await pod.started(process, uid)
        await pod.started(process, quiet)
        router = await pod.attach(process)
        link = await router.enter(uid, generation)
        stopping.signal(signal.SIGTERM)
        await pod.until_state(lambda state: all(each.rooms == 1 for each in state.processes))
        await router.say(link, do="move", by=7)
        assert (await router.ask(link))["moves"] == 7
        assert await asyncio.to_thread(stopping.wait) == 0
        assert router.endings(uid) == [], "nobody was told to go"
        assert (await pod.room_status(quiet)).status == store_pb.RoomStatus.STATUS_CLOSED
        await pod.room_status(uid, store_pb.RoomStatus.STATUS_DEAD)
    other = processes.start("roomhost")
    async with Pod(other.grpc, shard.address) as pod:
        process = await pod.prepare(build)
        generation = await pod.started(process, uid, has_state=True)
        router = await pod.attach(process)
        assert (await router.ask(await router.enter(uid, generation)))["moves"] == 7


@pytest.mark.asyncio
async def test_a_host_that_was_away_says_nothing_of_a_room_it_lost(
    pod: Pod, build: pb.Build, supervisor: ServiceProcess, processes: Processes, shard: Shard
) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    generation = await pod.started(process, uid)
    router = await pod.attach(process)
    link = await router.enter(uid, generation)
    # Stopped with its supervisor, or that would kill it: a machine that slept.
    pids = [supervisor.pid, pid_of(supervisor, process)]
    other = processes.start("roomhost")
    async with Pod(other.grpc, shard.address) as next_pod:
        next_process = await next_pod.prepare(build)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        stopped_at = asyncio.get_running_loop().time()
        await next_pod.room_status(uid, DEAD)
        assert await next_pod.started(next_process, uid, has_state=True) != generation
        messages, updates = list(router.messages.get(link, [])), router.updates[link]
        await router.say(link, do="move")
        await router.say(link, do="tell")
        # The pause that a host may not go on after: 3 s.
        await asyncio.sleep(max(0.0, stopped_at + 3.5 - asyncio.get_running_loop().time()))
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        await router.until(lambda: FENCED in router.endings(uid))
        assert supervisor.log_lines("loop_was_away")
        # It answered `tell` while it did not know that the grant was gone; that answer stays with it.
        assert (router.messages.get(link, []), router.updates[link]) == (messages, updates)


@pytest.mark.asyncio
async def test_metrics_are_the_sums_of_all_processes(
    pod: Pod, build: pb.Build, supervisor: ServiceProcess
) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    router = await pod.attach(process)
    await router.enter(uid, await pod.started(process, uid))
    url = f"http://{supervisor.addresses['metrics']}/metrics"

    def metrics() -> str:
        with urllib.request.urlopen(url, timeout=DEADLINE_S) as response:
            return str(response.read().decode())

    async with asyncio.timeout(DEADLINE_S), pod.control() as control:
        # Its beat paces the look; metrics come every third second.
        async for _ in control:
            text = await asyncio.to_thread(metrics)
            if "playhall_roomhost_connections 1.0" in text:
                break
    assert 'playhall_roomhost_rooms{status="active"} 1.0' in text
    assert 'playhall_roomhost_tick_seconds_count{room_type="default"}' in text
