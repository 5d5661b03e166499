"""data.v1's Registry: what routers and state store shards call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhall.api.data.v1 import data_pb2 as pb
from playhall.api.data.v1 import data_pb2_grpc as pb_grpc
from playhall_common.auth import HOST_TOKEN_TTL_S, HostClaims, sign_host_token
from playhall_data import builds, checks, keys, messages, projects, registry, shards
from playhall_data.callers import Callers, ProjectPrincipal
from playhall_data.database import Database, retry_conflicts
from playhall_data.sources import Sources

if TYPE_CHECKING:
    import grpc.aio

    Context = grpc.aio.ServicerContext[Any, Any]

__all__ = ["RegistryServicer"]


class RegistryServicer(pb_grpc.RegistryServicer):
    def __init__(self, database: Database, sources: Sources, callers: Callers, service_secret: str) -> None:
        self._database = database
        self._sources = sources
        self._callers = callers
        self._service_secret = service_secret

    async def LookupRoom(self, request: pb.LookupRoomRequest, context: Context) -> pb.LookupRoomResponse:
        async with self._database.read() as connection:
            room, build = await registry.lookup(connection, request.project, request.room_id)
            deployed = await builds.of_deploy(connection, request.project, request.deploy_seq)
        return pb.LookupRoomResponse(
            room=messages.room_message(room), live_build=_maybe(build), build_of_deploy=_maybe(deployed)
        )

    async def CreateRoom(self, request: pb.CreateRoomRequest, context: Context) -> pb.CreateRoomResponse:
        new = messages.new_room(request)

        async def write() -> pb.CreateRoomResponse:
            async with self._database.write() as connection:
                if request.or_get and (there := await self._get(connection, new)):
                    return there
                room, build = await registry.create(
                    connection, new, now_ms=self._sources.now_ms(), rng=self._sources.rng
                )
            return pb.CreateRoomResponse(
                room=messages.room_message(room), live_build=messages.build_message(build), created=True
            )

        if request.or_get:
            # Most often the room is there, and reads do not queue behind writes.
            async with self._database.read() as connection:
                if there := await self._get(connection, new):
                    return there
        return await retry_conflicts(write)

    async def MarkHasState(
        self, request: pb.MarkHasStateRequest, context: Context
    ) -> pb.MarkHasStateResponse:
        async with self._database.write() as connection:
            await registry.mark_has_state(connection, request.room_uid)
        return pb.MarkHasStateResponse()

    async def GetProjectAccess(
        self, request: pb.GetProjectAccessRequest, context: Context
    ) -> pb.GetProjectAccessResponse:
        async with self._database.read() as connection:
            project = await projects.get(connection, request.project)
            token_keys = await keys.token_keys(connection, request.project)
        return pb.GetProjectAccessResponse(
            settings=messages.settings_message(project.settings),
            token_keys=[pb.TokenKey(key_id=key.key_id, secret=key.secret) for key in token_keys],
        )

    async def CheckKey(self, request: pb.CheckKeyRequest, context: Context) -> pb.CheckKeyResponse:
        caller = await self._callers.identify(request.secret)
        if isinstance(caller, ProjectPrincipal):
            return pb.CheckKeyResponse(project=caller.project, key_id=caller.key_id)
        return pb.CheckKeyResponse(admin=True)

    async def IssueHostToken(
        self, request: pb.IssueHostTokenRequest, context: Context
    ) -> pb.IssueHostTokenResponse:
        checks.text("host_id", request.host_id, low=1, high=128)
        async with self._database.read() as connection:
            build = await builds.get(connection, request.project, request.build_id)
        expires_at_s = self._sources.now_ms() // 1000 + HOST_TOKEN_TTL_S
        claims = HostClaims(build.project, build.build_id, request.host_id, expires_at_s)
        token = sign_host_token(claims, self._service_secret)
        return pb.IssueHostTokenResponse(token=token, expires_at_ms=expires_at_s * 1000)

    async def GetShardMap(self, request: pb.GetShardMapRequest, context: Context) -> pb.GetShardMapResponse:
        async with self._database.read() as connection:
            return messages.map_message(await shards.read_map(connection))

    async def RegisterShard(
        self, request: pb.RegisterShardRequest, context: Context
    ) -> pb.RegisterShardResponse:
        registration = messages.registration(request)

        async def write() -> tuple[int, int]:
            async with self._database.write() as connection:
                return await shards.register(connection, registration, now_ms=self._sources.now_ms())

        epoch, map_version = await retry_conflicts(write)
        return pb.RegisterShardResponse(epoch=epoch, map_version=map_version)

    async def _get(self, connection: Any, new: registry.NewRoom) -> pb.CreateRoomResponse | None:
        """The room of that id as it is, whatever type was asked for: type and flags never change."""
        project = await projects.get(connection, new.project)
        room = await registry.find(connection, project, new.room_id) if new.room_id else None
        if room is None:
            return None
        build = await builds.live(connection, project)
        return pb.CreateRoomResponse(room=messages.room_message(room), live_build=_maybe(build))


def _maybe(build: builds.Build | None) -> pb.Build | None:
    return None if build is None else messages.build_message(build)
