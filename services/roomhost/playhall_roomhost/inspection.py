"""What the inspector of `playhall dev` is told of rooms: JSON."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.inspecting import Page
from playhall_roomhost.room import RunningRoom

__all__ = ["list_rooms", "show_room"]

_FIRST = 100


def list_rooms(rooms: Iterable[RunningRoom], host_id: str) -> bytes:
    """All rooms that have a grant, in short."""
    return msgspec.json.encode([{**room.core.summary(), "host_id": host_id} for room in rooms])


def show_room(room: RunningRoom, host_id: str, request: pb.InspectRequest) -> bytes:
    """All that is in a room."""
    page = Page(
        kind=request.kind if request.HasField("kind") else None,
        owner=request.owner if request.HasField("owner") else None,
        id=request.entity if request.HasField("entity") else None,
        offset=request.offset,
        limit=request.limit or _FIRST,
    )
    return msgspec.json.encode({**room.core.inspect(page), "host_id": host_id})
