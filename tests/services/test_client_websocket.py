"""The Python client on real sockets: discovery, WebSockets, and what they do when a server misbehaves."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from operator import itemgetter

import picows
import pytest
from aiohttp import web

from playhall.client import Net, PlayhallError, RoomClient, connect
from playhall.client.websocket import WebSocketDial
from playhall.engine import frames
from playhall.engine.kinds import spec_of, stored_values
from playhall.engine.updates import Section, UpdateBuilder, encode_enter, encode_head
from tests.support.scripted_server import SCHEMA, Board, Mine

pytestmark = pytest.mark.asyncio

DEADLINE_S = 10.0


def first_state() -> bytes:
    builder = UpdateBuilder()
    for id, entity in ((0, Board(moves=3)), (1, Mine(coins=4))):
        number = SCHEMA.kinds.index(spec_of(entity))
        builder.add(
            Section.ENTER,
            encode_enter(id, number, spec_of(entity), stored_values(entity), owner_only=id == 1),
        )
    [body] = builder.bodies()
    return encode_head(0, 0, last=True, full=True) + body


WELCOME = frames.Welcome(7, 1, 10, 0, False, False, 20, "alice", "main", "default", "")


class Connection(picows.WSListener):
    """One WebSocket of a client, at the server: lets it in, and keeps what it says."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.frames: list[frames.ClientFrame] = []
        self.closed_with: int | None = None
        self.gone = False
        self.changed = asyncio.Event()

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        self.transport = transport
        self.site.connections.append(self)
        self.site.changed.set()

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        if frame.msg_type == picows.WSMsgType.CLOSE:
            self.closed_with = int.from_bytes(frame.get_payload_as_bytes()[:2], "big")
            if not transport.is_close_frame_sent:
                transport.send_close(picows.WSCloseCode.OK)
            transport.disconnect()
        else:
            self.frames.append(frames.decode_client(frame.get_payload_as_bytes()))
            if isinstance(self.frames[-1], frames.Resume):
                self.site.answer(self)
        self.changed.set()

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        self.gone = True
        self.changed.set()

    def say(
        self, frame: frames.ServerFrame | bytes, kind: picows.WSMsgType = picows.WSMsgType.BINARY
    ) -> None:
        self.transport.send(kind, frame if isinstance(frame, bytes) else frames.encode_server(frame))

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not done():
                self.changed.clear()
                await self.changed.wait()


