"""`python -m playhall_roomhost`: the supervisor of a pod."""

from __future__ import annotations

import os

# Before gRPC is imported: processes are started by fork and exec, into which it need not follow.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from playhall.api.roomhost.v1 import roomhost_pb2_grpc as rpc
from playhall_common.config import load_or_exit
from playhall_common.metrics import REGISTRY
from playhall_common.server import Service, run
from playhall_roomhost.config import PREFIX, RoomHostConfig
from playhall_roomhost.measure import Sums
from playhall_roomhost.supervisor import Supervisor
from playhall_roomhost.supervisor_servicer import SupervisorServicer

__all__ = ["main"]


def main() -> None:
    """Serve until SIGTERM, then drain."""
    config = load_or_exit(RoomHostConfig, PREFIX)

    async def set_up(service: Service) -> None:
        sums = Sums()
        REGISTRY.register(sums)
        supervisor = Supervisor(config, sums)
        service.on_drain(supervisor.drain)
        service.on_stop(supervisor.stop)
        rpc.add_SupervisorServicer_to_server(SupervisorServicer(supervisor), service.grpc)
        supervisor.start()

    run("roomhost", set_up, config)


if __name__ == "__main__":
    main()
