"""A room host between a real state store and a test that plays the router."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc.aio

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.roomhost.v1 import roomhost_pb2_grpc as rpc
from playhall.api.statestore.v1 import statestore_pb2 as store_pb
from playhall.api.statestore.v1 import statestore_pb2_grpc as store_rpc
from playhall.engine.frames import Message, UpdatePart, decode_server
from playhall.engine.packing import pack_up, read_down
from playhall_common import auth, ids
from playhall_common.errors import from_rpc
from tests.support.processes import SERVICE_SECRET, Processes, ServiceProcess

PROJECT = "arcade"
CALL_S = 15.0
SECOND = 1.0

GAME = """
import contextlib
import os
import stat
import time
from playhall.room import Entity, Room, Schema, u32

visits = []

class Board(Entity):
    moves: u32 = 0

class Game(Room[Board]):
    schema = Schema(state=Board)

    def on_create(self):
        visits.append(self.id)

    def on_message(self, conn, message):
        do = message["do"]
        if do == "move":
            self.state.moves += message.get("by", 1)
        elif do == "tell":
            here = {"moves": self.state.moves, "tick": self.tick, "visits": visits, "now": self.now()}
            self.send(conn, here)
        elif do == "break":
            self.broken = "a dot too many" + chr(message.get("chr", 33))
        elif do == "log":
            for n in range(message["lines"]):
                getattr(self.log, message.get("level", "info"))("line %d", n)
        elif do == "deafen":
            nothing = os.open(os.devnull, os.O_RDWR)
            for fd in map(int, os.listdir("/proc/self/fd")):
                with contextlib.suppress(OSError):
                    if fd > 2 and stat.S_ISSOCK(os.fstat(fd).st_mode):
                        os.dup2(nothing, fd)
        elif do == "block":
            time.sleep(60)

    def on_tick(self, dt):
        if getattr(self, "broken", ""):
            raise RuntimeError(self.broken)

class Duel(Game):
    max_players = 2

class Broken(Game):
    def on_create(self):
        raise RuntimeError("no board")
"""


def new_uid() -> str:
    """A room_uid."""
    return ids.ulid(int(time.time() * 1000), os.urandom)


def make_build(directory: Path, source: str = GAME, *, build_id: str = "b1", deploy_seq: int = 1) -> pb.Build:
    """A build of one module, `game`, on disk."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "game.py").write_text(source)
    return pb.Build(
        project=PROJECT,
        build_id=build_id,
        deploy_seq=deploy_seq,
        location=directory.as_uri(),
        rooms={"default": "game:Game", "duel": "game:Duel", "broken": "game:Broken"},
    )


class Shard:
    """A state store, and the data service it registers at.

    `start` again after `kill`: the same one, at the same address.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes = Processes(directory)
        self.address = f"unix:{directory}/shard.sock"
        self._data = ""

    def __enter__(self) -> Self:
        self._processes.__enter__()
        url = f"sqlite+aiosqlite:///{self._directory}/data.db"
        self._data = self._processes.start("data", DATABASE_URL=url).grpc
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._processes.__exit__(kind, error, trace)

    def start(self) -> None:
        self._process = self._processes.start(
            "statestore",
            ADDRESS=self.address,
            DATA_DIR=self._directory / "shard",
            OBJECTS_DIR=self._directory / "objects",
            DATA_ADDRESS=self._data,
            SILENCE_S=1.5,
        )

    def kill(self) -> None:
        self._process.kill()

    def strikes(self, room_uid: str) -> int:
        """How often the shard was told that this room's code failed."""
        lines = self._process.log_lines("room_struck")
        return sum(line["room_uid"] == room_uid for line in lines)


def pid_of(supervisor: ServiceProcess, process: pb.Process) -> int:
    """The pid of a room host process."""
    lines = supervisor.log_lines("process_serves")
    return next(int(line["pid"]) for line in lines if line["host_id"] == process.host_id)


