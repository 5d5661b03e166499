"""gRPC Supervisor: proto to `Supervisor` and back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.api.roomhost.v1 import roomhost_pb2_grpc as rpc
from playhall_roomhost.supervisor import Supervisor

__all__ = ["SupervisorServicer"]

HEARTBEAT_S = 1.0

Context = grpc.aio.ServicerContext[Any, Any]


class SupervisorServicer(rpc.SupervisorServicer):
    """See the proto."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    async def Control(
        self, request_iterator: AsyncIterator[pb.ControlRequest], context: Context
    ) -> AsyncIterator[pb.ControlResponse]:
        while not self._supervisor.ended:
            yield self._supervisor.state()
            await self._supervisor.next_change(HEARTBEAT_S)

    async def Prepare(self, request: pb.PrepareRequest, context: Context) -> pb.PrepareResponse:
        member = await self._supervisor.prepare(request.build)
        return pb.PrepareResponse(process=self._supervisor.process(member))

    async def Retire(self, request: pb.RetireRequest, context: Context) -> pb.RetireResponse:
        return pb.RetireResponse(
            processes=self._supervisor.retire(request.project, request.before_deploy_seq)
        )
