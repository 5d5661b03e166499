"""The room hosts: what pods say of themselves, and starting rooms on them.

One Control stream to each supervisor feeds `Placement`. A pod that is not heard for 3 s is left out.
Processes are dialled at the addresses their pods give; nobody registers here.

Calls to pods show no secret: tenant code runs there, and sees what its process is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import grpc.aio

from playhall.api.data.v1 import data_pb2
from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.roomhost.v1 import roomhost_pb2_grpc as rpc
from playhall.engine.codes import CloseCode, ErrorCode
from playhall_common import logs
from playhall_common.auth import channel
from playhall_common.errors import ApiError, from_rpc
from playhall_router.placement import Placement, Pod, Process
from playhall_router.registry import Registry, RoomEntry
from playhall_router.tasks import Tasks
from playhall_router.wake import Reason, Refusal, Route

__all__ = ["Hosts", "Refused"]

SILENT_S = 3.0
START_S = 10.0
INSPECT_S = 3.0
_RETRY_S = 0.25
_TOKENS_S = 2.0
_MAX_TRIES = 8
_REASONS = {
    Reason.CONNECT: pb.WAKE_REASON_CONNECT,
    Reason.CRASH: pb.WAKE_REASON_CRASH,
    Reason.DEPLOY: pb.WAKE_REASON_DEPLOY,
    Reason.SLEEP: pb.WAKE_REASON_SLEEP,
}
_UNUSABLE = frozenset({ErrorCode.STATE_MISSING, ErrorCode.DAMAGED, ErrorCode.INVALID})

log = logs.get_logger()


@dataclass(frozen=True, slots=True)
class Refused:
    """A start that came to nothing."""

    refusal: Refusal
    code: int = CloseCode.ROOM_STOPPED
    text: str = ""
    retry_after_ms: int = 0


class Hosts:
    """Supervisors and room host processes, as a client."""

    def __init__(self, supervisors: list[str], registry: Registry, router_id: str) -> None:
        self.placement = Placement()
        self._registry = registry
        self._router_id = router_id
        self._supervisors = {address: channel(address) for address in supervisors}
        self._processes: dict[str, grpc.aio.Channel] = {}
        self._stopped: dict[str, set[tuple[str, int]]] = {address: set() for address in supervisors}
        self._tasks = Tasks()

    def start(self, on_stopped: Callable[[str, Route, int], None]) -> None:
        """Begin to listen to the supervisors.

        `on_stopped(room_uid, route, close code)` names each room that blocked its process, once.
        """
        for address in self._supervisors:
            self._tasks.start(self._listen(address, on_stopped), f"control {address}")
        self._tasks.start(self._keep_tokens(), "tokens")

    async def close(self) -> None:
        """Stop listening, end calls under way."""
        await self._tasks.close()
        for each in [*self._supervisors.values(), *self._processes.values()]:
            await each.close(None)

    async def start_room(self, entry: RoomEntry, reason: Reason, host_id: str = "") -> Route | Refused:
        """Start a room on a host of its build that has room, `host_id` before others, or find who runs it."""
        try:
            request = await self._request(entry, reason)
            return await self._try_hosts(entry, request, host_id)
        except ApiError as error:
            if error.code is ErrorCode.WRONG_SHARD:
                self._registry.shards_moved()
            return _refusal(error)

    async def places(self, project: str) -> int:
        """For how many rooms of the project's live build a pod has places, as it says when it is asked. 0:
        none, or nobody answers.
        """
        try:
            async with asyncio.timeout(START_S):
                build = await self._registry.live_build(project)
                process = await self._prepare(_host_build(build), set())
        except (ApiError, TimeoutError) as error:
            log.debug("no_places", project=project, error=str(error))
            return 0
        known = self.placement.free(project, build.build_id)
        return max(known, process.max_rooms - process.rooms)

    async def inspect(self, process: Process, request: pb.InspectRequest) -> bytes:
        """What a process shows of its rooms, as JSON. Raises ApiError."""
        asked = pb.InspectRequest()
        asked.CopyFrom(request)
        asked.host_id = process.host_id
        stub = rpc.RoomHostStub(self._channel(process.address))
        try:
            got = await stub.Inspect(asked, timeout=INSPECT_S)
        except grpc.aio.AioRpcError as failure:
            raise from_rpc(failure) from failure
        document: bytes = got.document
        return document

    async def _request(self, entry: RoomEntry, reason: Reason) -> pb.StartRequest:
        room, build = entry.room, entry.build
        shard = await self._registry.owner_of(room.room_uid)
        request = pb.StartRequest(
            project=room.project, room_uid=room.room_uid, room_id=room.room_id, room_type=room.room_type,
            deploy_seq=build.deploy_seq, build_id=build.build_id, has_state=room.has_state,
            reason=_REASONS[reason],
            shard_address=shard.address, map_epoch=shard.epoch,
            max_players=entry.type.max_players if entry.type else 0,
        )  # fmt: skip
        if room.HasField("join_code"):
            request.join_code = room.join_code
        return request

    async def _try_hosts(self, entry: RoomEntry, request: pb.StartRequest, host_id: str) -> Route | Refused:
        build = _host_build(entry.build)
        tried: set[str] = set()
        refused: ApiError = ApiError(ErrorCode.BUSY, "no room host has room")
        for _ in range(_MAX_TRIES):
            process = self.placement.pick(build.project, build.build_id, tried, host_id)
            try:
                if process is None:
                    process = await self._prepare(build, tried)
                return await self._start_on(process, request)
            except ApiError as error:
                refused = error
                if process is None or error.code not in (
                    ErrorCode.BUSY, ErrorCode.UNAVAILABLE, ErrorCode.FENCED, ErrorCode.LIMIT,
                ):  # fmt: skip
                    raise
                tried.add(process.host_id)
        raise refused

    async def _prepare(self, build: pb.Build, tried: set[str]) -> Process:
        """A process of the build with room, from the first pod that has one. Raises ApiError."""
        refused = ApiError(ErrorCode.BUSY, "no pod of room hosts is heard")
        for address in self.placement.pods(build.project):
            stub = rpc.SupervisorStub(self._supervisors[address])
            try:
                got = await stub.Prepare(pb.PrepareRequest(build=build), timeout=START_S)
            except grpc.aio.AioRpcError as failure:
                refused = from_rpc(failure)
                if refused.code is ErrorCode.INVALID:
                    raise refused from failure  # the build is at fault, not the pod
                continue
            if got.process.host_id not in tried:
                return _process(got.process)
        raise refused

    async def _start_on(self, process: Process, request: pb.StartRequest) -> Route | Refused:
        request.host_id = process.host_id
        request.host_token = await self._registry.host_token(
            request.project, request.build_id, process.host_id
        )
        self.placement.started(process.host_id)
        try:
            stub = rpc.RoomHostStub(self._channel(process.address))
            got = await stub.Start(request, timeout=START_S)
        except grpc.aio.AioRpcError as failure:
            raise from_rpc(failure) from failure
        finally:
            self.placement.settled(process.host_id)
        return _outcome(got, process)

    def _channel(self, address: str) -> grpc.aio.Channel:
        known = self._processes.get(address)
        if known is None:
            known = self._processes[address] = channel(address)
        return known

    async def _listen(self, address: str, on_stopped: Callable[[str, Route, int], None]) -> None:
        """Follow one supervisor for ever."""
        while True:
            try:
                await self._follow(address, on_stopped)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError) as error:
                log.debug("supervisor_lost", address=address, error=str(error))
            self.placement.forget(address)
            await asyncio.sleep(_RETRY_S)

    async def _keep_tokens(self) -> None:
        """Hold a token for every process: rooms that are known wake on any of them while data is away."""
        while True:
            for project, process in self.placement.bound():
                try:
                    await self._registry.host_token(project, process.build_id, process.host_id)
                except ApiError as error:
                    log.debug("host_token_missing", host_id=process.host_id, error=error.message)
            await asyncio.sleep(_TOKENS_S)

    async def _follow(self, address: str, on_stopped: Callable[[str, Route, int], None]) -> None:
        stub = rpc.SupervisorStub(self._supervisors[address])
        call = stub.Control(wait_for_ready=True)
        try:
            await call.write(pb.ControlRequest(router_id=self._router_id))
            while True:
                async with asyncio.timeout(SILENT_S):
                    response = await call.read()
                if not isinstance(response, pb.ControlResponse):
                    return
                processes = tuple(_process(each) for each in response.processes)
                self.placement.update(Pod(address, response.project, response.draining, processes))
                self._forget_processes()
                self._tell_stopped(address, response, on_stopped)
        finally:
            call.cancel()

    def _tell_stopped(
        self, address: str, response: pb.ControlResponse, on_stopped: Callable[[str, Route, int], None]
    ) -> None:
        """A pod repeats for a while what it has stopped, so that a router which was away hears of it too."""
        told, named = self._stopped[address], set()
        for each in response.stopped:
            key = (each.room_uid, each.generation)
            named.add(key)
            if key not in told:
                on_stopped(each.room_uid, Route(each.generation, each.host_id, each.address), each.code)
        self._stopped[address] = named

    def _forget_processes(self) -> None:
        """Close the channels to processes that no pod has any more; calls under way end first."""
        known = self.placement.addresses()
        for address in [each for each in self._processes if each not in known]:
            gone = self._processes.pop(address)
            self._tasks.start(gone.close(START_S), f"close {address}")


def _process(process: pb.Process) -> Process:
    return Process(
        process.host_id, process.address, process.build_id, process.rooms, process.max_rooms, process.draining
    )


def _host_build(build: data_pb2.Build) -> pb.Build:
    return pb.Build(
        project=build.project, build_id=build.build_id, deploy_seq=build.deploy_seq, location=build.location,
        rooms={each.name: each.entry for each in build.room_types},
    )  # fmt: skip


def _outcome(response: pb.StartResponse, process: Process) -> Route | Refused:
    match response.WhichOneof("outcome"):
        case "started":
            return Route(response.started.generation, process.host_id, process.address)
        case "owned_elsewhere":
            owner = response.owned_elsewhere
            return Route(owner.generation, owner.host_id, owner.address)
        case "backoff":
            return Refused(Refusal.BACK_OFF, retry_after_ms=response.backoff.retry_after_ms)
        case "deleted":
            return Refused(Refusal.DELETED)
        case "failed":
            code = response.failed.code if 4000 <= response.failed.code < 5000 else CloseCode.ROOM_STOPPED
            return Refused(Refusal.FAILED, code, response.failed.reason)
        case _:
            return Refused(Refusal.UNAVAILABLE)


def _refusal(error: ApiError) -> Refused:
    if error.code is ErrorCode.STALE_BUILD:
        return Refused(Refusal.STALE_BUILD)
    if error.code is ErrorCode.BUSY:
        return Refused(Refusal.BUSY)
    if error.code in _UNUSABLE:
        return Refused(Refusal.FAILED, text=error.message)
    return Refused(Refusal.UNAVAILABLE, text=error.message)
