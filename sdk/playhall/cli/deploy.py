"""From a build to the live one: register it at data, make it live, have rooms of older code move to it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Set
from typing import Any

import grpc
import grpc.aio

from playhall.api.data.v1 import data_pb2, data_pb2_grpc
from playhall.api.roomhost.v1 import roomhost_pb2, roomhost_pb2_grpc
from playhall.cli.build import Build, RoomType
from playhall.cli.errors import DeployError
from playhall.cli.project import ProjectFile

__all__ = ["Deployer"]

_CALL_S = 10.0
_RETRY_FOR_S = 30.0
_RETRY_EVERY_S = 0.25
_PASSING = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
_OPTIONS = (
    # Services start while we dial.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class Deployer:
    """Puts builds of one project live at a local cluster. Everything it does may be done again."""

    def __init__(self, *, data: str, roomhost: str, admin_key: str) -> None:
        self._metadata = (("authorization", f"Bearer {admin_key}"),)
        self._channels = [grpc.aio.insecure_channel(target, options=_OPTIONS) for target in (data, roomhost)]
        self._projects = data_pb2_grpc.ProjectsStub(self._channels[0])
        self._builds = data_pb2_grpc.BuildsStub(self._channels[0])
        self._supervisor = roomhost_pb2_grpc.SupervisorStub(self._channels[1])
        self._settings: data_pb2.Settings | None = None
        self._moved_to: tuple[str, tuple[RoomType, ...]] | None = None
        """The code that rooms were last told to move to."""
        self.live: Build | None = None

    async def close(self) -> None:
        """Close the channels."""
        for channel in self._channels:
            await channel.close()

    async def go_live(self, project: ProjectFile, build: Build) -> None:
        """Make a build live with the settings of its project file. Raises DeployError; repeat it then.

        Rooms move where the code is other than that of the live build. A build that data has as the live one
        stays that, so that a start without a change disturbs nobody.
        """
        slug = project.project.slug
        await self._apply_settings(project)
        registered = (await self._call(self._builds.RegisterBuild, _registration(slug, build))).build
        live = await self._find_live(slug)
        if live is None or live.build_id != registered.build_id:
            request = data_pb2.GoLiveRequest(project=slug, build_id=registered.build_id)
            live = (await self._call(self._builds.GoLive, request)).build
        code = (registered.location, build.room_types)
        if code != self._moved_to:
            await self._call(
                self._supervisor.Retire,
                roomhost_pb2.RetireRequest(project=slug, before_deploy_seq=live.deploy_seq),
                show_key=False,  # pods run games' code, and need no key
            )
            self._moved_to = code
        self.live = build

    async def _apply_settings(self, project: ProjectFile) -> None:
        settings = _settings(project)
        if settings == self._settings:
            return
        slug = project.project.slug
        try:
            await self._call(
                self._projects.CreateProject, data_pb2.CreateProjectRequest(slug=slug, settings=settings),
                but={grpc.StatusCode.ALREADY_EXISTS},
            )  # fmt: skip
        except grpc.aio.AioRpcError:
            request = data_pb2.UpdateSettingsRequest(slug=slug, settings=settings)
            await self._call(self._projects.UpdateSettings, request)
        self._settings = settings

    async def _find_live(self, slug: str) -> data_pb2.Build | None:
        request = data_pb2.GetLiveBuildRequest(project=slug)
        try:
            found = await self._call(self._builds.GetLiveBuild, request, but={grpc.StatusCode.NOT_FOUND})
        except grpc.aio.AioRpcError:
            return None
        build: data_pb2.Build = found.build
        return build

    async def _call(
        self,
        method: Callable[..., Any],
        request: Any,
        *,
        but: Set[grpc.StatusCode] = frozenset(),
        show_key: bool = True,
    ) -> Any:
        """Call until it is answered; a service may just be starting, or be started again.

        Raises DeployError; AioRpcError for the codes in `but`, which are answers.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _RETRY_FOR_S
        metadata = self._metadata if show_key else ()
        while True:
            left = deadline - loop.time()
            try:
                return await method(
                    request, metadata=metadata, timeout=min(left, _CALL_S), wait_for_ready=True
                )
            except grpc.aio.AioRpcError as error:
                if error.code() in but:
                    raise
                if error.code() not in _PASSING or loop.time() + _RETRY_EVERY_S >= deadline:
                    raise DeployError(f"{error.code().name}: {error.details()}") from error
            await asyncio.sleep(_RETRY_EVERY_S)


def _registration(slug: str, build: Build) -> data_pb2.RegisterBuildRequest:
    """Known by its files and by what this SDK makes of them: the same files can get another schema hash."""
    room_types = [
        data_pb2.RoomType(
            name=found.name, entry=found.entry, schema_hash=bytes.fromhex(found.schema_hash),
            state_version=found.state_version, max_players=found.max_players,
        )
        for found in build.room_types
    ]  # fmt: skip
    whole = hashlib.sha256(b"".join(found.SerializeToString(deterministic=True) for found in room_types))
    site = build.site.name if build.site else "none"
    return data_pb2.RegisterBuildRequest(
        project=slug, bundle_hash=f"{build.code.name}-{site}-{whole.hexdigest()[:16]}",
        location=build.code.as_uri(), site=str(build.site or ""), room_types=room_types,
    )  # fmt: skip


def _settings(project: ProjectFile) -> data_pb2.Settings:
    players, rooms = project.settings.players, project.settings.rooms
    return data_pb2.Settings(
        guests=players.guests, create_rooms=players.create_rooms, list_public=players.list_public,
        retention=rooms.retention, build_update="restart",
    )  # fmt: skip
