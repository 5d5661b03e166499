"""`playhall dev`: everything on one machine, and a new build at every change."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import time
from pathlib import Path

import grpc.aio
from watchfiles import DefaultFilter, awatch

from playhall.cli.children import READY_FD, ChildFailedError
from playhall.cli.cluster import Cluster, Folders, PortInUseError
from playhall.cli.console import DevConsole
from playhall.cli.deploy import BuildError, Deployer
from playhall.cli.project import ProjectFile, ProjectFileError, load

__all__ = ["run"]

_NOT_SOURCE = ("node_modules", "__pycache__", ".playhall", ".git", ".venv", ".pytest_cache", ".mypy_cache")


def run(path: Path, *, host: str, port: int) -> int:
    """Serve the project until Ctrl-C; gives the exit code."""
    console = DevConsole()
    try:
        project = load(path)
        return asyncio.run(_Dev(project, console, host, port).run())
    except (ProjectFileError, PortInUseError) as error:
        console.problem("Playhall cannot start", str(error))
    except ChildFailedError as error:
        shown = "\n".join(error.lines)
        console.problem(f"Playhall cannot start: {error}", shown or "It wrote nothing.")
    return 1


class _Dev:
    def __init__(self, project: ProjectFile, console: DevConsole, host: str, port: int) -> None:
        self._project, self._console = project, console
        self._folders = Folders(project.root / ".playhall")
        self._host, self._port = host, port
        self._stop = asyncio.Event()
        self._begun = time.monotonic()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop.set)
        self._console.say(f"\n[bold]Playhall[/bold] · {self._project.project.slug}")
        self._folders.make()
        cluster = Cluster(
            project=self._project.project.slug, folders=self._folders, host=self._host, port=self._port,
            on_line=self._console.log_line, on_restart=self._restarted,
        )  # fmt: skip
        deployer = Deployer(
            self._folders.builds, data=cluster.target("data"), roomhost=cluster.target("roomhost"),
            admin_key=cluster.secrets.admin,
        )  # fmt: skip
        work = asyncio.create_task(self._work(cluster, deployer))
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
        finally:
            work.cancel()
            stopped.cancel()
            await asyncio.gather(work, stopped, return_exceptions=True)
            self._console.step("stopping")
            await deployer.close()
            await cluster.stop()
        return 0

    async def _work(self, cluster: Cluster, deployer: Deployer) -> None:
        self._console.step("starting services and building the game")
        async with asyncio.TaskGroup() as group:
            start = group.create_task(_unwrapped(cluster.start()))
            build = group.create_task(self._first_build(deployer))
        if (failed := start.result()) is not None:
            raise failed
        source = build.result()
        if deployer.live is not None:
            self._announce(cluster)
        await self._rebuild_on_change(cluster, deployer, source)

    async def _first_build(self, deployer: Deployer) -> str:
        await deployer.create_project(self._project)
        return await self._deploy(deployer)

    async def _deploy(self, deployer: Deployer) -> str:
        """Build and go live; errors of the game's code are printed. Gives the hash of what was built."""
        try:
            self._project = load(self._project.path)
            bundle, room_types = await deployer.build(self._project)
            if deployer.live is None or deployer.live.bundle.hash != bundle.hash:
                await deployer.go_live(self._project, bundle, room_types)
        except (BuildError, ProjectFileError) as error:
            rest = "The build before it stays live." if deployer.live else "Save a change to try again."
            self._console.problem("This build does not work", f"{error}\n\n{rest}")
        except grpc.aio.AioRpcError as error:
            self._console.problem("The build could not go live", f"{error.code().name}: {error.details()}")
        return await asyncio.to_thread(_source_hash, self._project)

    async def _rebuild_on_change(self, cluster: Cluster, deployer: Deployer, built: str) -> None:
        async for _ in awatch(
            self._project.root, watch_filter=_filter(self._project), stop_event=self._stop, step=100
        ):
            if await asyncio.to_thread(_source_hash, self._project) == built:
                continue
            begun, before = time.monotonic(), deployer.live
            built = await self._deploy(deployer)
            if deployer.live is not None and deployer.live != before:
                if before is None:
                    self._announce(cluster)
                else:
                    self._console.step(
                        f"new build {deployer.live.deploy_seq} is live ({time.monotonic() - begun:.1f} s)"
                    )

    def _announce(self, cluster: Cluster) -> None:
        self._console.step(f"ready after {time.monotonic() - self._begun:.1f} s")
        self._console.say(f"\n  [bold]Play[/bold]              [link={cluster.url}]{cluster.url}[/link]")
        if cluster.guest_url != cluster.url:
            self._console.say(f"  As another guest  [link={cluster.guest_url}]{cluster.guest_url}[/link]")
        self._console.say(
            "\n  [dim]Save a file and the game changes under its players. Ctrl-C stops everything.[/dim]\n"
        )
        fd = os.environ.get(READY_FD)
        if fd is not None:
            os.environ.pop(READY_FD)
            pids = {name: child.pid for name, child in cluster.children.items()}
            line = {
                "url": cluster.url, "guest_url": cluster.guest_url, "pids": pids,
                "websockets": [f"ws://{cluster.host}:{p}/v1/connect" for p in cluster.websocket_ports],
            }  # fmt: skip
            os.write(int(fd), json.dumps(line).encode() + b"\n")
            os.close(int(fd))

    def _restarted(self, name: str, code: int) -> None:
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self._console.say(f"[yellow]{name} ended ({how}) and is started again[/yellow]")


async def _unwrapped(awaitable: object) -> ChildFailedError | None:
    """A failed start as a value: a task group would wrap the exception."""
    try:
        await awaitable  # type: ignore[misc]
    except ChildFailedError as error:
        return error
    return None


def _filter(project: ProjectFile) -> DefaultFilter:
    ignored = [*_NOT_SOURCE]
    paths = [project.root / project.site.dir] if project.site else []
    return DefaultFilter(ignore_dirs=ignored, ignore_paths=paths)


def _source_hash(project: ProjectFile) -> str:
    """Of every file that a build reads. A build may write some of them, which must not start another."""
    whole = hashlib.sha256()
    built = project.root / project.site.dir if project.site else None
    for where, folders, names in os.walk(project.root):
        folders[:] = sorted(f for f in folders if f not in _NOT_SOURCE and Path(where, f) != built)
        for name in sorted(names):
            path = Path(where, name)
            try:
                whole.update(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
            except OSError:
                # Gone or replaced while we looked; its next event comes.
                continue
    return whole.hexdigest()
