"""Builds of a project, one after the other: the first, and one for each change."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from playhall.cli.build import Build, Builder
from playhall.cli.bundle import prune, sweep
from playhall.cli.console import DevConsole
from playhall.cli.errors import BuildError, DeployError
from playhall.cli.folders import Folders
from playhall.cli.project import ProjectFile, ProjectFileError, load
from playhall.cli.saved import SavedKinds
from playhall.cli.sources import Files, Sources, difference, site_dir_of, with_site

__all__ = ["Live", "Rebuilder"]

RETRY_S = 5.0
_LOOK_AGAIN_S = 3600.0
_ALWAYS = 3
_NUMBERS = re.compile(r"\d+")


class Live(Protocol):
    """Where builds go live: `deploy.Deployer`."""

    live: Build | None

    async def go_live(self, project: ProjectFile, build: Build) -> None:
        """Raises DeployError."""


class Rebuilder:
    """Keeps a live build in step with a project's files. What is wrong is printed, and a change mends it."""

    def __init__(
        self,
        project: ProjectFile,
        folders: Folders,
        deployer: Live,
        console: DevConsole,
        on_first: Callable[[], None],
    ) -> None:
        """`on_first` is called when the first build is live."""
        self._project, self._folders = project, folders
        self._deployer, self._console, self._on_first = deployer, console, on_first
        self._sources = Sources(project.root)
        self._builder = Builder(folders.builds, self._sources)
        self._saved = SavedKinds(folders.state / "kinds.json")
        self._files: Files = {}
        """What the last build was made of."""
        self._written: Counter[str] = Counter()
        """In how many builds in a row a file changed while they ran."""
        self._outputs: set[str] = set()
        self._deploy_failed = False
        self._problem = ""

    async def run(self) -> None:
        """Build now and at every change, until cancelled."""
        await asyncio.to_thread(sweep, self._folders.builds)
        while True:
            await self._attempt()
            await self._find_outputs()
            await self._sources.changed(
                self._files,
                site_dir_of(self._project),
                without=self._outputs,
                timeout_s=RETRY_S if self._deploy_failed else None,
            )

    async def _attempt(self) -> None:
        begun, before = time.monotonic(), self._deployer.live
        self._files, last = await self._look(), self._files
        is_echo = difference(last, self._files) <= self._written.keys()
        self._deploy_failed = False
        try:
            looked_for, self._project = site_dir_of(self._project), self._load()
            if site_dir_of(self._project) != looked_for:
                self._files = await self._look()
            build = await self._builder.build(self._project, self._files)
            self._files = build.files
            self._saved.check(build)
            await self._deployer.go_live(self._project, build)
        except (BuildError, ProjectFileError) as error:
            await self._accept_site()
            rest = "The build before it stays live." if before else "Save a change to try again."
            self._tell_problem("This build does not work", f"{error}\n\n{rest}", is_echo)
        except DeployError as error:
            self._deploy_failed = True
            rest = f"It is tried again until it works. What the services say is in {self._folders.logs}"
            self._tell_problem("The build could not go live", f"{error}\n\n{rest}", is_echo)
        else:
            self._saved.add(build)
            await asyncio.to_thread(prune, self._folders.builds)
            self._tell_live(before, build, time.monotonic() - begun)
            self._problem = ""

    async def _accept_site(self) -> None:
        """What a failed build left of the site is no change that would build again."""
        site_dir = site_dir_of(self._project)
        if site_dir is not None and self._project.site is not None and self._project.site.build is not None:
            self._files = with_site(self._files, await self._look(), site_dir)

    def _load(self) -> ProjectFile:
        project = load(self._project.path)
        if project.project.slug != self._project.project.slug:
            raise ProjectFileError(
                f"{project.path}: project.slug was {self._project.project.slug} when playhall dev was "
                "started. Another slug is another project: stop playhall dev and start it again."
            )
        return project

    def _tell_live(self, before: Build | None, build: Build, seconds: float) -> None:
        if before is None:
            self._on_first()
        elif before != build:
            what = "code" if before.code != build.code else "page"
            self._console.step(f"the new {what} is live ({seconds:.1f} s)")
        elif self._problem:
            self._console.step("works again; what is live has not changed")

    def _tell_problem(self, title: str, text: str, is_echo: bool) -> None:
        """Print it, but not twice for one change: what a build writes may start another, and retries do."""
        gist = _NUMBERS.sub("0", text)  # tools tell how long they took
        if not (is_echo and gist == self._problem):
            self._console.problem(title, text)
        self._problem = gist

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
