"""From a changed file to a live build: build the site, copy the code, look at it, register it, go live."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio

from playhall.api.data.v1 import data_pb2, data_pb2_grpc
from playhall.api.roomhost.v1 import roomhost_pb2, roomhost_pb2_grpc
from playhall.cli.bundle import Bundle, make_bundle, prune
from playhall.cli.project import ProjectFile

__all__ = ["BuildError", "Deployer", "LiveBuild"]

_SITE_BUILD_S = 120.0
_INSPECT_S = 30.0
_RPC_S = 10.0
_START_S = 30.0


class BuildError(Exception):
    """The project cannot be built; the text is for its author."""


@dataclass(frozen=True)
class LiveBuild:
    """What is live now."""

    bundle: Bundle
    build_id: str
    deploy_seq: int


class Deployer:
    """Makes builds of one project and puts them live at a local data service."""

    def __init__(self, builds: Path, *, data: str, roomhost: str, admin_key: str) -> None:
        self._builds = builds
        self._metadata = (("authorization", f"Bearer {admin_key}"),)
        self._channels = [grpc.aio.insecure_channel(data), grpc.aio.insecure_channel(roomhost)]
        self._projects = data_pb2_grpc.ProjectsStub(self._channels[0])
        self._data = data_pb2_grpc.BuildsStub(self._channels[0])
        self._supervisor = roomhost_pb2_grpc.SupervisorStub(self._channels[1])
        self.live: LiveBuild | None = None

    async def close(self) -> None:
        """Close the channels."""
        for channel in self._channels:
            await channel.close()

    async def create_project(self, project: ProjectFile) -> None:
        """Make the project at data if it is not there, with the settings of its file."""
        settings = _settings(project)
        try:
            await self._projects.CreateProject(
                data_pb2.CreateProjectRequest(slug=project.project.slug, settings=settings),
                metadata=self._metadata, timeout=_START_S, wait_for_ready=True,
            )  # fmt: skip
        except grpc.aio.AioRpcError as error:
            if error.code() != grpc.StatusCode.ALREADY_EXISTS:
                raise
            await self._projects.UpdateSettings(
                data_pb2.UpdateSettingsRequest(slug=project.project.slug, settings=settings),
                metadata=self._metadata, timeout=_RPC_S,
            )  # fmt: skip

    async def build(self, project: ProjectFile) -> tuple[Bundle, list[data_pb2.RoomType]]:
        """Build the site, copy everything and import the room classes. Raises BuildError."""
        await _build_site(project)
        bundle = await asyncio.to_thread(make_bundle, project, self._builds)
        return bundle, await _inspect(project, bundle)

    async def go_live(
        self, project: ProjectFile, bundle: Bundle, room_types: list[data_pb2.RoomType]
    ) -> LiveBuild:
        """Register a bundle and make it live; rooms of an older build move to it where its code differs."""
        slug = project.project.slug
        registered = await self._data.RegisterBuild(
            data_pb2.RegisterBuildRequest(
                project=slug, bundle_hash=_bundle_hash(bundle, room_types), location=bundle.code.as_uri(),
                room_types=room_types, site=str(bundle.site) if bundle.site else "",
            ),
            metadata=self._metadata, timeout=_RPC_S,
        )  # fmt: skip
        live = await self._data.GoLive(
            data_pb2.GoLiveRequest(project=slug, build_id=registered.build.build_id),
            metadata=self._metadata, timeout=_RPC_S,
        )  # fmt: skip
        before, self.live = self.live, LiveBuild(bundle, live.build.build_id, live.build.deploy_seq)
        if before is not None and before.bundle.code_hash != bundle.code_hash:
            await self._supervisor.Retire(
                roomhost_pb2.RetireRequest(project=slug, before_deploy_seq=self.live.deploy_seq),
                timeout=_RPC_S, wait_for_ready=True,
            )  # fmt: skip
        await asyncio.to_thread(prune, self._builds, bundle)
        return self.live


def _bundle_hash(bundle: Bundle, room_types: list[data_pb2.RoomType]) -> str:
    """Of the files and of what this SDK makes of them: the same files can get another schema hash."""
    types = b"".join(t.SerializeToString(deterministic=True) for t in room_types)
    return f"{bundle.hash}-{hashlib.sha256(types).hexdigest()[:16]}"


def _settings(project: ProjectFile) -> data_pb2.Settings:
    players, rooms = project.settings.players, project.settings.rooms
    return data_pb2.Settings(
        guests=players.guests, create_rooms=players.create_rooms, list_public=players.list_public,
        retention=rooms.retention, build_update="restart",
    )  # fmt: skip


async def _build_site(project: ProjectFile) -> None:
    if project.site is None:
        return
    if project.site.build is not None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        process = await asyncio.create_subprocess_shell(
            project.site.build, cwd=project.root, env={**os.environ, "PATH": path},
            stdin=DEVNULL, stdout=PIPE, stderr=STDOUT,
        )  # fmt: skip
        code, output = await _finish(process, _SITE_BUILD_S, "the site's build command")
        if code:
            raise BuildError(
                f"The site's build command ended with {code}: {project.site.build}\n\n{output.rstrip()}\n\n"
                f"Mend it, or change [site] build in {project.path}."
            )
    if not (project.root / project.site.dir).is_dir():
        raise BuildError(
            f"{project.path}: [site] dir names {project.site.dir}, which is not there"
            + (
                " after the build command ran."
                if project.site.build
                else ". Make it, or add a build command."
            )
        )


async def _inspect(project: ProjectFile, bundle: Bundle) -> list[data_pb2.RoomType]:
    entries = [f"{name}={project.entry(name)}" for name in project.rooms]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "playhall.cli.inspect_build", str(bundle.code), *entries, cwd=bundle.code,
        stdin=DEVNULL, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    _, output = await _finish(process, _INSPECT_S, "importing the room code")
    try:
        found = json.loads(output.rstrip().rpartition("\n")[2])
    except ValueError:
        raise BuildError(f"The room code ended the process that imported it:\n\n{output.rstrip()}") from None
    if "error" in found:
        # Frames name the copy; its author edits the original.
        text = found["error"].replace(str(bundle.code / project.package), str(project.root))
        raise BuildError(f"The room code cannot be loaded:\n\n{text.rstrip()}")
    return [
        data_pb2.RoomType(
            name=t["name"], entry=t["entry"], schema_hash=bytes.fromhex(t["schema_hash"]),
            state_version=t["state_version"], max_players=t["max_players"],
        )
        for t in found["room_types"]
    ]  # fmt: skip


async def _finish(process: asyncio.subprocess.Process, timeout_s: float, what: str) -> tuple[int, str]:
    try:
        async with asyncio.timeout(timeout_s):
            output, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise BuildError(f"{what[0].upper()}{what[1:]} took over {timeout_s:g} s and was ended.") from None
    return process.returncode or 0, (errors or b"").decode(errors="replace") + output.decode(errors="replace")
