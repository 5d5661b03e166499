"""Calls to a data service, for tests: its contract, with a key, a deadline, and errors with codes."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import grpc.aio

from playhall.api.data.v1 import data_pb2 as pb
from playhall.api.data.v1 import data_pb2_grpc as pb_grpc
from playhall_common.auth import bearer_metadata, channel
from playhall_common.errors import from_rpc
from tests.support.processes import SERVICE_SECRET

CALL_S = 15.0

_STUBS: dict[str, Any] = {
    "Projects": pb_grpc.ProjectsStub,
    "Keys": pb_grpc.KeysStub,
    "Builds": pb_grpc.BuildsStub,
    "Registry": pb_grpc.RegistryStub,
}


class DataClient:
    """`await client.call("Projects.GetProject", slug="dots")`. Raises ApiError.

    `secret` None shows nothing.
    """

    def __init__(self, address: str, secret: str | None = SERVICE_SECRET) -> None:
        self._channel = channel(address)
        self._metadata = () if secret is None else bearer_metadata(secret)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def call(self, method: str, **fields: Any) -> Any:
        """The response."""
        service, name = method.split(".")
        rpc = getattr(_STUBS[service](self._channel), name)
        request = getattr(pb, f"{name}Request")(**fields)
        try:
            return await rpc(request, metadata=self._metadata, timeout=CALL_S, wait_for_ready=True)
        except grpc.aio.AioRpcError as failure:
            raise from_rpc(failure) from None

    async def create_project(self, slug: str, **settings: Any) -> pb.Project:
        response = await self.call("Projects.CreateProject", slug=slug, settings=pb.Settings(**settings))
        project: pb.Project = response.project
        return project

    async def register_build(
        self,
        project: str,
        bundle_hash: str,
        room_types: Sequence[pb.RoomType] | None = None,
        location: str = "/bundles/one",
        site: str = "",
    ) -> pb.Build:
        """Register a build; of the one type `default`, where none are given."""
        response = await self.call(
            "Builds.RegisterBuild",
            project=project,
            bundle_hash=bundle_hash,
            location=location,
            room_types=[room_type("default")] if room_types is None else room_types,
            site=site,
        )
        build: pb.Build = response.build
        return build

    async def go_live(self, project: str, build_id: str) -> pb.Build:
        response = await self.call("Builds.GoLive", project=project, build_id=build_id)
        build: pb.Build = response.build
        return build

    async def live_project(self, slug: str, *types: str, **settings: Any) -> pb.Build:
        """A new project with a live build of these room types (`default`, where none are named)."""
        await self.create_project(slug, **settings)
        build = await self.register_build(slug, "first", [room_type(name) for name in types or ("default",)])
        return await self.go_live(slug, build.build_id)


def room_type(name: str, **changes: Any) -> pb.RoomType:
    """A room type that a build may have."""
    fields: dict[str, Any] = {"entry": "room:Room", "schema_hash": b"0123456789abcdef", "state_version": 1}
    return pb.RoomType(name=name, **({"max_players": 64} | fields | changes))
