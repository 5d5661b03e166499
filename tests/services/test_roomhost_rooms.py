"""Rooms in real room host processes, writing to a real state store."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2 as store_pb
from playhall.engine.codes import CloseCode, ErrorCode
from playhall_common.errors import ApiError
from playhall_roomhost.log_limit import BURST
from tests.support.processes import Processes, ServiceProcess
from tests.support.room_hosts import CALL_S, Pod, Shard, make_build, new_uid, pid_of

CLOSING = pb.RoomEnded.REASON_CLOSING
RELEASED = pb.RoomEnded.REASON_RELEASED
STOPPED = pb.RoomEnded.REASON_STOPPED
FENCED = pb.RoomEnded.REASON_FENCED
NOT_HERE = pb.RoomEnded.REASON_NOT_HERE


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


@pytest.fixture
def build(tmp_path: Path) -> pb.Build:
    return make_build(tmp_path / "build")


@pytest.mark.ledger("HOOK-22")
@pytest.mark.asyncio
async def test_a_room_starts_takes_a_player_and_answers(pod: Pod, build: pb.Build) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    generation = await pod.started(process, uid)
    router = await pod.attach(process)
    link = await router.enter(uid, generation)
    assert router.joined[link].tick_rate == 20
    await router.say(link, do="move", by=3)
    asked = time.time()
    answer = await router.ask(link)
    assert answer["moves"] == 3
    assert asked - 0.001 <= answer["now"] <= time.time()  # what rooms are told may be a millisecond old


@pytest.mark.asyncio
async def test_a_start_that_names_another_epoch_is_refused_by_the_shard(pod: Pod, build: pb.Build) -> None:
    process = await pod.prepare(build)
    epoch = await pod.started(process, new_uid()) >> 32
    await pod.started(process, new_uid(), map_epoch=epoch)
    with pytest.raises(ApiError) as refused:
        await pod.start(process, new_uid(), map_epoch=epoch + 5)
    assert refused.value.code is ErrorCode.WRONG_SHARD


@pytest.mark.asyncio
async def test_concurrent_starts_share_one_generation(pod: Pod, build: pb.Build) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    generations = await asyncio.gather(*(pod.started(process, uid) for _ in range(5)))
    assert set(generations) == {generations[0]}
    assert await pod.started(process, uid) == generations[0]


@pytest.mark.asyncio
@pytest.mark.ledger("TERM-09", "TERM-11", "TERM-17")
async def test_rooms_of_a_process_share_modules_and_end_on_their_own(pod: Pod, build: pb.Build) -> None:
    process = await pod.prepare(build)
    first, second = new_uid(), new_uid()
    generation = await pod.started(process, first, room_id="one")
    other = await pod.started(process, second, room_id="two", room_type="duel")
    router = await pod.attach(process)
    link = await router.enter(second, other, room_type="duel")
    assert (await router.ask(link))["visits"] == ["one", "two"]
    await pod.hibernate(process, first, generation)
    assert (await router.ask(link))["visits"] == ["one", "two"]
    # Started again from its state: on_create does not run again.
    assert await pod.started(process, first, room_id="one") != generation
    assert (await router.ask(link))["visits"] == ["one", "two"]


@pytest.mark.ledger("TERM-17")
@pytest.mark.asyncio
async def test_a_hibernated_room_wakes_with_its_state(pod: Pod, build: pb.Build) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    generation = await pod.started(process, uid)
    router = await pod.attach(process)
    link = await router.enter(uid, generation)
    await router.say(link, do="move", by=41)
    tick = (await router.ask(link))["tick"]
    await pod.hibernate(process, uid, generation)
    await router.until(lambda: RELEASED in router.endings(uid))
    assert router.endings(uid) == [CLOSING, RELEASED]
    assert (await pod.room_status(uid)).status == store_pb.RoomStatus.STATUS_CLOSED
    link = await router.enter(uid, await pod.started(process, uid, has_state=True))
    answer = await router.ask(link)
    assert answer["moves"] == 41
    assert answer["tick"] >= tick


@pytest.mark.asyncio
async def test_an_empty_room_hibernates_by_itself(pod: Pod, build: pb.Build) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    generation = await pod.started(process, uid, idle_s=0.2)
    router = await pod.attach(process)
    status = await pod.room_status(uid, store_pb.RoomStatus.STATUS_CLOSED)
    assert status.generation == generation
    await router.join(uid, generation)
    # The shard may say so before the host has heard of it.
    await router.until(lambda: {NOT_HERE, RELEASED} & set(router.endings(uid)))
    assert router.endings(uid) in ([NOT_HERE], [CLOSING, RELEASED])


@pytest.mark.asyncio
@pytest.mark.ledger("TERM-10")
async def test_a_room_that_raises_ends_alone(pod: Pod, build: pb.Build, supervisor: ServiceProcess) -> None:
    process = await pod.prepare(build)
    bad, good = new_uid(), new_uid()
    router = await pod.attach(process)
    bad_link = await router.enter(bad, await pod.started(process, bad))
    good_link = await router.enter(good, await pod.started(process, good))
    await router.say(bad_link, do="move", by=5)
    await router.until(lambda: router.updates[bad_link] >= 2)
    await router.say(bad_link, do="break")
    await router.until(lambda: bad_link in router.closed)
    assert router.closed[bad_link].code == CloseCode.ROOM_STOPPED
    await router.until(lambda: STOPPED in router.endings(bad))
    assert (await router.ask(good_link))["moves"] == 0
    (line,) = [line for line in supervisor.log_lines() if "a dot too many" in line.get("traceback", "")]
    assert line["room_uid"] == bad
    assert {"project", "room", "generation", "tick"} <= line.keys()
    # Nothing of before the tick that raised is lost.
    link = await router.enter(bad, await pod.started(process, bad, has_state=True))
    assert (await router.ask(link))["moves"] == 5


@pytest.mark.asyncio
async def test_a_room_that_logs_too_much_loses_lines_and_another_does_not(
    pod: Pod, build: pb.Build, supervisor: ServiceProcess
) -> None:
    process = await pod.prepare(build)
    loud, quiet = new_uid(), new_uid()
    router = await pod.attach(process)
    loud_link = await router.enter(loud, await pod.started(process, loud))
    quiet_link = await router.enter(quiet, await pod.started(process, quiet))

    def lines(uid: str) -> list[dict[str, Any]]:
        return [line for line in supervisor.log_lines("room.log") if line["room_uid"] == uid]

    await router.say(loud_link, do="log", lines=BURST, level="debug")  # not written, so not counted
    await router.say(loud_link, do="log", lines=BURST + 400)
    await router.say(quiet_link, do="log", lines=1)
    await router.ask(quiet_link)
    assert len(lines(loud)) == BURST
    assert len(lines(quiet)) == 1
    async with asyncio.timeout(CALL_S):
        while len(lines(loud)) == BURST:
            await router.say(loud_link, do="log", lines=1)
            await router.ask(loud_link)
    assert lines(loud)[-1]["lines_dropped"] >= 400


@pytest.mark.asyncio
@pytest.mark.ledger("TERM-10")
async def test_an_error_with_text_that_cannot_be_sent_ends_the_room_like_any_other(
    pod: Pod, build: pb.Build
) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    router = await pod.attach(process)
    link = await router.enter(uid, await pod.started(process, uid))
    await router.say(link, do="break", chr=0xD800)
    await pod.room_status(uid, store_pb.RoomStatus.STATUS_CLOSED)
    link = await router.enter(uid, await pod.started(process, uid, has_state=True))
    assert (await router.ask(link))["moves"] == 0


@pytest.mark.asyncio
async def test_a_room_that_stops_while_the_shard_is_away_is_closed_there_once_it_is_back(
    pod: Pod, build: pb.Build, shard: Shard, supervisor: ServiceProcess
) -> None:
    """Takes as long as the host waits for what is not durable: the shard must be away for longer."""
    process = await pod.prepare(build)
    uid = new_uid()
    router = await pod.attach(process)
    link = await router.enter(uid, await pod.started(process, uid))
    await pod.everything_durable(process)
    shard.kill()
    await router.say(link, do="move")
    await router.until(lambda: router.updates[link] >= 2)
    await router.say(link, do="break")
    await router.until(lambda: STOPPED in router.endings(uid))
    await asyncio.to_thread(supervisor.wait_for_log, "room_stop_unflushed", 20.0)
    shard.start()
    await pod.room_status(uid, store_pb.RoomStatus.STATUS_CLOSED)


@pytest.mark.asyncio
async def test_a_room_that_cannot_start_says_why_and_backs_off(pod: Pod, build: pb.Build) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    for _ in range(3):
        response = await pod.start(process, uid, room_type="broken")
        assert response.failed.code == CloseCode.ROOM_STOPPED
        assert "no board" in response.failed.reason
    response = await pod.start(process, uid, room_type="broken")
    assert 0 < response.backoff.retry_after_ms <= 1_000
    response = await pod.start(process, new_uid(), room_type="chess")
    assert response.failed.code == CloseCode.WRONG_ROOM_TYPE


@pytest.mark.asyncio
async def test_joins_that_name_what_is_not_here(pod: Pod, build: pb.Build) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    generation = await pod.started(process, uid)
    router = await pod.attach(process)
    await router.join(uid, generation + 1)
    await router.until(lambda: router.endings(uid))
    assert router.endings(uid) == [NOT_HERE]
    link = await router.join(uid, generation, resume=b"\xff")
    await router.until(lambda: link in router.closed)
    assert router.closed[link].code == CloseCode.PROTOCOL
    other = pb.Process(host_id="somebody-else", address=process.address)
    with pytest.raises(ApiError) as raised:
        await pod.attach(other)
    assert raised.value.code == ErrorCode.FENCED


@pytest.mark.asyncio
async def test_clocks_come_every_second(pod: Pod, build: pb.Build) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    router = await pod.attach(process)
    link = await router.enter(uid, await pod.started(process, uid))
    number = router.joined[link].room_no
    await router.until(lambda: len(router.clocks.get(number, [])) >= 2)
    first, second = router.clocks[number][:2]
    assert 15 <= second.tick - first.tick <= 25


@pytest.mark.asyncio
@pytest.mark.ledger("RST-03", "RST-04", "TERM-17")
async def test_what_was_flushed_survives_the_process(
    pod: Pod, build: pb.Build, supervisor: ServiceProcess
) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    router = await pod.attach(process)
    link = await router.enter(uid, await pod.started(process, uid))
    # A change of between ticks, and one that goes out with somebody's join.
    await router.say(link, do="move", by=2)
    await router.until(lambda: router.updates[link] >= 2)
    await router.say(link, do="move", by=5)
    await router.enter(uid, router.generations[link], "bob")
    await pod.everything_durable(process)
    os.kill(pid_of(supervisor, process), signal.SIGKILL)
    await router.until(lambda: router.broke)
    await pod.room_status(uid, store_pb.RoomStatus.STATUS_DEAD)
    process = await pod.prepare(build)
    router = await pod.attach(process)
    link = await router.enter(uid, await pod.started(process, uid, has_state=True))
    assert (await router.ask(link))["moves"] == 7


@pytest.mark.asyncio
async def test_after_a_crash_newcomers_take_no_seat_of_those_who_were_in(
    pod: Pod, build: pb.Build, supervisor: ServiceProcess
) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    await pod.started(process, uid)
    await pod.everything_durable(process)
    os.kill(pid_of(supervisor, process), signal.SIGKILL)
    await pod.room_status(uid, store_pb.RoomStatus.STATUS_DEAD)
    process = await pod.prepare(build)
    generation = await pod.started(process, uid, has_state=True, max_players=1)
    router = await pod.attach(process)
    newcomer = await router.join(uid, generation, "bob")
    await router.enter(uid, generation, "ann", was_joined=True)
    await router.until(lambda: newcomer in router.closed)
    assert router.closed[newcomer].code == CloseCode.ROOM_FULL


@pytest.mark.asyncio
async def test_rooms_go_on_while_the_shard_is_away(pod: Pod, build: pb.Build, shard: Shard) -> None:
    process = await pod.prepare(build)
    uid = new_uid()
    generation = await pod.started(process, uid)
    router = await pod.attach(process)
    link = await router.enter(uid, generation)
    shard.kill()
    for _ in range(20):
        await router.say(link, do="move")
    assert (await router.ask(link))["moves"] == 20
    shard.start()
    await pod.hibernate(process, uid, generation)
    link = await router.enter(uid, await pod.started(process, uid, has_state=True))
    assert (await router.ask(link))["moves"] == 20
