"""Builds, rooms and shards at a real data service."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhall.engine.codes import ErrorCode
from playhall_common import ids
from playhall_common.errors import ApiError
from tests.support.data_client import DataClient, room_type
from tests.support.processes import Processes


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("data")
    with Processes(directory) as processes:
        yield processes.start("data", database_url=f"sqlite+aiosqlite:///{directory}/data.db").grpc
        processes.print_logs()


async def error_of(client: DataClient, method: str, **fields: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await client.call(method, **fields)
    return caught.value


async def code_of(client: DataClient, method: str, **fields: object) -> ErrorCode:
    return (await error_of(client, method, **fields)).code


@pytest.mark.asyncio
async def test_the_same_bundle_is_the_same_build(address: str) -> None:
    async with DataClient(address) as data:
        await data.create_project("bundled")
        types = [room_type("duel", max_players=2), room_type("default")]
        builds = await asyncio.gather(*(data.register_build("bundled", "sha", types) for _ in range(8)))
        assert len({build.build_id for build in builds}) == 1
        assert [each.name for each in builds[0].room_types] == ["duel", "default"]
        assert builds[0].room_types[0].max_players == 2
        assert builds[0].deploy_seq == 0

        moved = await data.register_build("bundled", "sha", types, location="/bundles/two", site="/site")
        assert (moved.build_id, moved.location) == (builds[0].build_id, "/bundles/two")
        live = await data.go_live("bundled", moved.build_id)
        assert (live.location, live.site) == ("/bundles/two", "/site")

        other = [room_type("default", schema_hash=b"f" * 16)]
        with pytest.raises(ApiError) as caught:
            await data.register_build("bundled", "sha", other)
        assert caught.value.code is ErrorCode.INVALID
        assert (await data.register_build("bundled", "another-sha", other)).build_id != moved.build_id


@pytest.mark.ledger("TERM-04")
@pytest.mark.asyncio
async def test_each_go_live_has_a_higher_number_and_one_build_is_live(address: str) -> None:
    async with DataClient(address) as data:
        await data.create_project("deployed")
        assert await code_of(data, "Builds.GetLiveBuild", project="deployed") is ErrorCode.UNKNOWN
        old = await data.register_build("deployed", "old")
        new = await data.register_build("deployed", "new")
        for number, build in enumerate((old, new, old, old), start=1):
            live = await data.go_live("deployed", build.build_id)
            assert (live.build_id, live.deploy_seq) == (build.build_id, number)
            assert (await data.call("Builds.GetLiveBuild", project="deployed")).build == live

        raced = await asyncio.gather(*(data.go_live("deployed", new.build_id) for _ in range(10)))
        assert sorted(build.deploy_seq for build in raced) == list(range(5, 15))
        await data.create_project("elsewhere")
        foreign = {"project": "elsewhere", "build_id": new.build_id}
        assert await code_of(data, "Builds.GoLive", **foreign) is ErrorCode.UNKNOWN


@pytest.mark.ledger("TERM-08")
@pytest.mark.asyncio
async def test_a_room_id_is_unique_within_its_project(address: str) -> None:
    async with DataClient(address) as data:
        await data.live_project("rooms-a")
        await data.live_project("rooms-b")
        first = await data.call("Registry.CreateRoom", project="rooms-a", room_id="main")
        other = await data.call("Registry.CreateRoom", project="rooms-b", room_id="main")
        assert first.created
        assert other.created
        assert first.room.room_uid != other.room.room_uid
        create = "Registry.CreateRoom"
        assert await code_of(data, create, project="rooms-a", room_id="main") is ErrorCode.EXISTS
        for room_id in ("a b", "x" * 65, "ä", "a/b"):
            assert await code_of(data, create, project="rooms-a", room_id=room_id) is ErrorCode.INVALID
        longest = await data.call(create, project="rooms-a", room_id="x" * 64)
        assert longest.room.room_id == "x" * 64


@pytest.mark.asyncio
async def test_a_room_is_found_with_all_that_is_needed_to_wake_it(address: str) -> None:
    async with DataClient(address) as data:
        build = await data.live_project("found")
        room = (await data.call("Registry.CreateRoom", project="found", room_id="main", public=True)).room
        assert ids.is_ulid(room.room_uid)
        assert room.slot == ids.slot_of(room.room_uid)
        assert (room.room_type, room.public, room.has_state) == ("default", True, False)
        assert not room.HasField("join_code")

        found = await data.call("Registry.LookupRoom", project="found", room_id="main")
        assert (found.room, found.live_build) == (room, build)

        for _ in range(2):
            await data.call("Registry.MarkHasState", room_uid=room.room_uid)
        assert (await data.call("Registry.LookupRoom", project="found", room_id="main")).room.has_state

        again = await data.register_build("found", "second")
        live = await data.go_live("found", again.build_id)
        for deploy_seq, of_deploy in ((1, build), (2, live), (3, None), (0, None), (1 << 63, None)):
            found = await data.call(
                "Registry.LookupRoom", project="found", room_id="main", deploy_seq=deploy_seq
            )
            assert found.live_build == live
            assert (found.build_of_deploy if found.HasField("build_of_deploy") else None) == of_deploy

        missing = await error_of(data, "Registry.LookupRoom", project="found", room_id="none")
        assert (missing.code, missing.details["what"]) == (ErrorCode.UNKNOWN, "room")
        missing = await error_of(data, "Registry.LookupRoom", project="nowhere", room_id="main")
        assert (missing.code, missing.details["what"]) == (ErrorCode.UNKNOWN, "project")
        assert await code_of(data, "Registry.MarkHasState", room_uid="none") is ErrorCode.UNKNOWN


@pytest.mark.asyncio
async def test_fifty_that_create_a_room_at_once_get_one(address: str) -> None:
    async with DataClient(address) as data, DataClient(address) as again:
        build = await data.live_project("raced")
        fields = {"project": "raced", "room_id": "main", "or_get": True}
        answers = await asyncio.gather(
            *((data, again)[number % 2].call("Registry.CreateRoom", **fields) for number in range(50))
        )
        assert len({answer.room.room_uid for answer in answers}) == 1
        assert sum(answer.created for answer in answers) == 1
        assert all(answer.live_build == build for answer in answers)


@pytest.mark.ledger("RTYPE-02")
@pytest.mark.asyncio
async def test_a_rooms_type_never_changes(address: str) -> None:
    async with DataClient(address) as data:
        await data.live_project("typed", "default", "duel")
        fields = {"project": "typed", "room_id": "main"}
        made = await data.call("Registry.CreateRoom", room_type="duel", **fields)
        for asked in ("default", "", "gone"):
            got = await data.call("Registry.CreateRoom", room_type=asked, or_get=True, **fields)
            assert (got.room, got.created) == (made.room, False)
        second = await data.register_build("typed", "without-duel")
        await data.go_live("typed", second.build_id)
        assert (await data.call("Registry.LookupRoom", **fields)).room.room_type == "duel"


@pytest.mark.ledger("RTYPE-03")
@pytest.mark.asyncio
async def test_an_unnamed_type_is_default_where_the_build_has_one(address: str) -> None:
    async with DataClient(address) as data:
        await data.live_project("defaulted", "duel", "default")
        await data.live_project("undefaulted", "duel")
        create = "Registry.CreateRoom"
        assert (await data.call(create, project="defaulted")).room.room_type == "default"
        assert await code_of(data, create, project="undefaulted") is ErrorCode.INVALID
        assert (await data.call(create, project="undefaulted", room_type="duel")).room.room_type == "duel"
        assert await code_of(data, create, project="defaulted", room_type="none") is ErrorCode.INVALID


@pytest.mark.asyncio
async def test_a_room_needs_a_project_and_a_live_build(address: str) -> None:
    async with DataClient(address) as data:
        await data.create_project("unbuilt")
        create = "Registry.CreateRoom"
        error = await error_of(data, create, project="unbuilt", room_id="main", or_get=True)
        assert (error.code, error.details["what"]) == (ErrorCode.UNKNOWN, "build")
        error = await error_of(data, create, project="nowhere", room_id="main", or_get=True)
        assert (error.code, error.details["what"]) == (ErrorCode.UNKNOWN, "project")


@pytest.mark.asyncio
async def test_ids_and_join_codes_are_made_up(address: str) -> None:
    async with DataClient(address) as data:
        await data.live_project("made-up")
        fields = {"project": "made-up", "with_join_code": True, "or_get": True}
        answers = await asyncio.gather(*(data.call("Registry.CreateRoom", **fields) for _ in range(20)))
        assert len({answer.room.room_id for answer in answers}) == 20
        codes = {answer.room.join_code for answer in answers}
        assert len(codes) == 20
        assert all(len(code) == 6 and not set(code) & set("01OIL") for code in codes)


@pytest.mark.asyncio
async def test_a_rooms_own_retention_goes_before_the_projects(address: str) -> None:
    async with DataClient(address) as data:
        await data.live_project("retained", retention="30d")
        create, lookup = "Registry.CreateRoom", "Registry.LookupRoom"
        own = await data.call(create, project="retained", room_id="own", retention="1h")
        assert own.room.retention == "1h"
        assert (await data.call(create, project="retained", room_id="its")).room.retention == "30d"
        changed = {"retention": "forever"}
        await data.call("Projects.UpdateSettings", slug="retained", settings=changed)
        found = {
            name: (await data.call(lookup, project="retained", room_id=name)).room.retention
            for name in ("own", "its")
        }
        assert found == {"own": "1h", "its": "forever"}
        assert await code_of(data, create, project="retained", retention="2w") is ErrorCode.INVALID


async def register(data: DataClient, shard: str, volume_epoch: int = 0, **fields: object) -> tuple[int, int]:
    fields = {"address": "127.0.0.1:1", **fields}
    answer = await data.call("Registry.RegisterShard", shard_id=shard, volume_epoch=volume_epoch, **fields)
    return answer.epoch, answer.map_version


@pytest.mark.asyncio
async def test_shards_and_their_epochs(processes: Processes, tmp_path: Path) -> None:
    service = processes.start("data", database_url=f"sqlite+aiosqlite:///{tmp_path}/shards.db")
    async with DataClient(service.grpc) as data:
        empty = await data.call("Registry.GetShardMap")
        assert (empty.version, len(empty.shards)) == (0, 0)

        assert await register(data, "s0") == (1, 1)
        assert await register(data, "s0", 1) == (1, 1)
        assert await register(data, "s0", 1, address="127.0.0.1:2") == (1, 2)
        assert await register(data, "s1") == (2, 3)
        shard_map = await data.call("Registry.GetShardMap")
        first, second = shard_map.shards
        assert shard_map.version == 3
        assert (first.shard_id, first.address, first.epoch) == ("s0", "127.0.0.1:2", 1)
        assert (list(first.slot_from), list(first.slot_to)) == ([0], [1024])
        assert (second.epoch, list(second.slot_from)) == (2, [])

        again = {"shard_id": "s0", "address": "127.0.0.1:2"}
        assert await code_of(data, "Registry.RegisterShard", **again) is ErrorCode.EMPTY_VOLUME
        assert await register(data, "s0", 0, replace=True) == (3, 4)
        stale = again | {"volume_epoch": 1}
        assert await code_of(data, "Registry.RegisterShard", **stale) is ErrorCode.STALE_VOLUME
        replaced = stale | {"replace": True}
        assert await code_of(data, "Registry.RegisterShard", **replaced) is ErrorCode.STALE_VOLUME

        # A volume or an object store that knows more than the database, which is an old backup then: no epoch
        # is given twice.
        assert (await register(data, "s0", 9))[0] == 9
        assert (await register(data, "s2"))[0] == 10
        assert (await register(data, "s3", min_epoch=20))[0] == 21
        assert (await register(data, "s4", min_epoch=20))[0] == 22