class Site:
    """A site that answers discovery, and the WebSocket server behind it."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.asked = 0
        self.was_asked = asyncio.Event()
        self.status = 200
        self.connections: list[Connection] = []
        self.changed = asyncio.Event()
        self.origin = ""

    def answer(self, connection: Connection) -> None:
        connection.say(WELCOME)
        connection.say(first_state())

    async def endpoints(self, request: web.Request) -> web.Response:
        self.asked += 1
        self.was_asked.set()
        if self.status != 200:
            return web.Response(status=self.status)
        return web.json_response({"websocket": self.addresses, "webtransport": []})

    def client(self, timeout: float = 5.0) -> RoomClient[Board, Mine]:
        return RoomClient(self.origin, project="dots", room="main", schema=SCHEMA, timeout=timeout)

    async def connected(self, count: int) -> Connection:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.connections) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.connections[-1]


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    site = Site()
    app = web.Application()
    app.router.add_get("/v1/projects/dots/endpoints", site.endpoints)
    runner = web.AppRunner(app)
    await runner.setup()
    http = web.TCPSite(runner, "127.0.0.1", 0)
    await http.start()
    sockets = await picows.ws_create_server(lambda request: Connection(site), "127.0.0.1", 0)
    site.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    site.addresses = [f"ws://127.0.0.1:{sockets.sockets[0].getsockname()[1]}/v1/connect"]
    try:
        yield site
    finally:
        sockets.close()
        await runner.cleanup()


@pytest.mark.ledger("CENT-01")
async def test_connect_gives_a_client_that_has_its_first_state_and_leaves_at_the_end() -> None:
    async with serving() as site:
        async with connect(site.origin, project="dots", room="main", schema=SCHEMA) as room:
            assert (room.state.moves, room.private.coins, room.player) == (3, 4, "alice")
            room.send({"type": "hi"})
            [connection] = site.connections
            await connection.until(lambda: isinstance(connection.frames[-1], frames.Message))
        assert isinstance(connection.frames[-1], frames.Leave)
        assert connection.closed_with == 1000
        assert room.status == "closed"


async def test_it_can_be_awaited_too() -> None:
    async with serving() as site:
        room = await connect(site.origin, project="dots", room="main", schema=SCHEMA)
        assert room.status == "open"
        await room.leave()
        await room.leave()
        assert len(asyncio.all_tasks()) == 1


async def test_a_failed_address_is_not_tried_again_before_the_others() -> None:
    async with serving() as site:
        site.addresses = ["ws://127.0.0.1:9/v1/connect", *site.addresses, "no address at all"]
        room = site.client()
        await room.ready
        await room.leave()
        assert site.asked == 1


async def test_a_router_that_does_not_answer_is_left_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "choice", itemgetter(0))
    with socket.create_server(("127.0.0.1", 0)) as stopped:
        async with serving() as site:
            site.addresses.insert(0, f"ws://127.0.0.1:{stopped.getsockname()[1]}/v1/connect")
            room = RoomClient(
                site.origin, project="dots", room="main", schema=SCHEMA, timeout=5.0,
                dial=WebSocketDial(site.origin, "dots", switch_s=0.1),
            )  # fmt: skip
            await room.ready
            await room.leave()
        assert site.asked == 1
        assert len(asyncio.all_tasks()) == 1
        left, _ = stopped.accept()
        left.setblocking(False)
        loop = asyncio.get_running_loop()
        with left:
            async with asyncio.timeout(DEADLINE_S):
                assert await loop.sock_recv(left, 4) == b"GET "
                while await loop.sock_recv(left, 65_536):
                    pass


async def test_an_answer_of_discovery_is_kept_and_thrown_away_when_nothing_of_it_works() -> None:
    async with serving() as site:
        room = site.client()
        await room.ready
        [first] = site.connections
        restored = asyncio.Event()
        room.on("restored", restored.set)
        first.transport.disconnect(False)
        async with asyncio.timeout(DEADLINE_S):
            await restored.wait()
        assert site.asked == 1
        await room.leave()
    async with serving() as site:
        good, site.addresses = site.addresses, ["ws://127.0.0.1:9/v1/connect"]
        room = site.client()
        joining = asyncio.ensure_future(room.ready)
        async with asyncio.timeout(DEADLINE_S):
            await site.was_asked.wait()
        site.addresses = good
        await joining
        assert site.asked >= 2
        await room.leave()


@pytest.mark.parametrize(("status", "code"), [(404, 4002), (500, 1006)])
async def test_an_unknown_project_is_final_and_a_broken_site_is_tried_until_the_timeout(
    status: int, code: int
) -> None:
    async with serving() as site:
        site.status = status
        with pytest.raises(PlayhallError) as refused:
            await site.client(timeout=0.5).ready
        assert refused.value.code == code
        assert (site.asked == 1) is (status == 404)


async def test_nobody_there_at_all() -> None:
    room = RoomClient("http://127.0.0.1:9", project="dots", room="main", schema=SCHEMA, timeout=0.3)
    with pytest.raises(PlayhallError) as refused:
        await room.ready
    assert refused.value.code == 1006
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("code", [4001, 4004, 4012])
async def test_a_final_close_of_the_servers_is_reported_with_its_code_and_text(code: int) -> None:
    async with serving() as site:
        room = site.client()
        closed: asyncio.Future[PlayhallError] = asyncio.get_running_loop().create_future()
        room.on("closed", closed.set_result)
        await room.ready
        site.connections[0].transport.send_close(code, b"that is why")  # type: ignore[arg-type]
        async with asyncio.timeout(DEADLINE_S):
            error = await closed
        assert (error.code, error.message, room.status) == (code, "that is why", "closed")
        assert len(site.connections) == 1


@pytest.mark.parametrize("bad", ["text", "fragment", "empty", "too long"])
async def test_what_is_no_frame_closes_4000(bad: str) -> None:
    async with serving() as site:
        room = site.client()
        closed: asyncio.Future[PlayhallError] = asyncio.get_running_loop().create_future()
        room.on("closed", closed.set_result)
        await room.ready
        [connection] = site.connections
        if bad == "text":
            connection.say(b"{}", picows.WSMsgType.TEXT)
        elif bad == "fragment":
            connection.transport.send(picows.WSMsgType.BINARY, b"\x05\x00", fin=False)
        else:
            connection.say(b"" if bad == "empty" else b"\x05\x01" + bytes(65_600))
        async with asyncio.timeout(DEADLINE_S):
            assert (await closed).code == 4000
        await connection.until(lambda: connection.closed_with is not None)
        assert connection.closed_with == (1009 if bad == "too long" else 4000)


@pytest.mark.parametrize("said_hello", [True, False])
async def test_cancelling_a_connect_leaves_nothing_behind(said_hello: bool) -> None:
    async with serving() as site:
        site.answer = lambda connection: None  # type: ignore[method-assign]
        room = site.client(timeout=60.0)
        joining = asyncio.ensure_future(room.ready)
        connection = await site.connected(1)
        if said_hello:
            await connection.until(lambda: len(connection.frames) > 2)
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        await connection.until(lambda: connection.gone)
        assert connection.closed_with == (1000 if said_hello else None)
        assert room.status == "closed"
        await room.leave()
        assert len(asyncio.all_tasks()) == 1


async def test_a_server_that_does_not_answer_a_close_is_hung_up_on() -> None:
    async with serving() as site:
        room = site.client()
        await room.ready
        [connection] = site.connections
        connection.transport.underlying_transport.pause_reading()
        async with asyncio.timeout(DEADLINE_S):
            await room.leave()
        connection.transport.underlying_transport.resume_reading()


def flood(room: RoomClient[Board, Mine]) -> None:
    for _ in range(1_000):
        room.send(bytes(60_000))


async def test_a_server_that_does_not_read_refuses_more_rather_than_filling_memory() -> None:
    async with serving() as site:
        room = site.client()
        await room.ready
        [connection] = site.connections
        connection.transport.underlying_transport.pause_reading()
        with pytest.raises(PlayhallError) as refused:
            flood(room)
        assert refused.value.code == 4005
        assert not room.send(bytes(60_000), unreliable=True)
        connection.transport.disconnect(False)
        await room.leave()


async def test_an_origin_that_is_none_is_refused_before_anything_is_tried() -> None:
    for url in ("ws://127.0.0.1:7350", "127.0.0.1:7350", "http://"):
        with pytest.raises(ValueError, match="origin"):
            RoomClient(url, project="dots", room="main", schema=SCHEMA)


@pytest.mark.ledger("DEV-04")
async def test_over_a_simulated_network_messages_are_late_and_unreliable_ones_get_lost() -> None:
    async with serving() as site:
        net = Net(rtt=0.1, loss=0.5, seed=1)
        room = await connect(site.origin, project="dots", room="main", schema=SCHEMA, simulate=net)
        clock = asyncio.get_running_loop().time
        sent_at = clock()
        for n in range(50):
            room.send(n, unreliable=True)
        room.send("last")
        [connection] = site.connections
        await connection.until(
            lambda: any(frame == frames.Message("last", 10) for frame in connection.frames)
        )
        assert clock() - sent_at >= 0.05
        came = [frame for frame in connection.frames if isinstance(frame, frames.Unreliable)]
        assert 10 < len(came) < 40
        await room.leave()
        assert isinstance(connection.frames[-1], frames.Leave)
