"""What the router asks data: projects and their keys, rooms, builds, shards, host tokens.

Answers are kept: a second or two while data answers, ten minutes while it does not, so that known rooms wake
without it. One question is asked once however many wait for its answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc.aio

from playhall.api.data.v1 import data_pb2 as pb
from playhall.api.data.v1 import data_pb2_grpc as rpc
from playhall.engine.codes import ErrorCode
from playhall_common import ids
from playhall_common.auth import channel, service_metadata
from playhall_common.errors import ApiError, from_rpc
from playhall_router.cache import StaleCache

__all__ = ["Access", "Registry", "RoomEntry"]

T = TypeVar("T")

DEADLINE_S = 5.0
_FRESH_S = 1.0
_STALE_S = 600.0
_TOKEN_MARGIN_S = 300.0
_AWAY = frozenset({ErrorCode.UNAVAILABLE, ErrorCode.LIMIT, ErrorCode.INTERNAL})
"""Data did not answer, had too much to do, or is at fault: what it said before is as good as ever."""


@dataclass(frozen=True, slots=True)
class Access:
    """Whom a project lets in."""

    guests: bool
    create_rooms: bool
    allowed_origins: frozenset[str]
    token_keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RoomEntry:
    """A room, and the build that it would run on."""

    room: pb.RoomRecord
    build: pb.Build

    @property
    def type(self) -> pb.RoomType | None:
        """The room's type in that build."""
        return next((each for each in self.build.room_types if each.name == self.room.room_type), None)