class Router:
    """One Attach stream, and what came down it. `until` waits for something to be so."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._news = asyncio.Event()
        self._reader = asyncio.create_task(self._read())
        self._links = 0
        self.generations: dict[int, int] = {}
        self.joined: dict[int, pb.Joined] = {}
        self.closed: dict[int, pb.Close] = {}
        self.ended: list[pb.Down] = []
        self.messages: dict[int, list[Any]] = {}
        self.updates: dict[int, int] = {}
        self.clocks: dict[int, list[pb.RoomClock]] = {}
        self.broke = False

    async def _read(self) -> None:
        try:
            while (response := await self._call.read()) is not grpc.aio.EOF:
                for down in response.items:
                    self._take(down)
                for clock in response.clocks:
                    self.clocks.setdefault(clock.room_no, []).append(clock)
                self._news.set()
        except (grpc.aio.AioRpcError, asyncio.CancelledError):
            pass
        self.broke = True
        self._news.set()

    def _take(self, down: pb.Down) -> None:
        control = down.WhichOneof("control")
        if control == "ended":
            self.ended.append(down)
        for link in down.links:
            if control == "joined":
                self.joined[link] = down.joined
            elif control == "close":
                self.closed[link] = down.close
        for _, group in read_down(down.frames):
            for index, link in enumerate(group.links):
                self._frame(link, group.heads[min(index, len(group.heads) - 1)] + group.body)

    def _frame(self, link: int, frame: bytes) -> None:
        read = decode_server(frame)
        if isinstance(read, Message):
            self.messages.setdefault(link, []).append(read.content)
        elif isinstance(read, UpdatePart):
            self.updates[link] = self.updates.get(link, 0) + 1

    async def until(self, what: Callable[[], Any], timeout_s: float = CALL_S) -> Any:
        """Wait until `what` gives something true, and give it."""
        async with asyncio.timeout(timeout_s):
            while not (found := what()):
                self._news.clear()
                await self._news.wait()
        return found

    async def send(self, *items: pb.Up, **fields: Any) -> None:
        await self._call.write(pb.AttachRequest(items=items, **fields))

    async def join(self, room_uid: str, generation: int, player: str = "ann", **fields: Any) -> int:
        """Ask in; gives the link, before any answer."""
        self._links += 1
        join = pb.Join(
            room_uid=room_uid,
            generation=generation,
            player=player,
            schema_hash=fields.pop("schema_hash", SCHEMA_HASH),
            session=os.urandom(16),
            connected_at_ms=int(time.time() * 1000),
            connection_id=f"c{self._links}",
            credit_bytes=fields.pop("credit_bytes", 1 << 20),
            room_type=fields.pop("room_type", "default"),
            **fields,
        )
        self.generations[self._links] = generation
        await self.send(pb.Up(link=self._links, join=join))
        return self._links

    async def enter(self, room_uid: str, generation: int, player: str = "ann", **fields: Any) -> int:
        """Join, and wait until the room's state has come."""
        link = await self.join(room_uid, generation, player, **fields)
        await self.until(lambda: self.updates.get(link) or link in self.closed)
        assert link in self.joined, self.closed.get(link)
        return link

    async def say(self, link: int, **message: Any) -> None:
        """Send a message as the client of this link."""
        await self.send(pb.Up(frames=pack_up(link, message_frame(message))))

    async def ask(self, link: int, timeout_s: float = CALL_S) -> dict[str, Any]:
        """What the room says of itself."""
        before = len(self.messages.get(link, []))
        await self.say(link, do="tell")
        await self.until(lambda: len(self.messages.get(link, [])) > before, timeout_s)
        answer: dict[str, Any] = self.messages[link][before]
        return answer

    async def leave(self, link: int, *, clean: bool = True) -> None:
        await self.send(pb.Up(link=link, leave=pb.Leave(clean=clean)))

    def endings(self, room_uid: str) -> list[int]:
        """The reasons of RoomEnded for a room, in order."""
        return [down.ended.reason for down in self.ended if down.ended.room_uid == room_uid]

    async def close(self) -> None:
        self._call.cancel()
        await asyncio.wait([self._reader])


def message_frame(content: Any) -> bytes:
    """A client's message."""
    import json

    return bytes((5, 0, 0)) + json.dumps(content).encode()


