"""The state store as a process: a real data service beside it, real disks, real kills."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.engine.codes import ErrorCode
from playhall_common.auth import LEEWAY_S, HostClaims, sign_host_token
from playhall_common.errors import ApiError
from playhall_common.ids import slot_of
from playhall_statestore.epochs import EXIT_SUPERSEDED
from tests.support.data_client import DataClient
from tests.support.processes import SERVICE_SECRET, Processes, ServiceProcess
from tests.support.store_client import PROJECT, StoreClient, answer_of, new_uid, parts, record

KIB = 1024
DURABLE = pb.RoomAck.OUTCOME_DURABLE
FENCED = pb.RoomAck.OUTCOME_FENCED


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One data service for the module; each test has a shard of its own name."""
    folder = tmp_path_factory.mktemp("data")
    with Processes(folder) as processes:
        yield processes.start("data", DATABASE_URL=f"sqlite+aiosqlite:///{folder}/data.db")


class Shard:
    """A state store that can be killed and started again on its volume."""

    def __init__(self, processes: Processes, folder: Path, data: ServiceProcess) -> None:
        self.processes = processes
        self.folder = folder
        self.settings: dict[str, Any] = {
            "DATA_DIR": folder / "volume",
            "OBJECTS_DIR": folder / "objects",
            "DATA_ADDRESS": data.grpc,
            "SHARD_ID": f"shard-{new_uid()}",
            "BALLAST_BYTES": 4096,
        }

    def start(self, **settings: object) -> ServiceProcess:
        return self.processes.start("statestore", **self.settings | settings)

    def objects(self, uid: str) -> list[Path]:
        return sorted((self.folder / "objects" / "playhall" / str(slot_of(uid)) / uid).glob("[0-9]*"))


@pytest.fixture
def shard(processes: Processes, tmp_path: Path, data: ServiceProcess) -> Shard:
    return Shard(processes, tmp_path, data)


async def granted(store: StoreClient, uid: str, host: str = "h1", **fields: object) -> int:
    opened = await store.open(uid, host, **fields)
    assert isinstance(opened.outcome, pb.Granted), opened.outcome
    return opened.outcome.generation


async def eventually(condition: Callable[[], Awaitable[bool] | bool], timeout_s: float = 10.0) -> None:
    """Poll something no event tells of: files of another process, and what it will take."""
    async with asyncio.timeout(timeout_s):
        while True:
            met = condition()
            if met if isinstance(met, bool) else await met:
                return
            await asyncio.sleep(0.01)


async def closed(store: StoreClient, uid: str, generation: int, version: int, **fields: Any) -> None:
    """Close, again while it overtakes what was written before it."""

    async def close() -> bool:
        try:
            await store.close(uid, generation, version, **fields)
        except ApiError as error:
            if error.code is ErrorCode.UNAVAILABLE:
                return False
            raise
        return True

    await eventually(close)


@pytest.mark.asyncio
async def test_a_room_lives_hibernates_and_wakes_with_its_state(shard: Shard) -> None:
    uid, base = new_uid(), os.urandom(600 * KIB)
    async with StoreClient(shard.start().grpc) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        await stream.send(records=parts(uid, generation, 1, base, 250 * KIB, base=True))
        await stream.written(uid, generation, 2, b"two")
        final = base + b"two"
        await stream.send(records=parts(uid, generation, 2, final, 250 * KIB, base=True))
        await closed(store, uid, generation, 2, alarm_ms=77)
        await store.close(uid, generation, 2)
        opened = await store.open(uid, "h2")
    assert opened.state == [final]
    assert all(len(part.data) <= 256 * KIB for part in opened.parts)
    assert [part.end for part in opened.parts] == [False, False, True]
    assert (opened.outcome.version, opened.outcome.prior_end) == (2, pb.END_HIBERNATED)
    assert opened.outcome.alarm_ms == 77
    assert opened.outcome.generation > generation


