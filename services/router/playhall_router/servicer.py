"""router.v1.Rooms: rooms of a project, for its backend."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from playhall.api.data.v1 import data_pb2
from playhall.api.router.v1 import router_pb2 as pb
from playhall.api.router.v1 import router_pb2_grpc as rpc
from playhall.engine.codes import ErrorCode
from playhall_common.auth import bearer
from playhall_common.errors import ApiError
from playhall_router.registry import Registry
from playhall_router.wake import Ownership

__all__ = ["RoomsServicer"]

ReadOwnership = Callable[[str], Awaitable[Ownership | None]]


class RoomsServicer(rpc.RoomsServicer):
    """Proto to data and back. Every call shows an API key, which names the project.

    `read_ownership` gives what the shard says of a room, by its uid; None while it is being woken here.
    """

    def __init__(self, registry: Registry, read_ownership: ReadOwnership) -> None:
        self._registry = registry
        self._read_ownership = read_ownership

    async def CreateRoom(self, request: pb.CreateRoomRequest, context: Any) -> pb.CreateRoomResponse:
        await self._check(request.project, context)
        made = await self._registry.create(
            data_pb2.CreateRoomRequest(
                project=request.project,
                room_id=request.room_id,
                room_type=request.room_type,
                public=request.public,
                with_join_code=request.with_join_code,
                retention=request.retention,
            )
        )
        return pb.CreateRoomResponse(room=_room(made.room, pb.ROOM_STATUS_HIBERNATED))

    async def GetRoom(self, request: pb.GetRoomRequest, context: Any) -> pb.GetRoomResponse:
        await self._check(request.project, context)
        found = await self._registry.lookup(request.project, request.room_id)
        ownership = await self._read_ownership(found.room.room_uid)
        if ownership is Ownership.DELETED:
            raise ApiError(ErrorCode.UNKNOWN, f"project {request.project!r} has no room {request.room_id!r}")
        return pb.GetRoomResponse(room=_room(found.room, _status(ownership)))

    async def _check(self, project: str, context: Any) -> None:
        secret = bearer(context.invocation_metadata())
        if not secret:
            raise ApiError(
                ErrorCode.UNAUTHENTICATED, "this call needs an API key: authorization: Bearer <key>"
            )
        key = await self._registry.check_key(secret)
        if not key.admin and key.project != project:
            raise ApiError(ErrorCode.FORBIDDEN, f"the key is not of project {project!r}")


def _status(ownership: Ownership | None) -> pb.RoomStatus.ValueType:
    if ownership is None:
        return pb.ROOM_STATUS_WAKING
    return pb.ROOM_STATUS_ACTIVE if ownership is Ownership.LIVE else pb.ROOM_STATUS_HIBERNATED


def _room(record: data_pb2.RoomRecord, status: pb.RoomStatus.ValueType) -> pb.Room:
    room = pb.Room(
        project=record.project, room_id=record.room_id, room_type=record.room_type, status=status,
        public=record.public, retention=record.retention, created_at_ms=record.created_at_ms,
    )  # fmt: skip
    if record.HasField("join_code"):
        room.join_code = record.join_code
    return room
