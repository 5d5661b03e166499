"""The rooms of a process, by room_uid, and how they start.

A start is idempotent for each room: callers that come while one is under way get its result, callers that
come later find the room running, and callers that come while the room ends wait for that and start it anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.statestore.v1 import statestore_pb2 as store_pb
from playhall.engine.codes import CloseCode, ErrorCode
from playhall.engine.core import RoomCore
from playhall.engine.outputs import RoomIdentity, Status, WakeInfo, WakeReason
from playhall.engine.running import Watch
from playhall_common.errors import ApiError
from playhall_roomhost.build import LoadedBuild
from playhall_roomhost.room import RunningRoom, Surroundings
from playhall_roomhost.slow_calls import SlowCalls
from playhall_roomhost.statestore_client import Granted, ShardClient

__all__ = ["Rooms", "wake_reason"]

# on_create and on_wake may take 60 s; the core ends them itself.
START_S = 75.0
IDLE_S = 30.0

_REASONS: dict[int, WakeReason] = {
    pb.WAKE_REASON_CONNECT: "connect",
    pb.WAKE_REASON_REQUEST: "request",
    pb.WAKE_REASON_ALARM: "alarm",
    pb.WAKE_REASON_CRASH: "crash",
    pb.WAKE_REASON_DEPLOY: "deploy",
    pb.WAKE_REASON_SLEEP: "sleep",
}
_BY_END: dict[int, WakeReason] = {
    store_pb.END_CRASHED: "crash",
    store_pb.END_STOPPED: "crash",
    store_pb.END_MOVED: "deploy",
    store_pb.END_SLEPT: "sleep",
}


def wake_reason(asked: int, prior_end: int) -> WakeReason:
    """Why a room wakes: an alarm that is due, else what ended it, else what the router says."""
    if asked == pb.WAKE_REASON_ALARM:
        return "alarm"
    return _BY_END.get(prior_end) or _REASONS.get(asked, "connect")


@dataclass(slots=True)
class _Place:
    """A room's place in the directory: starting, running, or ending."""

    pending: asyncio.Task[pb.StartResponse]
    room: RunningRoom | None = None