@pytest.mark.asyncio
async def test_kill_in_a_stream_of_writes_loses_nothing_acknowledged(shard: Shard) -> None:
    uid, last = new_uid(), 0
    process = shard.start()
    async with StoreClient(process.grpc) as store:
        generation = await granted(store, uid, open_id="once")
        stream = await store.write("h1", (uid, generation))
        await stream.written(uid, generation, 1, b"base", base=True)

        async def write_on() -> None:
            nonlocal last
            for version in range(2, 100_000):
                await stream.record(uid, generation, version, b"%d" % version)
                last = version

        writer = asyncio.create_task(write_on())
        await stream.until(lambda: stream.durable(uid, generation) > 500)
        process.kill()
        with pytest.raises(ApiError):
            await writer
        await stream.error()  # reads what had arrived before
        acked = stream.durable(uid, generation)
    async with StoreClient(shard.start().grpc) as store:
        stream = await store.write("h1", (uid, generation))
        durable = stream.durable(uid, generation)
        assert acked <= durable <= last
        # The host sends the rest again, some of it twice.
        for version in range(max(2, durable - 3), durable + 10):
            await stream.record(uid, generation, version, b"%d" % version)
        await stream.until(lambda: stream.durable(uid, generation) == durable + 9)
        opened = await store.open(uid, open_id="once")
        assert opened.outcome.generation == generation
        assert opened.state == [b"base", *(b"%d" % version for version in range(2, durable + 10))]


@pytest.mark.asyncio
async def test_a_stream_that_breaks_is_replayed_by_the_next(shard: Shard) -> None:
    uid = new_uid()
    async with StoreClient(shard.start().grpc) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        await stream.written(uid, generation, 1, b"1", base=True)
        await stream.record(uid, generation, 2, b"2")
        stream.call.cancel()
        stream = await store.write("h1", (uid, generation))
        durable = stream.durable(uid, generation)
        assert durable in (1, 2)
        for version in range(durable, 6):  # one of them again
            await stream.record(uid, generation, version, b"%d" % version)
        await stream.until(lambda: stream.durable(uid, generation) == 5)
        await stream.record(uid, generation, 9, b"9")
        await stream.until(lambda: stream.is_told(uid, generation, pb.RoomAck.OUTCOME_NEED_BASE))


@pytest.mark.asyncio
async def test_of_two_holders_one_is_accepted_and_all_are_told(shard: Shard) -> None:
    uid = new_uid()
    async with StoreClient(shard.start().grpc) as store:
        watcher = store.watch()
        await watcher.watch(uid)
        await watcher.until(pb.RoomStatus.STATUS_NEW)
        opened = await asyncio.gather(*(store.open(uid, f"h{number}") for number in range(1, 6)))
        kinds = sorted(type(one.outcome).__name__ for one in opened)
        assert kinds == ["AlreadyOpen"] * 4 + ["Granted"]
        (winner,) = (one.outcome for one in opened if isinstance(one.outcome, pb.Granted))
        live = await watcher.until(pb.RoomStatus.STATUS_LIVE)
        assert live.generation == winner.generation
        assert live.host_address == f"{live.host_id}:1"
        # It writes; its stream breaks; 250 ms later another may have the room.
        old = await store.write(live.host_id, (uid, winner.generation))
        await old.written(uid, winner.generation, 1, b"1", base=True)
        old.call.cancel()
        await watcher.until(pb.RoomStatus.STATUS_DEAD)
        taken = await store.open(uid, "h9")
        assert isinstance(taken.outcome, pb.Granted)
        assert (taken.state, taken.outcome.prior_end) == ([b"1"], pb.END_CRASHED)
        assert (await watcher.until(pb.RoomStatus.STATUS_LIVE)).host_id == "h9"
        # The old one comes back and learns it.
        again = await store.write(live.host_id, (uid, winner.generation))
        assert again.acks[uid, winner.generation].outcome == FENCED


@pytest.mark.asyncio
async def test_a_holder_that_hangs_is_fenced_on_its_open_stream(shard: Shard) -> None:
    uid = new_uid()
    async with StoreClient(shard.start(SILENCE_S=0.3).grpc) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        watcher = store.watch()
        await watcher.watch(uid)
        await watcher.until(pb.RoomStatus.STATUS_DEAD)  # no heartbeat came
        await granted(store, uid, "h2")
        await stream.until(lambda: stream.is_told(uid, generation, FENCED))


@pytest.mark.asyncio
async def test_heartbeats_go_both_ways(shard: Shard) -> None:
    uid = new_uid()
    async with StoreClient(shard.start(SILENCE_S=0.5).grpc) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        began = time.monotonic()
        while time.monotonic() - began < 1.2:  # real time is the matter here
            await stream.send(heartbeat=True)
            await asyncio.sleep(0.1)
        assert not (await stream.read()).acks
        assert isinstance((await store.open(uid, "h2")).outcome, pb.AlreadyOpen)


