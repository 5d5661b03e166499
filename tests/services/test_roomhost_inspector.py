"""What room host processes show of their rooms: everything, to routers, where the inspector is on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError, from_rpc
from tests.support.processes import Processes
from tests.support.room_hosts import CALL_S, Pod, Shard, make_build, new_uid

GAME = """
import asyncio

from playhall.room import Entity, Room, Schema, f64, u32

class Board(Entity):
    moves: u32 = 0

class Card(Entity, hidden=True):
    worth: f64 = float("nan")

class Game(Room[Board]):
    schema = Schema(state=Board)
    def on_create(self):
        self.log.info("made")
    async def on_message(self, conn, message):
        await asyncio.sleep(0)
        self.state.moves += 1
        self.send(conn, {"moves": self.state.moves})

class Duel(Room[Board]):
    schema = Schema(state=Board, entities=[Card])
    def on_create(self):
        for _ in range(3):
            self.entities.add(Card())

class Broken(Game):
    pass
"""


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shard]:
    with Shard(tmp_path_factory.mktemp("shard")) as shard:
        yield shard


async def inspect(pod: Pod, process: pb.Process, **asked: Any) -> Any:
    """The document. Raises ApiError."""
    request = pb.InspectRequest(host_id=asked.pop("host_id", process.host_id), **asked)
    try:
        answer = await pod.host(process).Inspect(request, timeout=CALL_S)
    except grpc.aio.AioRpcError as failure:
        raise from_rpc(failure) from None

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(answer.document, parse_constant=refuse)


@pytest.mark.asyncio
async def test_a_room_is_shown_with_its_messages_log_and_times(
    processes: Processes, tmp_path: Path, shard: Shard
) -> None:
    supervisor = processes.start("roomhost", RUN_DIR=tmp_path, INSPECTOR="true")
    async with Pod(supervisor.grpc, shard.address) as pod:
        process = await pod.prepare(make_build(tmp_path / "build", GAME))
        uid, other = new_uid(), new_uid()
        generation = await pod.started(process, uid, room_id="main")
        await pod.started(process, other, room_type="duel")
        router = await pod.attach(process)
        link = await router.enter(uid, generation, meta=b'{"name": "Ann"}')
        await router.say(link, do="move")
        await router.until(lambda: router.messages.get(link))

        rooms = {room["uid"]: room for room in await inspect(pod, process)}
        assert set(rooms) == {uid, other}
        assert (rooms[uid]["id"], rooms[uid]["status"], rooms[uid]["connection_count"]) == (
            "main",
            "active",
            1,
        )
        assert rooms[uid]["host_id"] == process.host_id

        room = await inspect(pod, process, room_uid=uid)
        assert (room["generation"], room["tick_rate"], room["room_class"]) == (generation, 20, "Game")
        assert room["state"] == {"moves": 1}
        assert [conn["player"] for conn in room["connections"]] == ["ann"]
        assert [(line["direction"], line["content"]) for line in room["messages"]] == [
            ("in", {"do": "move"}),
            ("out", {"moves": 1}),
        ]
        assert "made" in [line["message"] for line in room["log"]]

        cards = await inspect(pod, process, room_uid=other, kind="card", limit=2)
        assert [(item["hidden"], item["fields"]) for item in cards["entities"]["items"]] == [
            (True, {"worth": "NaN"})
        ] * 2
        assert cards["entities"]["total"] == 3

        for asked, code in (
            ({"room_uid": new_uid()}, ErrorCode.UNKNOWN),
            ({"host_id": "another"}, ErrorCode.FENCED),
        ):
            with pytest.raises(ApiError) as refused:
                await inspect(pod, process, **asked)
            assert refused.value.code is code


@pytest.mark.asyncio
async def test_a_process_shows_nothing_where_the_inspector_is_off(
    processes: Processes, tmp_path: Path, shard: Shard
) -> None:
    supervisor = processes.start("roomhost", RUN_DIR=tmp_path)
    async with Pod(supervisor.grpc, shard.address) as pod:
        process = await pod.prepare(make_build(tmp_path / "build", GAME))
        uid = new_uid()
        await pod.started(process, uid)
        for asked in ({}, {"room_uid": uid}):
            with pytest.raises(ApiError) as refused:
                await inspect(pod, process, **asked)
            assert refused.value.code is ErrorCode.FORBIDDEN