class Rooms:
    """See the module's text. At most `max_rooms` are held, those that start and end included."""

    def __init__(
        self,
        build: LoadedBuild,
        host_id: str,
        host_address: str,
        max_rooms: int,
        surroundings: Surroundings,
        shard: Callable[[str], ShardClient],
        clock: Callable[[], float] | None = None,
    ) -> None:
        """With a `clock` rooms take note of what the inspector shows."""
        self._build = build
        self._host_id = host_id
        self._host_address = host_address
        self._max_rooms = max_rooms
        self._around = surroundings
        self._shard = shard
        self._clock = clock
        self._places: dict[str, _Place] = {}
        self.draining = False
        """Set it to refuse new rooms."""

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[RunningRoom]:
        """The rooms that have a grant, as of now."""
        return iter([place.room for place in self._places.values() if place.room is not None])

    def get(self, room_uid: str, generation: int) -> RunningRoom | None:
        """The room, in exactly this generation."""
        place = self._places.get(room_uid)
        room = place.room if place is not None else None
        return room if room is not None and room.generation == generation else None

    def find(self, room_uid: str) -> RunningRoom | None:
        """The room, whatever its generation."""
        place = self._places.get(room_uid)
        return place.room if place is not None else None

    async def start(self, request: pb.StartRequest) -> pb.StartResponse:
        """Start a room, or join its start. The start goes on when the caller gives up."""
        while True:
            place = self._places.get(request.room_uid)
            if place is None:
                place = self._begin(request)
            room = place.room
            if room is None or room.takes_joins or not place.pending.done():
                return await asyncio.shield(place.pending)
            await room.over.wait()

    def _begin(self, request: pb.StartRequest) -> _Place:
        if self.draining:
            raise ApiError(ErrorCode.BUSY, "the process is draining")
        if len(self._places) >= self._max_rooms:
            raise ApiError(ErrorCode.BUSY, f"the process runs {self._max_rooms} rooms already")
        task = asyncio.get_running_loop().create_task(self._start(request), name=f"start {request.room_uid}")
        place = self._places[request.room_uid] = _Place(task)
        task.add_done_callback(lambda _: self._tidy(request.room_uid, place))
        return place

    def _tidy(self, room_uid: str, place: _Place) -> None:
        """A start has ended: where no room came of it, its place is free."""
        if not place.pending.cancelled():
            place.pending.exception()  # whoever waited was told; nobody may have
        if place.room is None and self._places.get(room_uid) is place:
            del self._places[room_uid]

    async def _start(self, request: pb.StartRequest) -> pb.StartResponse:
        room_class = self._build.rooms.get(request.room_type)
        if room_class is None:
            failed = pb.StartFailed(
                code=CloseCode.WRONG_ROOM_TYPE, reason=f"the build has no room type {request.room_type!r}"
            )
            return pb.StartResponse(failed=failed)
        shard = self._shard(request.shard_address)
        outcome = await shard.open(self._open_request(request))
        if not isinstance(outcome, Granted):
            return _not_granted(outcome)
        generation = outcome.grant.generation
        identity = RoomIdentity(
            request.project,
            request.room_id,
            request.room_uid,
            request.room_type,
            request.join_code if request.HasField("join_code") else None,
        )
        tick_s = 1 / room_class.tick_rate
        watch = Watch(self._around.pulse.hook_page, tick_s, time.monotonic)
        core = RoomCore(
            room_class,
            identity=identity,
            generation=generation,
            max_players=request.max_players,
            idle_s=request.idle_s or IDLE_S,
            clock=self._clock,
            watch=watch,
        )
        room = RunningRoom(core, identity, generation, shard, self._around, SlowCalls(tick_s, watch))
        self._hold(room)
        shard.add(request.room_uid, generation)
        room.start(outcome.stored, _wake_info(request, outcome.grant))
        async with asyncio.timeout(START_S):
            failure = await room.ready
        if failure is not None and failure.code == CloseCode.ROOM_MOVED:
            raise ApiError(ErrorCode.UNAVAILABLE, "the room's grant was lost while it started")
        if failure is not None:
            reason = failure.error.strip().rpartition("\n")[2]
            return pb.StartResponse(failed=pb.StartFailed(code=failure.code, reason=reason[:1_000]))
        return pb.StartResponse(started=pb.Started(generation=generation, host_id=self._host_id))

    def _hold(self, room: RunningRoom) -> None:
        place = self._places[room.identity.room_uid]
        place.room = room

    def release(self, room: RunningRoom) -> None:
        """The room is over: its place is free."""
        uid = room.identity.room_uid
        place = self._places.get(uid)
        if place is not None and place.room is room:
            del self._places[uid]

    def _open_request(self, request: pb.StartRequest) -> store_pb.OpenRequest:
        return store_pb.OpenRequest(
            project=request.project,
            room_uid=request.room_uid,
            host_id=self._host_id,
            host_address=self._host_address,
            deploy_seq=request.deploy_seq,
            has_state=request.has_state,
            reason=request.reason,
            map_epoch=request.map_epoch,
        )

    def by_status(self, status: Status) -> list[RunningRoom]:
        """The rooms that are there in their life now."""
        return [room for room in self if room.status is status]


def _not_granted(
    outcome: store_pb.AlreadyOpen | store_pb.OpenBackoff | store_pb.RoomDeleted,
) -> pb.StartResponse:
    if isinstance(outcome, store_pb.AlreadyOpen):
        owner = pb.OwnedElsewhere(
            generation=outcome.generation, host_id=outcome.host_id, address=outcome.host_address
        )
        return pb.StartResponse(owned_elsewhere=owner)
    if isinstance(outcome, store_pb.OpenBackoff):
        return pb.StartResponse(backoff=pb.Backoff(retry_after_ms=outcome.retry_after_ms))
    return pb.StartResponse(deleted=pb.Deleted())


def _wake_info(request: pb.StartRequest, grant: store_pb.Granted) -> WakeInfo:
    return WakeInfo(
        reason=wake_reason(request.reason, grant.prior_end),
        elapsed=grant.elapsed_ms / 1000,
        saved_at=grant.saved_at_ms / 1000,
        tick=grant.tick,
    )