@pytest.mark.asyncio
async def test_a_restart_moves_no_healthy_room(shard: Shard) -> None:
    uid = new_uid()
    process = shard.start()
    async with StoreClient(process.grpc) as store:
        generation = await granted(store, uid)
    process.kill()
    async with StoreClient(shard.start().grpc) as store:
        already = (await store.open(uid, "h2")).outcome
        assert isinstance(already, pb.AlreadyOpen)
        assert (already.generation, already.host_id) == (generation, "h1")


@pytest.mark.ledger("RST-06")
@pytest.mark.asyncio
async def test_objects_follow_the_room_and_the_registry_hears_of_it(
    shard: Shard, data: ServiceProcess
) -> None:
    async with DataClient(data.grpc) as registry:
        await registry.create_project("objects")
        build = await registry.register_build("objects", "b1")
        await registry.call("Builds.GoLive", project="objects", build_id=build.build_id)
        created = await registry.call("Registry.CreateRoom", project="objects", room_id="main")
        uid = created.room.room_uid
        async with StoreClient(shard.start(UPLOAD_S=0.05).grpc) as store:
            generation = await granted(store, uid)
            stream = await store.write("h1", (uid, generation))
            await stream.written(uid, generation, 1, b"1", base=True)
            await eventually(lambda: [path.name for path in shard.objects(uid)] == [f"{generation}-1-a0"])
            await stream.written(uid, generation, 2, b"2", alarm_ms=500)
            await eventually(lambda: [path.name for path in shard.objects(uid)] == [f"{generation}-2-a500"])
            async with asyncio.timeout(10):
                while True:
                    found = await registry.call("Registry.LookupRoom", project="objects", room_id="main")
                    if found.room.has_state:
                        break


@pytest.mark.asyncio
async def test_an_evicted_room_wakes_from_its_object(shard: Shard) -> None:
    uid, base = new_uid(), os.urandom(700 * KIB)
    process = shard.start(EVICT_S=0.05)
    async with StoreClient(process.grpc) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        await stream.send(records=parts(uid, generation, 3, base, 256 * KIB, base=True))
        await stream.until(lambda: stream.durable(uid, generation) == 3)
        await store.close(uid, generation, 3)
        await evicted(process)
        both = await asyncio.gather(store.open(uid, "h2"), store.open(uid, "h3"))
        winner, loser = sorted(both, key=lambda one: isinstance(one.outcome, pb.AlreadyOpen))
        assert isinstance(loser.outcome, pb.AlreadyOpen)
        assert winner.state == [base]


async def evicted(process: ServiceProcess) -> None:
    await asyncio.to_thread(process.wait_for_log, "room_evicted")


@pytest.mark.asyncio
async def test_a_damaged_or_missing_object_is_not_taken_for_an_empty_room(shard: Shard) -> None:
    uid = new_uid()
    process = shard.start(EVICT_S=0.05)
    async with StoreClient(process.grpc) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        await stream.written(uid, generation, 1, b"precious", base=True)
        await store.close(uid, generation, 1)
        await evicted(process)
        (path,) = shard.objects(uid)  # written because it was closed
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b"precious", b"damaged!"))
        with pytest.raises(ApiError) as damaged:
            await store.open(uid, "h2")
        assert damaged.value.code is ErrorCode.DAMAGED
        path.unlink()
        with pytest.raises(ApiError) as missing:
            await store.open(uid, "h2")
        assert missing.value.code is ErrorCode.STATE_MISSING
        path.write_bytes(whole)
        assert (await store.open(uid, "h2")).state == [b"precious"]


@pytest.mark.asyncio
async def test_after_the_loss_of_the_volume_rooms_come_from_objects(shard: Shard) -> None:
    uid = new_uid()
    process = shard.start(UPLOAD_S=0.05)
    async with StoreClient(process.grpc) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        await stream.written(uid, generation, 1, b"1", base=True)
        await stream.written(uid, generation, 2, b"2")
        await eventually(lambda: [path.name for path in shard.objects(uid)] == [f"{generation}-2-a0"])
    process.kill()
    volume = shard.folder / "lost"
    refused, _ = shard.processes.launch("statestore", **shard.settings | {"DATA_DIR": volume})
    assert refused.wait() == 1
    assert "E_EMPTY_VOLUME" in refused.log()
    async with StoreClient(shard.start(DATA_DIR=volume, REPLACE=True).grpc) as store:
        opened = await store.open(uid, "h2", has_state=True)
        assert opened.state == [b"1", b"2"]
        assert opened.outcome.generation >> 32 > generation >> 32
        assert opened.outcome.prior_end == pb.END_CRASHED
        with pytest.raises(ApiError) as missing:
            await store.open(new_uid(), has_state=True)
        assert missing.value.code is ErrorCode.STATE_MISSING


