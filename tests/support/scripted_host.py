"""A pod of room hosts for tests of the router: real gRPC, real grants of the real shard, scripted rooms.

It follows roomhost.proto. A room answers each message with the same message, and keeps who is in it; a test
makes it do the rest: `end`, `send`, `refuse_starts`, `stop`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc.aio

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.roomhost.v1 import roomhost_pb2_grpc as rpc
from playhall.api.statestore.v1 import statestore_pb2 as store
from playhall.api.statestore.v1 import statestore_pb2_grpc as store_rpc
from playhall.engine import frames
from playhall.engine.codes import ErrorCode
from playhall.engine.packing import Group, pack_down, read_up
from playhall_common.auth import bearer_metadata, channel
from playhall_common.errors import ApiError, abort

__all__ = ["HostedRoom", "Member", "ScriptedHost"]

TICK_RATE = 20
BEAT_S = 0.5
WAIT_S = 10.0


@dataclass(eq=False)
class Member:
    """A connection in a room."""

    link: int
    join: pb.Join
    down: asyncio.Queue[pb.AttachResponse | None]
    drained: int = 0
    left: bool | None = None
    """Whether it left cleanly, once it left."""


@dataclass(eq=False)
class HostedRoom:
    """A room that runs here."""

    uid: str
    generation: int
    number: int
    start: pb.StartRequest
    members: dict[tuple[int, int], Member] = field(default_factory=dict)
    """By stream and link."""
    gone: list[Member] = field(default_factory=list)
    writing: asyncio.Task[None] | None = None
    closing: bool = False


class ScriptedHost:
    """One pod with one process: both servicers on one address."""

    def __init__(self, project: str, build_id: str, *, max_rooms: int = 250) -> None:
        self.host_id = secrets.token_hex(8)
        self.project = project
        self.build_id = build_id
        self.max_rooms = max_rooms
        self.rooms: dict[str, HostedRoom] = {}
        self.starts: list[pb.StartRequest] = []
        self.prepared: list[pb.PrepareRequest] = []
        self.attached: list[str] = []
        """Ids of the routers that attached."""
        self.refuse_starts: ErrorCode | None = None
        self.answer_starts: pb.StartResponse | None = None
        self.inspected: list[pb.InspectRequest] = []
        self.answer_inspections: bytes | None = None
        self.on_join: Callable[[ScriptedHost, HostedRoom, Member], None] | None = None
        self.silent = False
        self.stopped: list[pb.StoppedRoom] = []
        """What the supervisor says it stopped."""
        self.prepared_only = False
        """Whether the process is named by Prepare alone, as one that is yet to start."""
        self.start_gate = asyncio.Event()
        """Starts wait while it is clear."""
        self.start_gate.set()
        self.address = ""
        self.draining = False
        """Whether the process wants its rooms to move."""
        self.places: list[int] = []
        """How many places elsewhere routers named on Attach streams."""
        self.tokens: list[str] = []
        """Host tokens that came on Attach streams."""
        self.shown: dict[str, str] = {}
        """What the newest call of each method came with, by the method's name."""
        self._changed = asyncio.Condition()
        self._streams: dict[int, asyncio.Queue[pb.AttachResponse | None]] = {}
        self._starting: dict[str, asyncio.Task[pb.StartResponse]] = {}
        self._server: grpc.aio.Server | None = None
        self._channels: list[grpc.aio.Channel] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, address: str = "127.0.0.1:0") -> None:
        """Listen."""
        server = grpc.aio.server(options=(("grpc.so_reuseport", 0),), interceptors=[_Overhearer(self)])
        rpc.add_SupervisorServicer_to_server(_Supervisor(self), server)
        rpc.add_RoomHostServicer_to_server(_RoomHost(self), server)
        port = server.add_insecure_port(address)
        self.address = f"127.0.0.1:{port}"
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """Die: streams break, the shard hears nothing more."""
        if self._server is not None:
            await self._server.stop(0)
            self._server = None
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for each in self._channels:
            await each.close(None)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something holds that routers bring about."""
        async with asyncio.timeout(WAIT_S), self._changed:
            await self._changed.wait_for(lambda: bool(condition()))

    def room(self, room_id: str) -> HostedRoom:
        """The room of that id."""
        return next(room for room in self.rooms.values() if room.start.room_id == room_id)

    def member(self, room_id: str, player: str | None = None) -> Member:
        """Who is in a room; the only one, or of that player."""
        members = [
            member
            for member in self.room(room_id).members.values()
            if player is None or member.join.player == player
        ]
        (member,) = members
        return member

    # What a test makes rooms do.

    def say(self, member: Member, down: pb.Down) -> None:
        """Say something of one member."""
        down.links.append(member.link)
        member.down.put_nowait(pb.AttachResponse(items=[down]))

    def send(self, room: HostedRoom, member: Member, frame: bytes, *, unreliable: bool = False) -> None:
        """Send a member a frame."""
        run = pack_down(room.generation, Group([member.link], [b""], frame, unreliable))
        member.down.put_nowait(pb.AttachResponse(items=[pb.Down(frames=run)]))

    def end(self, room: HostedRoom, reason: pb.RoomEnded.Reason.ValueType, code: int = 0) -> None:
        """Tell all routers that the room ends, or has ended."""
        room.closing = True
        if reason is not pb.RoomEnded.REASON_CLOSING:
            self.rooms.pop(room.uid, None)
        ended = pb.RoomEnded(room_uid=room.uid, reason=reason, code=code)
        for queue in self._streams.values():
            queue.put_nowait(pb.AttachResponse(items=[pb.Down(generation=room.generation, ended=ended)]))

    def name_stopped(self, room: HostedRoom, code: int) -> None:
        """Tell all routers, as a supervisor does, that the room blocked its process."""
        self.stopped.append(
            pb.StoppedRoom(
                room_uid=room.uid,
                generation=room.generation,
                host_id=self.host_id,
                address=self.address,
                code=code,
            )
        )

    async def release(self, room: HostedRoom, kind: store.End.ValueType = store.END_HIBERNATED) -> None:
        """Close the room at the shard, then say so."""
        stub, metadata = self._store(room.start)
        await stub.Close(
            store.CloseRequest(
                project=room.start.project,
                room_uid=room.uid,
                generation=room.generation,
                kind=kind,
                alarm_ms=-1,
                host_id=self.host_id,
            ),
            metadata=metadata,
            timeout=WAIT_S,
        )
        if room.writing is not None:
            room.writing.cancel()
        self.end(room, pb.RoomEnded.REASON_RELEASED)

    # What the servicers do.

    async def start(self, request: pb.StartRequest) -> pb.StartResponse:
        self.starts.append(request)
        await self.changed()
        if self.refuse_starts is not None:
            raise ApiError(self.refuse_starts)
        if self.answer_starts is not None:
            return self.answer_starts
        # As a real host does, the start goes on when the caller gives up.
        pending = self._starting.get(request.room_uid)
        if pending is None:
            pending = asyncio.get_running_loop().create_task(self._start(request))
            self._starting[request.room_uid] = pending
        return await asyncio.shield(pending)

    async def _start(self, request: pb.StartRequest) -> pb.StartResponse:
        try:
            await self.start_gate.wait()
            known = self.rooms.get(request.room_uid)
            if known is None:
                answer = await self._open(request)
                if not isinstance(answer, HostedRoom):
                    return answer
                known = answer
            return pb.StartResponse(started=pb.Started(generation=known.generation, host_id=self.host_id))
        finally:
            del self._starting[request.room_uid]
            await self.changed()

    async def _open(self, request: pb.StartRequest) -> HostedRoom | pb.StartResponse:
        stub, metadata = self._store(request)
        call = stub.Open(
            store.OpenRequest(
                project=request.project,
                room_uid=request.room_uid,
                host_id=self.host_id,
                host_address=self.address,
                open_id=secrets.token_hex(8),
                deploy_seq=request.deploy_seq,
                has_state=request.has_state,
                reason=request.reason,
            ),
            metadata=metadata,
            timeout=WAIT_S,
        )
        granted = None
        async for part in call:
            if part.WhichOneof("part") == "already_open":
                owner = part.already_open
                elsewhere = pb.OwnedElsewhere(
                    generation=owner.generation, host_id=owner.host_id, address=owner.host_address
                )
                return pb.StartResponse(owned_elsewhere=elsewhere)
            if part.WhichOneof("part") == "granted":
                granted = part.granted
                if not granted.has_state:
                    break
        assert granted is not None
        room = HostedRoom(request.room_uid, granted.generation, len(self.rooms) + 1, request)
        self.rooms[room.uid] = room
        ready = asyncio.Event()
        room.writing = self._spawn(self._write(room, ready))
        async with asyncio.timeout(WAIT_S):
            await ready.wait()
        return room

    async def _write(self, room: HostedRoom, ready: asyncio.Event) -> None:
        stub, metadata = self._store(room.start)
        call = stub.Write(metadata=metadata)
        grant = store.RoomGrant(room_uid=room.uid, generation=room.generation)
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # tests kill the shard
            await call.write(store.WriteRequest(hello=store.WriteHello(host_id=self.host_id, rooms=[grant])))
            await call.read()
            ready.set()
            while True:
                await call.write(store.WriteRequest(heartbeat=True))
                await asyncio.sleep(BEAT_S)

    def inspect(self, request: pb.InspectRequest) -> bytes:
        """Rooms as they were started; of one, what was asked of it too."""
        self.inspected.append(request)
        if self.answer_inspections is not None:
            return self.answer_inspections
        if request.host_id != self.host_id:
            raise ApiError(ErrorCode.FENCED)
        rooms = {
            room.uid: {
                "project": room.start.project,
                "id": room.start.room_id,
                "uid": room.uid,
                "generation": room.generation,
            }
            for room in self.rooms.values()
        }
        if not request.room_uid:
            return json.dumps(list(rooms.values())).encode()
        if request.room_uid not in rooms:
            raise ApiError(ErrorCode.UNKNOWN)
        return json.dumps({**rooms[request.room_uid], "status": "active"}).encode()

    async def attach(self, requests: AsyncIterator[pb.AttachRequest]) -> AsyncIterator[pb.AttachResponse]:
        first = await anext(requests)
        if first.hello.host_id != self.host_id:
            raise ApiError(ErrorCode.FENCED)
        number = len(self.attached) + 1
        self.attached.append(first.hello.router_id)
        queue: asyncio.Queue[pb.AttachResponse | None] = asyncio.Queue()
        self._streams[number] = queue
        reader = self._spawn(self._read(number, requests, queue))
        yield pb.AttachResponse(welcome=pb.AttachWelcome(host_id=self.host_id))
        try:
            while True:
                try:
                    async with asyncio.timeout(BEAT_S):
                        response = await queue.get()
                except TimeoutError:
                    response = pb.AttachResponse(heartbeat=True)
                if response is None:
                    return
                if not self.silent:
                    yield response
        finally:
            del self._streams[number]
            reader.cancel()

    async def _read(
        self, number: int, requests: AsyncIterator[pb.AttachRequest], queue: asyncio.Queue[Any]
    ) -> None:
        async for request in requests:
            if request.host_token:
                self.tokens.append(request.host_token)
            if request.places:
                self.places.append(request.places)
            for up in request.items:
                self._up(number, up, queue)
            for link, drained in zip(request.drained_links, request.drained_bytes, strict=True):
                for room in self.rooms.values():
                    if (number, link) in room.members:
                        room.members[number, link].drained = drained
            await self.changed()

    def _up(self, number: int, up: pb.Up, queue: asyncio.Queue[Any]) -> None:
        match up.WhichOneof("control"):
            case "join":
                self._join(number, up, queue)
            case "leave":
                for room in self.rooms.values():
                    member = room.members.pop((number, up.link), None)
                    if member is not None:
                        member.left = up.leave.clean
                        room.gone.append(member)
            case _:
                for link, frame in read_up(up.frames):
                    self._echo(number, link, frame)

    def _echo(self, number: int, link: int, frame: bytes) -> None:
        for room in self.rooms.values():
            member = room.members.get((number, link))
            if member is not None and frame[0] == frames.MESSAGE:
                # From a client there is `seen` (here 0) before the format.
                self.send(room, member, frame[:1] + frame[2:])

    def _join(self, number: int, up: pb.Up, queue: asyncio.Queue[Any]) -> None:
        join = up.join
        room = self.rooms.get(join.room_uid)
        if room is None or room.generation != join.generation or room.closing:
            here = room is not None and room.generation == join.generation
            reason = pb.RoomEnded.REASON_CLOSING if here else pb.RoomEnded.REASON_NOT_HERE
            ended = pb.RoomEnded(room_uid=join.room_uid, reason=reason)
            queue.put_nowait(pb.AttachResponse(items=[pb.Down(generation=join.generation, ended=ended)]))
            return
        member = room.members[number, up.link] = Member(up.link, join, queue)
        if self.on_join is not None:
            self.on_join(self, room, member)
            return
        self.let_in(room, member)

    def let_in(self, room: HostedRoom, member: Member) -> None:
        """Tell the router that a member is in."""
        joined = pb.Joined(
            room_no=room.number, version=1, tick=100, tick_rate=TICK_RATE,
            resumed=member.join.resume[1:2] != b"\x00" and not member.join.was_joined,
        )  # fmt: skip
        self.say(member, pb.Down(generation=room.generation, joined=joined))

    def state(self) -> pb.ControlResponse:
        process = pb.Process(
            host_id=self.host_id, address=self.address, build_id=self.build_id, rooms=len(self.rooms),
            max_rooms=self.max_rooms, draining=self.draining,
        )  # fmt: skip
        return pb.ControlResponse(
            pod_id=self.host_id, project=self.project, processes=[process], stopped=self.stopped
        )

    def listed(self) -> pb.ControlResponse:
        """What the pod says of itself."""
        state = self.state()
        if self.prepared_only:
            del state.processes[:]
        return state

    async def changed(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _store(self, request: pb.StartRequest) -> tuple[Any, Any]:
        opened = channel(request.shard_address)
        self._channels.append(opened)
        return store_rpc.StateStoreStub(opened), bearer_metadata(request.host_token)

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Overhearer(grpc.aio.ServerInterceptor):
    """Sees what tenant code could see."""

    def __init__(self, host: ScriptedHost) -> None:
        self._host = host

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        method = handler_call_details.method.rpartition("/")[2]
        self._host.shown[method] = repr(handler_call_details.invocation_metadata)
        return await continuation(handler_call_details)


class _Supervisor(rpc.SupervisorServicer):
    def __init__(self, host: ScriptedHost) -> None:
        self._host = host

    async def Control(self, request_iterator: Any, context: Any) -> AsyncIterator[pb.ControlResponse]:  # noqa: N802
        while True:
            yield self._host.listed()
            await asyncio.sleep(BEAT_S)

    async def Prepare(self, request: pb.PrepareRequest, context: Any) -> pb.PrepareResponse:  # noqa: N802
        self._host.prepared.append(request)
        await self._host.changed()
        if request.build.build_id != self._host.build_id:
            await abort(context, ApiError(ErrorCode.BUSY, "this pod runs another build"))
        if self._host.draining or len(self._host.rooms) >= self._host.max_rooms:
            await abort(context, ApiError(ErrorCode.BUSY, "this pod is full"))
        return pb.PrepareResponse(process=self._host.state().processes[0])

    async def Retire(self, request: pb.RetireRequest, context: Any) -> pb.RetireResponse:  # noqa: N802
        await abort(context, ApiError(ErrorCode.UNAVAILABLE, "this pod keeps its rooms"))


class _RoomHost(rpc.RoomHostServicer):
    def __init__(self, host: ScriptedHost) -> None:
        self._host = host

    async def Start(self, request: pb.StartRequest, context: Any) -> pb.StartResponse:  # noqa: N802
        try:
            return await self._host.start(request)
        except ApiError as error:
            await abort(context, error)

    async def Attach(self, request_iterator: Any, context: Any) -> AsyncIterator[pb.AttachResponse]:  # noqa: N802
        try:
            async for response in self._host.attach(request_iterator):
                yield response
        except ApiError as error:
            await abort(context, error)

    async def Hibernate(self, request: pb.HibernateRequest, context: Any) -> pb.HibernateResponse:  # noqa: N802
        room = self._host.rooms[request.room_uid]
        await self._host.release(room)
        return pb.HibernateResponse()

    async def Inspect(self, request: pb.InspectRequest, context: Any) -> pb.InspectResponse:  # noqa: N802
        try:
            return pb.InspectResponse(document=self._host.inspect(request))
        except ApiError as error:
            await abort(context, error)
