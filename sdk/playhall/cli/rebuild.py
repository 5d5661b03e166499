"""Builds of a project, one after the other: the first, and one for each change."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from playhall.cli.build import Build, Builder
from playhall.cli.bundle import prune, sweep
from playhall.cli.console import DevConsole
from playhall.cli.deploy import Deployer
from playhall.cli.errors import BuildError, DeployError
from playhall.cli.folders import Folders
from playhall.cli.project import ProjectFile, ProjectFileError, load
from playhall.cli.sources import Files, Sources, difference, site_dir_of

__all__ = ["Rebuilder"]

_RETRY_S = 5.0
_LOOK_AGAIN_S = 3600.0
_ALWAYS = 3


class Rebuilder:
    """Keeps a live build in step with a project's files. What is wrong is printed, and a change mends it."""

    def __init__(
        self,
        project: ProjectFile,
        folders: Folders,
        deployer: Deployer,
        console: DevConsole,
        on_first: Callable[[], None],
    ) -> None:
        """`on_first` is called when the first build is live."""
        self._project, self._folders = project, folders
        self._deployer, self._console, self._on_first = deployer, console, on_first
        self._sources = Sources(project.root)
        self._builder = Builder(folders.builds, self._sources)
        self._files: Files = {}
        """What the last build was made of."""
        self._written: Counter[str] = Counter()
        """In how many builds in a row a file changed while they ran."""
        self._outputs: set[str] = set()
        self._deploy_error = ""

    async def run(self) -> None:
        """Build now and at every change, until cancelled."""
        await asyncio.to_thread(sweep, self._folders.builds)
        while True:
            await self._attempt()
            await self._find_outputs()
            while not await self._sources.changed(
                self._files,
                site_dir_of(self._project),
                without=self._outputs,
                timeout_s=_RETRY_S if self._deploy_error else _LOOK_AGAIN_S,
            ):
                if self._deploy_error:
                    break

    async def _attempt(self) -> None:
        begun, before = time.monotonic(), self._deployer.live
        self._files = await self._look()
        try:
            self._project = self._load()
            build = await self._builder.build(self._project, self._files)
            self._files = build.files
            await self._deployer.go_live(self._project, build)
        except (BuildError, ProjectFileError) as error:
            rest = "The build before it stays live." if before else "Save a change to try again."
            self._console.problem("This build does not work", f"{error}\n\n{rest}")
        except DeployError as error:
            self._tell_deploy_error(str(error))
        else:
            self._deploy_error = ""
            await asyncio.to_thread(prune, self._folders.builds)
            self._tell(before, build, time.monotonic() - begun)

    def _load(self) -> ProjectFile:
        project = load(self._project.path)
        if project.project.slug != self._project.project.slug:
            raise ProjectFileError(
                f"{project.path}: project.slug was {self._project.project.slug} when playhall dev was "
                "started. Another slug is another project: stop playhall dev and start it again."
            )
        return project

    def _tell(self, before: Build | None, build: Build, seconds: float) -> None:
        if before is None:
            self._on_first()
        elif before != build:
            what = "code" if before.code != build.code else "page"
            self._console.step(f"the new {what} is live ({seconds:.1f} s)")

    def _tell_deploy_error(self, error: str) -> None:
        if error != self._deploy_error:
            rest = f"It is tried again until it works. What the services say is in {self._folders.logs}"
            self._console.problem("The build could not go live", f"{error}\n\n{rest}")
        self._deploy_error = error

    async def _find_outputs(self) -> None:
        """Learn which files builds write anew each time: else each build would start another, without end.

        What a build generates (`playhall gen`) is another matter: the next build leaves it as it is.
        """
        written = difference(self._files, await self._look()) - self._outputs
        self._written = Counter({path: self._written[path] + 1 for path in written})
        for path, times in self._written.items():
            if times >= _ALWAYS:
                self._outputs.add(path)
                self._console.warn(f"{path} changes in every build; its changes start no more builds")

    async def _look(self) -> Files:
        return await asyncio.to_thread(self._sources.look, site_dir_of(self._project))