@pytest.mark.asyncio
async def test_a_volume_serves_without_the_database_and_an_empty_one_does_not(
    shard: Shard, processes: Processes, tmp_path: Path
) -> None:
    uid = new_uid()
    process = shard.start()
    async with StoreClient(process.grpc) as store:
        generation = await granted(store, uid)
    process.kill()
    nowhere = f"unix:{tmp_path}/nobody.sock"
    alone = shard.start(DATA_ADDRESS=nowhere)
    async with StoreClient(alone.grpc) as store:
        assert (await store.open(uid, "h2")).outcome.generation == generation
    empty, _ = processes.launch(
        "statestore",
        **shard.settings | {"DATA_ADDRESS": nowhere, "DATA_DIR": tmp_path / "new", "REGISTER_S": 0.3},
    )
    assert empty.wait() == 1
    assert "the volume is empty" in empty.log()


@pytest.mark.asyncio
async def test_a_second_process_on_a_volume_does_not_start(shard: Shard) -> None:
    shard.start()
    second, _ = shard.processes.launch("statestore", **shard.settings)
    assert second.wait() == 1


@pytest.mark.asyncio
async def test_a_shard_that_was_replaced_ends_when_a_caller_knows_it(
    shard: Shard, data: ServiceProcess
) -> None:
    process = shard.start()
    async with StoreClient(process.grpc) as store, DataClient(data.grpc) as registry:
        epoch = await granted(store, new_uid()) >> 32
        with pytest.raises(ApiError) as invented:
            await store.open(new_uid(), map_epoch=epoch + 5)
        assert invented.value.code is ErrorCode.WRONG_SHARD
        assert process.process.poll() is None  # a host's word is not enough
        await registry.call(
            "Registry.RegisterShard", shard_id=shard.settings["SHARD_ID"], address="other:1", replace=True
        )
        with pytest.raises(ApiError):
            await store.open(new_uid(), map_epoch=epoch + 5)
        assert process.wait() == EXIT_SUPERSEDED


@pytest.mark.asyncio
async def test_a_full_disk_acknowledges_nothing_and_says_so(shard: Shard) -> None:
    uid = new_uid()
    async with StoreClient(shard.start(MAX_BYTES=2 << 20).grpc) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        await stream.written(uid, generation, 1, b"1", base=True)

        async def flood() -> None:
            for version in range(2, 40):
                await stream.written(uid, generation, version, os.urandom(200 * KIB))

        with pytest.raises(ApiError) as full:
            await flood()
        assert full.value.code is ErrorCode.FULL
        acked = stream.durable(uid, generation)
        stream = await store.write("h1", (uid, generation))
        assert stream.durable(uid, generation) == acked
        await stream.written(uid, generation, acked, b"small", base=True)  # which makes room

        async def writes_on() -> bool:
            again = await store.write("h1", (uid, generation))
            await again.record(uid, generation, acked + 1, os.urandom(200 * KIB))
            try:
                await again.until(lambda: again.durable(uid, generation) > acked)
            except ApiError as error:
                if error.code is ErrorCode.FULL:
                    return False
                raise
            return True

        await eventually(writes_on)


@pytest.mark.asyncio
async def test_three_strikes_make_opens_wait(shard: Shard) -> None:
    uid = new_uid()
    async with StoreClient(shard.start().grpc) as store:
        for count in (1, 2, 3):
            generation = await granted(store, uid)
            assert await store.strike(uid, generation) == count
            await store.close(uid, generation, 0, kind=pb.END_STOPPED)
        waiting = (await store.open(uid)).outcome
        assert isinstance(waiting, pb.OpenBackoff)
        assert 0 < waiting.retry_after_ms <= 1_000


def host_token(**claims: object) -> str:
    values = {"project": PROJECT, "build": "b1", "host_id": "h1", "expires_at_s": int(time.time()) + 900}
    return sign_host_token(HostClaims(**values | claims), SERVICE_SECRET)  # type: ignore[arg-type]


