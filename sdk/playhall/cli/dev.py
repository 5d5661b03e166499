"""`playhall dev`: everything on one machine, and a new build at every change.

The services start while the game is built; what talks to them is imported meanwhile. However it ends, nothing
stays: services that do not drain in time are killed, and Linux kills them where this process is.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from playhall.cli.bundle import original_paths
from playhall.cli.children import READY_FD, ChildFailedError, Ended
from playhall.cli.cluster import Cluster, check_installed
from playhall.cli.console import DevConsole, wants_colour
from playhall.cli.errors import StartError
from playhall.cli.folders import Folders, ProjectLock, cache_bytecode
from playhall.cli.project import ProjectFile, ProjectFileError, load
from playhall.engine.backend import native

__all__ = ["run"]

_SHOW_LINES_AT = 2
_PURE = (
    "The engine runs in Python, several times slower than the native one: `make native` builds that, unless "
    "PLAYHALL_PURE=1 turns it off."
)


def run(path: Path, *, host: str, port: int, routers: int = 1) -> int:
    """Serve the project until Ctrl-C, by so many router processes; gives the exit code."""
    console = DevConsole(sys.stdout, colour=wants_colour(sys.stdout, os.environ))
    try:
        project = load(path)
        check_installed()
        folders = Folders(project.root / ".playhall")
        folders.make()
        lock = ProjectLock.take(folders)
        try:
            cache_bytecode(folders)
            return asyncio.run(_Dev(project, folders, lock, console).run(host, port, routers))
        finally:
            lock.release()
    except ChildFailedError as error:
        console.problem(f"Playhall cannot start: {error}", console.last_lines(error.lines))
    except (ProjectFileError, StartError) as error:
        console.problem("Playhall cannot start", str(error))
    return 1


class _Dev:
    def __init__(
        self, project: ProjectFile, folders: Folders, lock: ProjectLock, console: DevConsole
    ) -> None:
        self._project, self._folders, self._lock, self._console = project, folders, lock, console
        self._stop = asyncio.Event()
        self._stopping: Cluster | None = None
        self._begun = time.monotonic()
        console.only_errors = True
        console.on_gone = self._stop.set
        console.translate = partial(
            original_paths, builds=folders.builds, package=project.package, root=project.root
        )

    async def run(self, host: str, port: int, routers: int) -> int:
        loop = asyncio.get_running_loop()
        for number in _stop_signals():
            loop.add_signal_handler(number, self._signalled)
        self._console.title(self._project.project.slug)
        if not native:
            self._console.step(_PURE)
        cluster = Cluster(
            project=self._project.project.slug, folders=self._folders, host=host, port=port, routers=routers,
            on_line=self._console.log_line, on_end=self._child_ended,
        )  # fmt: skip
        work = asyncio.create_task(self._work(cluster))
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
        finally:
            self._console.only_errors = True
            self._console.step("stopping")
            self._stopping = cluster
            await _end(work, stopped)
            for name in await cluster.stop():
                self._console.warn(f"{name} did not end in time and was killed")
            self._console.step("stopped")
        return 0

    def _signalled(self) -> None:
        """A second Ctrl-C waits for nobody."""
        self._stop.set()
        if self._stopping is not None:
            self._stopping.kill()

    async def _work(self, cluster: Cluster) -> None:
        """Runs until it is cancelled, or something that must work does not."""
        self._console.step("starting services and building the game")
        live: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        starting = asyncio.create_task(cluster.start())
        building = asyncio.create_task(self._build(cluster, live))
        announcing = asyncio.create_task(self._announce(cluster, starting, live))
        tasks = (starting, building, announcing)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            await _end(*tasks)

    async def _build(self, cluster: Cluster, live: asyncio.Future[bool]) -> None:
        """`live` gets, once the first build is, whether it has a site."""
        # In a thread, and now: the services have been started by then and need not wait for gRPC's import.
        await asyncio.to_thread(importlib.import_module, "playhall.cli.rebuild")
        from playhall.cli.deploy import Deployer
        from playhall.cli.rebuild import Rebuilder

        deployer = Deployer(
            data=cluster.target("data"), roomhost=cluster.target("roomhost"), admin_key=cluster.secrets.admin
        )

        def first() -> None:
            live.set_result(deployer.live is not None and deployer.live.site is not None)

        try:
            await Rebuilder(self._project, self._folders, deployer, self._console, first).run()
        finally:
            await deployer.close()

    async def _announce(
        self, cluster: Cluster, starting: asyncio.Task[None], live: asyncio.Future[bool]
    ) -> None:
        """Print the links once the first build is live and everything serves; tell PLAYHALL_READY_FD too."""
        await asyncio.wait({starting})
        has_site = await live
        self._lock.tell(cluster.url)
        self._console.only_errors = False
        self._console.step(f"ready after {time.monotonic() - self._begun:.1f} s")
        if has_site:
            self._console.links(cluster.url, cluster.guest_url, cluster.inspector_url)
        else:
            self._console.address(cluster.url, self._project.project.slug, cluster.inspector_url)
        fd = os.environ.pop(READY_FD, None)
        if fd is not None:
            line = {
                "url": cluster.url, "guest_url": cluster.guest_url, "websockets": cluster.websocket_urls,
                "pids": {name: child.pid for name, child in cluster.children.items()},
            }  # fmt: skip
            with os.fdopen(int(fd), "wb") as ready:
                ready.write(json.dumps(line).encode() + b"\n")

    def _child_ended(self, ended: Ended) -> None:
        if self._stop.is_set():
            return
        self._console.warn(f"{ended.name} {ended.why} and is started again")
        if ended.times == _SHOW_LINES_AT:
            log = self._folders.logs / f"{ended.name}.log"
            shown = self._console.last_lines(ended.lines)
            self._console.problem(f"{ended.name} keeps ending", f"{shown}\n\nAll of its log: {log}")


def _stop_signals() -> list[signal.Signals]:
    """Ctrl-C, a plain kill, and a terminal that is closed, unless nohup says to outlive that."""
    outlives = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if outlives else [signal.SIGHUP])]


async def _end(*tasks: asyncio.Task[object]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