class Pod:
    """A supervisor and its processes, as a router sees them."""

    def __init__(self, supervisor: str, shard: str) -> None:
        self._shard = shard
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._routers: list[Router] = []
        self.supervisor = rpc.SupervisorStub(self._channel(supervisor))
        self.store = store_rpc.StateStoreStub(self._channel(shard))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for router in self._routers:
            await router.close()
        for channel in self._channels.values():
            await channel.close()

    def _channel(self, address: str) -> grpc.aio.Channel:
        if address not in self._channels:
            self._channels[address] = auth.channel(address)
        return self._channels[address]

    async def prepare(self, build: pb.Build) -> pb.Process:
        """Raises ApiError."""
        with _coded():
            response = await self.supervisor.Prepare(
                pb.PrepareRequest(build=build), timeout=CALL_S, wait_for_ready=True
            )
        process: pb.Process = response.process
        return process

    def host(self, process: pb.Process) -> Any:
        """The process's own service."""
        return rpc.RoomHostStub(self._channel(process.address))

    async def retire(self, before_deploy_seq: int, project: str = PROJECT) -> int:
        """How many processes drain now. Raises ApiError."""
        request = pb.RetireRequest(project=project, before_deploy_seq=before_deploy_seq)
        with _coded():
            response = await self.supervisor.Retire(request, timeout=CALL_S)
        processes: int = response.processes
        return processes

    async def start(self, process: pb.Process, room_uid: str, **fields: Any) -> pb.StartResponse:
        """Raises ApiError."""
        request = pb.StartRequest(
            project=PROJECT,
            room_uid=room_uid,
            room_id=fields.pop("room_id", room_uid[-6:].lower()),
            room_type=fields.pop("room_type", "default"),
            deploy_seq=process.deploy_seq,
            build_id=process.build_id,
            host_token=host_token(process),
            reason=pb.WAKE_REASON_CONNECT,
            shard_address=self._shard,
            host_id=process.host_id,
            **fields,
        )
        with _coded():
            response: pb.StartResponse = await self.host(process).Start(request, timeout=CALL_S)
        return response

    async def started(self, process: pb.Process, room_uid: str, **fields: Any) -> int:
        """Start a room that must start; gives its generation."""
        response = await self.start(process, room_uid, **fields)
        assert response.WhichOneof("outcome") == "started", response
        return response.started.generation

    async def hibernate(self, process: pb.Process, room_uid: str, generation: int) -> None:
        """Raises ApiError."""
        request = pb.HibernateRequest(room_uid=room_uid, generation=generation)
        with _coded():
            await self.host(process).Hibernate(request, timeout=CALL_S)

    async def everything_durable(self, process: pb.Process) -> None:
        """Return when what rooms of the process flushed so far is on disk.

        A room is closed after it, whose base went over the same stream.
        """
        uid = new_uid()
        await self.hibernate(process, uid, await self.started(process, uid))

    async def attach(self, process: pb.Process, router_id: str = "r1") -> Router:
        """A stream to the process, welcomed."""
        call = self.host(process).Attach()
        await call.write(pb.AttachRequest(hello=pb.AttachHello(router_id=router_id, host_id=process.host_id)))
        with _coded():
            response = await call.read()
        assert response.welcome.host_id == process.host_id
        router = Router(call)
        self._routers.append(router)
        return router

    @contextlib.asynccontextmanager
    async def control(self) -> AsyncIterator[Any]:
        """The Control stream."""
        call = self.supervisor.Control()
        await call.write(pb.ControlRequest(router_id="r1"))
        try:
            yield call
        finally:
            call.cancel()

    async def until_state(self, what: Callable[[pb.ControlResponse], Any]) -> pb.ControlResponse:
        """The first state of the pod that is so."""
        async with asyncio.timeout(CALL_S), self.control() as control:
            async for state in control:
                if what(state):
                    found: pb.ControlResponse = state
                    return found
        raise AssertionError("the supervisor ended the stream")

    async def room_status(self, room_uid: str, status: int | None = None) -> store_pb.RoomStatus:
        """What the shard says of a room; the first time it says `status`."""
        call = self.store.Watch(metadata=auth.service_metadata(SERVICE_SECRET))
        await call.write(store_pb.WatchRequest(router_id="t", watch=[room_uid]))
        try:
            async with asyncio.timeout(CALL_S):
                async for response in call:
                    for room in response.rooms:
                        if status is None or room.status == status:
                            found: store_pb.RoomStatus = room
                            return found
        finally:
            call.cancel()
        raise AssertionError("the shard ended the stream")


def host_token(process: pb.Process, seconds: int = 900) -> str:
    """What data would sign for this process."""
    claims = auth.HostClaims(PROJECT, process.build_id, process.host_id, int(time.time()) + seconds)
    return auth.sign_host_token(claims, SERVICE_SECRET)


@contextlib.contextmanager
def _coded() -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as failure:
        raise from_rpc(failure) from None


def _schema_hash() -> bytes:
    from playhall.room import Entity, Schema, u32

    class Board(Entity):
        moves: u32 = 0

    return Schema(state=Board).hash


SCHEMA_HASH = _schema_hash()