@pytest.mark.asyncio
async def test_room_hosts_act_for_their_own_project_and_host_only(shard: Shard) -> None:
    address = shard.start().grpc
    uid = new_uid()
    async with StoreClient(address, host_token()) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        await stream.written(uid, generation, 1, b"1", base=True)
        for refused in (store.open(uid, "h2"), store.open(uid, project="other"), store.write("h2")):
            with pytest.raises(ApiError) as forbidden:
                await refused
            assert forbidden.value.code is ErrorCode.FORBIDDEN
        watcher = store.watch()
        with pytest.raises(ApiError) as trusted_only:
            await answer_of(watcher.call.read())
        assert trusted_only.value.code is ErrorCode.UNAUTHENTICATED
        await stream.send(host_token=host_token(), heartbeat=True)
        await stream.send(host_token=host_token(host_id="h2"))
        assert await stream.error() is ErrorCode.FORBIDDEN
    async with StoreClient(address, host_token(project="other")) as thief:
        stream = await thief.write("h1", (uid, generation))
        assert stream.acks[uid, generation].outcome == FENCED
        await stream.record(uid, generation, 2, b"2")
        await stream.read()
        assert stream.durable(uid, generation) == 0
    for token in (None, "nonsense", host_token(expires_at_s=int(time.time()) - 100)):
        async with StoreClient(address, token) as nobody:
            with pytest.raises(ApiError) as refusal:
                await nobody.open(uid)
            assert refusal.value.code is ErrorCode.UNAUTHENTICATED


@pytest.mark.asyncio
async def test_a_write_stream_outlives_the_token_that_opened_it(shard: Shard) -> None:
    address = shard.start().grpc
    uid = new_uid()
    # Tokens are checked by wall time in another process: two seconds of it must really pass.
    async with StoreClient(address, host_token(expires_at_s=int(time.time()) - LEEWAY_S + 2)) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        await stream.written(uid, generation, 1, b"1", base=True)

        async def is_expired() -> bool:
            await stream.send(heartbeat=True)
            try:
                await store.open(new_uid())
            except ApiError as error:
                return error.code is ErrorCode.UNAUTHENTICATED
            return False

        await eventually(is_expired)
        for _ in range(3):  # what the shard says each second
            await stream.read()
        await stream.written(uid, generation, 2, b"2")
        with pytest.raises(ApiError) as refused:
            await store.write("h1", (uid, generation))
        assert refused.value.code is ErrorCode.UNAUTHENTICATED


@pytest.mark.asyncio
async def test_bad_input_gets_a_code_and_nobody_else_notices(shard: Shard) -> None:
    uid, other = new_uid(), new_uid()
    async with StoreClient(shard.start().grpc) as store:
        generation = await granted(store, uid)
        good = await store.write("h1", (uid, generation))
        await good.written(uid, generation, 1, b"1", base=True)
        theirs = await granted(store, other, "h2")
        for wrong in (
            record(other, theirs, 1, b"data", base=True, crc32=1),
            record("../../etc", theirs, 1, b"data", base=True),
            record(other, theirs, 1, bytes(256 * KIB + 1), base=True),
        ):
            bad = await store.write("h2", (other, theirs))
            await bad.send(records=[wrong])
            assert await bad.error() is ErrorCode.INVALID
        for fields in ({"room_uid": "x"}, {"project": "X"}, {"open_id": "x" * 257}):
            with pytest.raises(ApiError) as refused:
                await store.open(**{"uid": new_uid(), **fields})
            assert refused.value.code is ErrorCode.INVALID
        await good.written(uid, generation, 2, b"2")


@pytest.mark.asyncio
async def test_sigterm_commits_what_came_and_exits(shard: Shard) -> None:
    uid = new_uid()
    process = shard.start()
    async with StoreClient(process.grpc) as store:
        generation = await granted(store, uid)
        stream = await store.write("h1", (uid, generation))
        watcher = store.watch()
        await watcher.watch(uid)
        await watcher.until(pb.RoomStatus.STATUS_LIVE)
        await stream.written(uid, generation, 1, b"1", base=True)
        began = time.monotonic()
        assert await asyncio.to_thread(process.terminate) == 0
        assert time.monotonic() - began < 3
        assert await stream.error() is ErrorCode.UNAVAILABLE
    assert not (shard.folder / "volume" / "state.db-wal").exists()
    async with StoreClient(shard.start().grpc) as store:
        again = await store.write("h1", (uid, generation))
        assert again.durable(uid, generation) == 1


def test_it_starts_quickly(shard: Shard) -> None:
    assert shard.start().wait_for_log("serving")["cpu_s"] < 0.6
