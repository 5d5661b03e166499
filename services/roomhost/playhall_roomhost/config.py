"""Settings of the supervisor. Processes are told what they need when they are bound to a build."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from playhall_common.address import is_unix, split_host_port
from playhall_common.config import ServiceConfig, setting

__all__ = ["PREFIX", "RoomHostConfig"]

PREFIX = "PLAYHALL_ROOMHOST"
_MAX_UNIX_PATH = 107
_SOCKET_NAME = "/roomhost-0123456789abcdef.sock"


@dataclass(frozen=True, kw_only=True)
class RoomHostConfig(ServiceConfig):
    """What a room host can be told."""

    pod_id: str = setting("Name of the pod in logs and towards routers. Empty: a random one.", default="")
    run_dir: str = setting(
        "Directory for the Unix sockets of the processes. Empty: they listen on the host of `address`.",
        default="",
    )
    advertise_host: str = setting(
        "The host by which routers dial the processes. Empty: the host of `address`.", default=""
    )
    processes_per_build: int = setting(
        "Processes that run the rooms of one build; one for each core.", default=1, low=1, high=64
    )
    max_rooms: int = setting("Rooms that one process runs at most.", default=250, low=1, high=250)
    stuck_s: float = setting(
        "A process whose loop does not turn for this long is killed, in seconds;"
        " so is one that answers no RPC for twice as long.",
        default=5.0,
        low=0.2,
        high=60,
    )
    load_s: float = setting(
        "How long the import of a build may take, in seconds.", default=30.0, low=1, high=300
    )
    idle_process_s: float = setting(
        "How long a process of an older build stays without rooms, in seconds.",
        default=60.0,
        low=0,
        high=86400,
    )

    inspector: bool = setting(
        "Whether routers may ask for all that is in a room, for the inspector. Only for development.",
        default=False,
    )

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if is_unix(self.address):
            if not self.run_dir:
                yield "run_dir is needed where address is a Unix socket"
        elif ":" in self.address:
            try:
                split_host_port(self.address)
            except ValueError as error:
                yield f"address {error}"
        if self.run_dir and len(self.run_dir.encode() + _SOCKET_NAME.encode()) > _MAX_UNIX_PATH:
            yield f"run_dir {self.run_dir!r} is too long for the path of a Unix socket"
