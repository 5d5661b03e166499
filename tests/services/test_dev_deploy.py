"""Builds go live at a real data service, and rooms of older code leave a real room host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc.aio
import pytest
import pytest_asyncio

from playhall.api.roomhost.v1 import roomhost_pb2, roomhost_pb2_grpc
from playhall.cli.build import Build, RoomType
from playhall.cli.deploy import Deployer
from playhall.cli.errors import DeployError
from playhall.cli.project import ProjectFile, load
from tests.support.data_client import DataClient
from tests.support.players import eventually
from tests.support.processes import SERVICE_SECRET, Processes, ServiceProcess

pytestmark = pytest.mark.asyncio

ROOM = """
from playhall.room import Entity, Room, Schema, u8

class Dot(Entity):
    x: u8

class Dots(Room):
    schema = Schema(entities=[Dot])
"""
TYPES = (RoomType("default", "game.room:Dots", "00" * 16, 1, 64),)
DEADLINE_S = 15.0


class Stand:
    """A project, data and a room host, and a deployer for them."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        self.folder, self._processes = folder, processes
        self.settings("guests = true")
        self.data = self.start_data()
        roomhost = processes.start("roomhost", ADDRESS=f"unix:{folder}/roomhost.sock", RUN_DIR=folder)
        self.client = DataClient(self.data.grpc)
        self._channel = grpc.aio.insecure_channel(roomhost.grpc)
        self.supervisor = roomhost_pb2_grpc.SupervisorStub(self._channel)
        self.deployer = self.new_deployer()

    def start_data(self) -> ServiceProcess:
        return self._processes.start(
            "data",
            ADDRESS=f"unix:{self.folder}/data.sock",
            DATABASE_URL=f"sqlite+aiosqlite:///{self.folder}/data.db",
            ADMIN_KEY=SERVICE_SECRET,
        )

    def new_deployer(self) -> Deployer:
        """What the next `playhall dev` would have."""
        return Deployer(
            data=f"unix:{self.folder}/data.sock",
            roomhost=f"unix:{self.folder}/roomhost.sock",
            admin_key=SERVICE_SECRET,
        )

    def settings(self, players: str) -> ProjectFile:
        head = '[project]\nslug = "game"\n[rooms.default]\nmodule = "room:Dots"\n[settings.players]\n'
        (self.folder / "playhall.toml").write_text(f"{head}{players}\n")
        self.project = load(self.folder)
        return self.project

    def build(self, code: str = "one", site: str = "one") -> Build:
        package = self.folder / "code" / code / "game"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
        (package / "room.py").write_text(ROOM)
        return Build(package.parent, self.folder / "site" / site, TYPES, {})

    async def live(self) -> tuple[str, int, str]:
        """Of what is live at data: code, deploy_seq and site."""
        build = (await self.client.call("Builds.GetLiveBuild", project="game")).build
        return Path(build.location).name, build.deploy_seq, Path(build.site).name

    async def start_process(self) -> str:
        """Have the room host run a process of the live build, as a router would."""
        build = (await self.client.call("Builds.GetLiveBuild", project="game")).build
        wanted = roomhost_pb2.Build(
            project="game", build_id=build.build_id, deploy_seq=build.deploy_seq, location=build.location,
            rooms={"default": "game.room:Dots"},
        )  # fmt: skip
        request = roomhost_pb2.PrepareRequest(build=wanted)
        answer = await self.supervisor.Prepare(request, timeout=DEADLINE_S, wait_for_ready=True)
        return str(answer.process.build_id)

    async def serving(self) -> list[str]:
        """The builds whose processes take rooms."""
        stream = self.supervisor.Control(iter([roomhost_pb2.ControlRequest()]), timeout=DEADLINE_S)
        async for state in stream:
            stream.cancel()
            return [process.build_id for process in state.processes if not process.draining]
        raise AssertionError("the supervisor said nothing")

    async def close(self) -> None:
        await self.deployer.close()
        await self.client.__aexit__(None, None, None)
        await self._channel.close()


@pytest_asyncio.fixture
async def stand(tmp_path: Path, processes: Processes) -> AsyncIterator[Stand]:
    stand = Stand(tmp_path, processes)
    yield stand
    await stand.close()


async def test_what_goes_live_moves_rooms_where_their_code_changed_alone(stand: Stand) -> None:
    await stand.deployer.go_live(stand.project, stand.build())
    assert await stand.live() == ("one", 1, "one")
    first = await stand.start_process()

    await stand.deployer.go_live(stand.project, stand.build(site="two"))
    assert await stand.live() == ("one", 2, "two")
    assert await stand.serving() == [first]

    build = stand.build(code="two", site="two")
    await stand.deployer.go_live(stand.project, build)
    assert await stand.live() == ("two", 3, "two")
    assert stand.deployer.live == build
    assert await stand.serving() == []

    second = await stand.start_process()
    types = (replace(TYPES[0], name="arena"),)
    await stand.deployer.go_live(stand.project, replace(build, room_types=types))
    assert second != first
    assert await stand.serving() == []


async def test_the_live_build_again_changes_nothing(stand: Stand) -> None:
    await stand.deployer.go_live(stand.project, stand.build())
    process = await stand.start_process()
    await stand.deployer.go_live(stand.project, stand.build())
    again = stand.new_deployer()
    await again.go_live(stand.project, stand.build())
    await again.close()
    assert await stand.live() == ("one", 1, "one")
    assert await stand.serving() == [process]


async def test_a_room_that_woke_on_the_last_runs_build_moves(stand: Stand) -> None:
    """A page of yesterday reconnects as soon as routers serve, and that is before today's build is live."""
    await stand.deployer.go_live(stand.project, stand.build())
    await stand.start_process()
    today = stand.new_deployer()
    await today.go_live(stand.project, stand.build(code="two"))
    await today.close()
    assert await stand.serving() == []


async def test_settings_of_the_project_file_are_applied_as_they_change(stand: Stand) -> None:
    for players in ("guests = true", "guests = false", "guests = true\ncreate_rooms = true"):
        await stand.deployer.go_live(stand.settings(players), stand.build())
        found = (await stand.client.call("Projects.GetProject", slug="game")).project.settings
        assert (found.guests, found.create_rooms) == ("guests = true" in players, "create_rooms" in players)
        assert found.build_update == "restart"
    assert (await stand.live())[1] == 1


async def test_a_service_that_is_started_again_meanwhile_is_waited_for(stand: Stand) -> None:
    await stand.deployer.go_live(stand.project, stand.build())
    stand.data.kill()
    going = asyncio.create_task(stand.deployer.go_live(stand.project, stand.build(code="two")))
    await asyncio.to_thread(stand.start_data)
    async with asyncio.timeout(DEADLINE_S):
        await going
    await eventually(lambda: stand.deployer.live == stand.build(code="two"))
    assert (await stand.live())[0] == "two"


async def test_what_data_refuses_is_said(stand: Stand) -> None:
    bad = replace(stand.build(), room_types=(replace(TYPES[0], max_players=0),))
    with pytest.raises(DeployError, match=r"max_players.* is not 1 to 1024"):
        await stand.deployer.go_live(stand.project, bad)
    assert stand.deployer.live is None
    await stand.deployer.go_live(stand.project, stand.build())
    assert (await stand.live())[0] == "one"
