"""From a hello to a player in a known room: project, origin, token, rate windows, room, type. In this order,
so that nobody who may not come in makes a room, and no token is tried at a project that does not exist.

Raises RefusedError, with the close code the client gets, and nothing else that a client or a service can
cause.
"""

from __future__ import annotations

import ipaddress
import secrets
import time
from dataclasses import dataclass

from playhall.api.data.v1 import data_pb2
from playhall.engine import frames
from playhall.engine.codes import CloseCode, ErrorCode
from playhall_common import ids
from playhall_common.errors import ApiError
from playhall_router.origins import is_allowed
from playhall_router.redis_hints import Hints
from playhall_router.registry import Access, Registry, RoomEntry
from playhall_router.tokens import AuthError, Identity, TokenRules, check_token
from playhall_router.windows import WINDOW_S, Windows

__all__ = ["Admission", "AdmissionLimits", "RefusedError"]

DEFAULT_TYPE = "default"


class RefusedError(Exception):
    """The client cannot come in."""

    def __init__(self, code: int, text: str, retry_after_ms: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.retry_after_ms = retry_after_ms


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """What one address may do in a minute; 0: as often as it likes."""

    guests: int
    rooms: int


class Admission:
    """See the module's text."""

    def __init__(self, registry: Registry, hints: Hints, guest_key: str, limits: AdmissionLimits) -> None:
        self._registry = registry
        self._hints = hints
        self._guest_key = guest_key
        self._limits = limits
        self._windows = Windows()

    async def identify(self, hello: frames.Hello, *, origin: str, address: str) -> Identity:
        """Who the client is."""
        _check_names(hello)
        access = await self._access(hello.project)
        _check_origin(origin, access)
        rules = TokenRules(hello.project, hello.room, access.token_keys, access.guests, self._guest_key)
        try:
            identity = check_token(hello.token, rules, now_s=time.time(), new_id=secrets.token_bytes(16))
        except AuthError as error:
            raise RefusedError(CloseCode.UNAUTHENTICATED, str(error)) from None
        if not hello.token:
            await self._count("guest", address, self._limits.guests)
        return identity

    async def find_room(self, hello: frames.Hello, *, address: str) -> RoomEntry:
        """The room the client means, created if it may be."""
        wanted = hello.type or DEFAULT_TYPE
        try:
            entry = await self._registry.lookup(hello.project, hello.room)
        except ApiError as error:
            if error.code is not ErrorCode.UNKNOWN:
                raise _away(error) from error
            entry = await self._create(hello, wanted, address)
        if entry.room.room_type != wanted:
            text = f"the room is of type {entry.room.room_type!r}, not {wanted!r}"
            raise RefusedError(CloseCode.WRONG_ROOM_TYPE, text)
        if not entry.build.build_id:
            raise RefusedError(CloseCode.ROOM_NOT_FOUND, "the project has no live build")
        if entry.type is None:
            raise RefusedError(CloseCode.WRONG_ROOM_TYPE, f"the live build has no room type {wanted!r}")
        return entry

    async def _create(self, hello: frames.Hello, room_type: str, address: str) -> RoomEntry:
        access = await self._access(hello.project)
        if not access.create_rooms:
            raise RefusedError(CloseCode.ROOM_NOT_FOUND, "there is no such room")
        await self._count("room", address, self._limits.rooms)
        request = data_pb2.CreateRoomRequest(
            project=hello.project, room_id=hello.room, room_type=room_type, or_get=True
        )
        try:
            return await self._registry.create(request)
        except ApiError as error:
            if error.code is ErrorCode.UNKNOWN:
                raise RefusedError(CloseCode.ROOM_NOT_FOUND, error.message) from error
            if error.code is ErrorCode.INVALID and error.details.get("field") == "room_type":
                raise RefusedError(CloseCode.WRONG_ROOM_TYPE, error.message) from error
            raise _away(error) from error

    async def _access(self, project: str) -> Access:
        try:
            return await self._registry.access(project)
        except ApiError as error:
            if error.code is ErrorCode.UNKNOWN:
                raise RefusedError(CloseCode.ROOM_NOT_FOUND, f"there is no project {project!r}") from error
            raise _away(error) from error

    async def _count(self, what: str, address: str, limit: int) -> None:
        """Count one more of something that costs others, per address. Whoever is on this machine has no
        limit.
        """
        if limit == 0 or _is_loopback(address):
            return
        now_s = time.time()
        key = f"{what}:{address}"
        count = max(self._windows.count(key, now_s), await self._hints.count(key, now_s))
        if count > limit:
            left_ms = int((WINDOW_S - now_s % WINDOW_S) * 1000)
            text = f"too many new {what}s from this address"
            raise RefusedError(CloseCode.LIMIT_EXCEEDED, text, left_ms)


def _check_names(hello: frames.Hello) -> None:
    if not ids.is_project_slug(hello.project):
        raise RefusedError(CloseCode.ROOM_NOT_FOUND, "there is no such project")
    if not ids.is_room_id(hello.room):
        raise RefusedError(CloseCode.ROOM_NOT_FOUND, "a room id is 1 to 64 of A-Z a-z 0-9 _ -")
    if hello.type and not ids.is_room_type(hello.type):
        raise RefusedError(CloseCode.WRONG_ROOM_TYPE, "there is no such room type")


def _check_origin(origin: str, access: Access) -> None:
    """A browser says which site it is on. What has no origin is no browser, and has other ways to lie."""
    if not origin or not access.allowed_origins:
        return
    if not is_allowed(origin, access.allowed_origins):
        raise RefusedError(CloseCode.UNAUTHENTICATED, "the project lets in no page of this origin")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _away(error: ApiError) -> RefusedError:
    """Nothing is wrong with the client: it waits and comes back."""
    return RefusedError(CloseCode.WAKE_TIMEOUT, f"not available now: {error.message}")