class Registry:
    """data, as a client. Methods raise ApiError."""

    def __init__(self, address: str, secret: str) -> None:
        self._channel = channel(address)
        self._registry = rpc.RegistryStub(self._channel)
        self._builds = rpc.BuildsStub(self._channel)
        self._metadata = service_metadata(secret)
        self._access: StaleCache[str, Access] = StaleCache(fresh_s=_FRESH_S, stale_s=_STALE_S)
        self._rooms: StaleCache[tuple[str, str, int], RoomEntry] = StaleCache(
            fresh_s=_FRESH_S, stale_s=_STALE_S
        )
        self._live: StaleCache[str, pb.Build] = StaleCache(fresh_s=_FRESH_S, stale_s=_STALE_S)
        self._shards: StaleCache[str, pb.GetShardMapResponse] = StaleCache(fresh_s=5.0, stale_s=_STALE_S)
        self._tokens: dict[tuple[str, str, str], pb.IssueHostTokenResponse] = {}
        self._asking: dict[object, asyncio.Future[Any]] = {}

    async def close(self) -> None:
        """End calls under way."""
        await self._channel.close(None)

    async def access(self, project: str) -> Access:
        """A project's settings and keys. E_UNKNOWN: there is no such project."""

        async def ask() -> Access:
            got = await self._call(
                self._registry.GetProjectAccess, pb.GetProjectAccessRequest(project=project)
            )
            keys = {key.key_id: key.secret for key in got.token_keys}
            settings = got.settings
            return Access(settings.guests, settings.create_rooms, frozenset(settings.allowed_origins), keys)

        return await self._cached(self._access, project, ("access", project), ask)

    async def lookup(self, project: str, room_id: str, deploy_seq: int = 0) -> RoomEntry:
        """A room, with the build of this deploy where data has it, else the live one. E_UNKNOWN: there is
        none.
        """
        key = (project, room_id, deploy_seq)

        async def ask() -> RoomEntry:
            request = pb.LookupRoomRequest(project=project, room_id=room_id, deploy_seq=deploy_seq)
            got = await self._call(self._registry.LookupRoom, request)
            of_deploy = deploy_seq and got.HasField("build_of_deploy")
            return RoomEntry(got.room, got.build_of_deploy if of_deploy else got.live_build)

        return await self._cached(self._rooms, key, ("room", *key), ask)

    def forget(self, project: str, room_id: str) -> None:
        """What was looked up of a room is out of date."""
        self._rooms.expire((project, room_id, 0), time.monotonic())

    async def create(self, request: pb.CreateRoomRequest) -> RoomEntry:
        """Create a room, or with `or_get` give the one there is. E_EXISTS, E_INVALID, E_UNKNOWN."""

        async def ask() -> RoomEntry:
            got = await self._call(self._registry.CreateRoom, request)
            return RoomEntry(got.room, got.live_build)

        made = await self._once(("create", request.SerializeToString(deterministic=True)), ask)
        self._rooms.put((made.room.project, made.room.room_id, 0), made, time.monotonic())
        return made

    async def live_build(self, project: str) -> pb.Build:
        """The build a project's site and new rooms are of. E_UNKNOWN: none is live."""

        async def ask() -> pb.Build:
            got = await self._call(self._builds.GetLiveBuild, pb.GetLiveBuildRequest(project=project))
            return got.build

        return await self._cached(self._live, project, ("live", project), ask)

    async def check_key(self, secret: str) -> pb.CheckKeyResponse:
        """Whose API key this is. E_UNAUTHENTICATED: nobody's."""
        return await self._call(self._registry.CheckKey, pb.CheckKeyRequest(secret=secret))

    async def shard_of(self, room_uid: str) -> str:
        """The address of the shard that owns a room. E_UNAVAILABLE: no shard has registered for it."""
        return (await self.owner_of(room_uid)).address

    async def owner_of(self, room_uid: str) -> pb.Shard:
        """The shard that owns a room, with its epoch. E_UNAVAILABLE: no shard has registered for it."""

        async def ask() -> pb.GetShardMapResponse:
            return await self._call(self._registry.GetShardMap, pb.GetShardMapRequest())

        shards = await self._cached(self._shards, "", "shards", ask)
        owner = _owner(shards, ids.slot_of(room_uid))
        if owner is None or not owner.address:
            self._shards.drop("")
            raise ApiError(ErrorCode.UNAVAILABLE, "no shard has registered for this room yet")
        return owner

    def shards_moved(self) -> None:
        """A shard was not where the map said."""
        self._shards.expire("", time.monotonic())

    async def host_token(self, project: str, build_id: str, host_id: str) -> str:
        """A token for a room host process, good for five minutes at least while data answers."""
        key = (project, build_id, host_id)
        known = self._tokens.get(key)
        left_s = known.expires_at_ms / 1000 - time.time() if known is not None else 0.0
        if known is not None and left_s > _TOKEN_MARGIN_S:
            return known.token

        async def ask() -> pb.IssueHostTokenResponse:
            request = pb.IssueHostTokenRequest(project=project, build_id=build_id, host_id=host_id)
            return await self._call(self._registry.IssueHostToken, request)

        try:
            issued = await self._once(("token", *key), ask)
        except ApiError as error:
            if known is not None and left_s > DEADLINE_S and error.code in _AWAY:
                return known.token
            raise
        self._forget_tokens()
        self._tokens[key] = issued
        return issued.token

    def _forget_tokens(self) -> None:
        now_ms = time.time() * 1000
        self._tokens = {key: token for key, token in self._tokens.items() if token.expires_at_ms > now_ms}

    async def _cached(
        self, cache: StaleCache[Any, T], key: Any, question: object, ask: Callable[[], Awaitable[T]]
    ) -> T:
        fresh = cache.fresh(key, time.monotonic())
        if fresh is not None:
            return fresh
        try:
            answer = await self._once(question, ask)
        except ApiError as error:
            if error.code in _AWAY:
                stale = cache.stale(key, time.monotonic())
                if stale is not None:
                    return stale
            else:
                cache.drop(key)
            raise
        cache.put(key, answer, time.monotonic())
        return answer

    async def _once(self, question: object, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask, or wait for the answer that somebody asked for already; who did so may go away meanwhile."""
        asked = self._asking.get(question)
        if asked is None:
            asked = asyncio.ensure_future(ask())
            self._asking[question] = asked
            asked.add_done_callback(lambda done: self._answered(question, done))
        answer: T = await asyncio.shield(asked)
        return answer

    def _answered(self, question: object, done: asyncio.Future[Any]) -> None:
        del self._asking[question]
        if not done.cancelled():
            done.exception()  # those who wait have it; nobody may be left to

    async def _call(self, method: Callable[..., Awaitable[T]], request: object) -> T:
        try:
            return await method(request, metadata=self._metadata, timeout=DEADLINE_S)
        except grpc.aio.AioRpcError as failure:
            raise from_rpc(failure) from failure


def _owner(shards: pb.GetShardMapResponse, slot: int) -> pb.Shard | None:
    for shard in shards.shards:
        for first, end in zip(shard.slot_from, shard.slot_to, strict=True):
            if first <= slot < end:
                return shard
    return None
