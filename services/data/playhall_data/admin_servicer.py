"""data.v1's Projects, Keys and Builds: what operators and deploys call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhall.api.data.v1 import data_pb2 as pb
from playhall.api.data.v1 import data_pb2_grpc as pb_grpc
from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_data import builds, checks, keys, messages, projects
from playhall_data.callers import check_project
from playhall_data.database import Database, retry_conflicts
from playhall_data.sources import Sources

if TYPE_CHECKING:
    import grpc.aio

    Context = grpc.aio.ServicerContext[Any, Any]

__all__ = ["BuildsServicer", "KeysServicer", "ProjectsServicer"]


class ProjectsServicer(pb_grpc.ProjectsServicer):
    def __init__(self, database: Database, sources: Sources) -> None:
        self._database = database
        self._sources = sources

    async def CreateProject(
        self, request: pb.CreateProjectRequest, context: Context
    ) -> pb.CreateProjectResponse:
        settings = messages.settings(request.settings)

        async def write() -> projects.Project:
            async with self._database.write() as connection:
                return await projects.create(
                    connection, request.slug, settings, now_ms=self._sources.now_ms()
                )

        return pb.CreateProjectResponse(project=messages.project_message(await retry_conflicts(write)))

    async def GetProject(self, request: pb.GetProjectRequest, context: Context) -> pb.GetProjectResponse:
        async with self._database.read() as connection:
            project = await projects.get(connection, request.slug)
        return pb.GetProjectResponse(project=messages.project_message(project))

    async def UpdateSettings(
        self, request: pb.UpdateSettingsRequest, context: Context
    ) -> pb.UpdateSettingsResponse:
        if not request.HasField("settings"):
            raise checks.invalid("settings", "missing; an update replaces all of them")
        settings = messages.settings(request.settings)
        async with self._database.write() as connection:
            project = await projects.update_settings(connection, request.slug, settings)
        return pb.UpdateSettingsResponse(project=messages.project_message(project))


class KeysServicer(pb_grpc.KeysServicer):
    def __init__(self, database: Database, sources: Sources) -> None:
        self._database = database
        self._sources = sources

    async def CreateKey(self, request: pb.CreateKeyRequest, context: Context) -> pb.CreateKeyResponse:
        async with self._database.write() as connection:
            key, secret = await keys.create(
                connection,
                request.project,
                request.kind,
                request.name,
                now_ms=self._sources.now_ms(),
                rng=self._sources.rng,
            )
        return pb.CreateKeyResponse(key=messages.key_message(key), secret=secret)

    async def RevokeKey(self, request: pb.RevokeKeyRequest, context: Context) -> pb.RevokeKeyResponse:
        async with self._database.write() as connection:
            await keys.revoke(connection, request.project, request.key_id, now_ms=self._sources.now_ms())
        return pb.RevokeKeyResponse()

    async def ListKeys(self, request: pb.ListKeysRequest, context: Context) -> pb.ListKeysResponse:
        async with self._database.read() as connection:
            found = await keys.list_keys(connection, request.project)
        return pb.ListKeysResponse(keys=[messages.key_message(key) for key in found])


class BuildsServicer(pb_grpc.BuildsServicer):
    def __init__(self, database: Database, sources: Sources) -> None:
        self._database = database
        self._sources = sources

    async def RegisterBuild(
        self, request: pb.RegisterBuildRequest, context: Context
    ) -> pb.RegisterBuildResponse:
        check_project(request.project)
        bundle = messages.bundle(request)

        async def write() -> builds.Build:
            async with self._database.write() as connection:
                return await builds.register(
                    connection,
                    request.project,
                    bundle,
                    now_ms=self._sources.now_ms(),
                    rng=self._sources.rng,
                )

        return pb.RegisterBuildResponse(build=messages.build_message(await retry_conflicts(write)))

    async def GoLive(self, request: pb.GoLiveRequest, context: Context) -> pb.GoLiveResponse:
        check_project(request.project)
        async with self._database.write() as connection:
            build = await builds.go_live(connection, request.project, request.build_id)
        return pb.GoLiveResponse(build=messages.build_message(build))

    async def GetLiveBuild(
        self, request: pb.GetLiveBuildRequest, context: Context
    ) -> pb.GetLiveBuildResponse:
        check_project(request.project)
        async with self._database.read() as connection:
            project = await projects.get(connection, request.project)
            build = await builds.live(connection, project)
        if build is None:
            raise ApiError(ErrorCode.UNKNOWN, f"project {request.project!r} has no live build", what="build")
        return pb.GetLiveBuildResponse(build=messages.build_message(build))
