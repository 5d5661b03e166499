"""What is in rooms, for the inspector of `playhall dev`: asked of the room hosts, dialled as ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.codes import ErrorCode
from playhall.engine.jsontext import is_too_deep
from playhall_common import logs
from playhall_common.errors import ApiError
from playhall_router.hosts import Hosts
from playhall_router.placement import Process
from playhall_router.registry import Registry, RoomEntry
from playhall_router.wake import Ownership

__all__ = ["Inspector"]

# What a room is that runs nowhere; one that the shard calls live runs where nobody answers.
_STATUS = {
    None: "starting",
    Ownership.NEW: "new",
    Ownership.CLOSED: "hibernated",
    Ownership.ASLEEP: "asleep",
    Ownership.DEAD: "crashed",
}

log = logs.get_logger()


_MAX_KNOWN = 1_000
"""Rooms whose newest generation is kept in mind."""


class Inspector:
    """See the module's text. `read_ownership` gives what the shard says of a room, by its uid; None while it
    is being woken here.

    For a while after a failover two processes may show one room: the old one has not heard yet. The newest
    generation counts, and once it was seen no older one is shown, whatever becomes of its process.
    """

    def __init__(
        self,
        registry: Registry,
        hosts: Hosts,
        read_ownership: Callable[[str], Awaitable[Ownership | None]],
    ) -> None:
        self._registry = registry
        self._hosts = hosts
        self._read_ownership = read_ownership
        # The newest generation seen, by the project of who showed it and room uid; last seen last.
        self._newest: dict[tuple[str, str], int] = {}

    async def rooms(self) -> dict[str, Any]:
        """All rooms that run, in short, the projects whose rooms may, and which processes did not say theirs.
        E_UNAVAILABLE: no room host is heard.
        """
        bound = self._hosts.placement.bound()
        processes = [process for _, process in bound]
        if not self._hosts.placement.heard:
            raise ApiError(ErrorCode.UNAVAILABLE, "no room host is heard")
        answers = await asyncio.gather(*(self._ask(process, pb.InspectRequest()) for process in processes))
        silent = [
            process.host_id
            for process, answer in zip(processes, answers, strict=True)
            if not isinstance(answer, list)
        ]
        shown: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for (project, _), answer in zip(bound, answers, strict=True):
            for room in answer if isinstance(answer, list) else []:
                if isinstance(room, dict):
                    shown.setdefault((project, str(room.get("uid"))), []).append(room)
        current = (self._current(key, rooms) for key, rooms in shown.items())
        rooms = sorted((room for room in current if room is not None), key=_name)
        return {"rooms": rooms, "projects": sorted({project for project, _ in bound}), "silent": silent}

    async def room(self, project: str, room_id: str, page: pb.InspectRequest) -> dict[str, Any]:
        """All that is in a room; of one that does not run, who it is and its status.

        `page` says which of its entities. E_UNKNOWN: there is no such room; E_UNAVAILABLE: it runs where
        nobody answers.
        """
        entry = await self._registry.lookup(project, room_id)
        page.room_uid = entry.room.room_uid
        processes = [process for bound, process in self._hosts.placement.bound() if bound == project]
        answers = await asyncio.gather(*(self._ask(process, page) for process in processes))
        shown = [answer for answer in answers if isinstance(answer, dict)]
        return self._current((project, entry.room.room_uid), shown) or await self._not_running(entry)

    def _current(self, key: tuple[str, str], shown: list[dict[str, Any]]) -> dict[str, Any] | None:
        """Of what processes show of one room, that of the newest generation; None: newer was seen before."""
        found = max(shown, key=_generation, default=None)
        if found is None or _generation(found) < self._newest.get(key, 0):
            return None
        self._newest.pop(key, None)
        self._newest[key] = _generation(found)
        while len(self._newest) > _MAX_KNOWN:
            del self._newest[next(iter(self._newest))]
        return found

    async def _not_running(self, entry: RoomEntry) -> dict[str, Any]:
        room = entry.room
        ownership = await self._read_ownership(room.room_uid)
        if ownership is Ownership.DELETED:
            raise ApiError(ErrorCode.UNKNOWN, f"project {room.project!r} has no room {room.room_id!r}")
        if ownership is Ownership.LIVE:
            raise ApiError(ErrorCode.UNAVAILABLE, "the room's host does not answer")
        return {
            "project": room.project, "id": room.room_id, "uid": room.room_uid, "type": room.room_type,
            "status": _STATUS[ownership],
        }  # fmt: skip

    async def _ask(self, process: Process, request: pb.InspectRequest) -> Any:
        """What a process answers; None where it does not, or has not what was asked for."""
        try:
            document = await self._hosts.inspect(process, request)
            found = msgspec.json.decode(document)
            if is_too_deep(found):
                raise msgspec.DecodeError("nested too deep")
            return found
        except (ApiError, msgspec.DecodeError, RecursionError) as error:
            if not (isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN):
                log.warning("inspection_failed", host_id=process.host_id, error=str(error))
            return None


def _name(room: dict[str, Any]) -> tuple[str, str]:
    return str(room.get("project")), str(room.get("id"))


def _generation(room: dict[str, Any]) -> int:
    number = room.get("generation")
    return number if isinstance(number, int) else 0
