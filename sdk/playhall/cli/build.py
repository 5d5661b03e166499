"""From a project's folder to a build: copy the code, look at it, build the site, copy that."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhall.cli.bundle import copy_code, copy_site, original_paths
from playhall.cli.commands import Finished, run_command
from playhall.cli.errors import BuildError
from playhall.cli.project import ProjectFile
from playhall.cli.sources import Files, Sources, code_of, site_dir_of, site_of, with_site

__all__ = ["Build", "Builder", "RoomType"]

SITE_BUILD_S = 120.0
INSPECT_S = 20.0
_INSPECT_START_S = 10.0
_NOT_FOUND = 127
_HUNG = "Timeout (0:"  # faulthandler's


@dataclass(frozen=True)
class RoomType:
    """A room type as its code declares it."""

    name: str
    entry: str
    schema_hash: str
    state_version: int
    max_players: int
    kinds: dict[str, dict[str, str]] = field(default_factory=dict, hash=False)
    """Types of the fields that its rooms save, by kind and name."""


@dataclass(frozen=True)
class Build:
    """What can go live. `files` are those it was made of, for telling what has changed since."""

    code: Path
    site: Path | None
    room_types: tuple[RoomType, ...]
    files: Files = field(compare=False, repr=False)


class Builder:
    """Makes builds of one project, one at a time."""

    def __init__(self, builds: Path, sources: Sources) -> None:
        self._builds, self._sources = builds, sources
        self._inspected: tuple[tuple[Path, list[str]], tuple[RoomType, ...]] | None = None

    async def build(self, project: ProjectFile, files: Files) -> Build:
        """Build the project, whose files were just seen to be these. Raises BuildError.

        Room code is looked at while the site is built. Where both fail, the site's build has often stumbled
        over the code too: what the code's author is told is what Python says.
        """
        site_dir = site_dir_of(project)
        site = asyncio.create_task(self._site(project, site_dir)) if site_dir else None
        try:
            code = {path: files[path] for path in code_of(files, site_dir)}
            copy = await _copied(copy_code, code, project.root, self._builds, project.package)
            room_types = await self._room_types(project, copy)
            served, folder = await site if site else ({}, None)
        finally:
            if site is not None:
                site.cancel()
                await asyncio.gather(site, return_exceptions=True)
        seen = with_site(files, served, site_dir) if site_dir else files
        return Build(copy, folder, room_types, seen)

    async def _room_types(self, project: ProjectFile, code: Path) -> tuple[RoomType, ...]:
        entries = [f"{name}={project.entry(name)}" for name in project.rooms]
        known = (code, entries)
        if self._inspected is None or self._inspected[0] != known:
            self._inspected = (known, await self._inspect(project, code, entries))
        return self._inspected[1]

    async def _inspect(
        self, project: ProjectFile, code: Path, entries: Sequence[str]
    ) -> tuple[RoomType, ...]:
        answer = self._builds / f".answer-{uuid.uuid4().hex}"
        try:
            done = await run_command(
                [
                    sys.executable, "-P", "-m", "playhall.cli.inspect_build",
                    str(answer), str(INSPECT_S), str(code), *entries,
                ],
                cwd=self._builds, timeout_s=INSPECT_S + _INSPECT_START_S,
            )  # fmt: skip
            found = _read_answer(answer)
        finally:
            answer.unlink(missing_ok=True)
        if found is None:
            found = {"error": _unanswered(done)}
        if "error" in found:
            text = original_paths(
                found["error"], builds=self._builds, package=project.package, root=project.root
            )
            raise BuildError(f"The room code cannot be loaded:\n\n{text.rstrip()}")
        return tuple(RoomType(**room_type) for room_type in found["room_types"])

    async def _site(self, project: ProjectFile, site_dir: str) -> tuple[Files, Path]:
        command = project.site.build if project.site else None
        if command is not None:
            await _run_site_build(project, command)
        if not (project.root / site_dir).is_dir():
            how = "after the build command ran" if command else "and there is no build command"
            raise BuildError(
                f"{project.path}: [site] dir names {site_dir}, which is not there {how}.\n"
                "Name the folder that holds index.html."
            )
        files = await asyncio.to_thread(self._sources.look, site_dir)
        served = {path: files[path] for path in site_of(files, site_dir)}
        return served, await _copied(copy_site, served, project.root, self._builds, site_dir)


async def _copied(copy: Any, *arguments: Any) -> Path:
    try:
        folder: Path = await asyncio.to_thread(copy, *arguments)
    except OSError as error:
        raise BuildError(f"{error.filename}: cannot be copied: {error.strerror}") from None
    return folder


def _read_answer(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return found


def _unanswered(done: Finished) -> str:
    """The import ended the process, or hung: then the end of the output says where."""
    if done.code is None or _HUNG in done.output:
        how = f"Its import took over {INSPECT_S:g} s."
    else:
        how = f"Its import ended the process with {done.code}."
    return f"{done.output.rstrip()}\n\n{how}".lstrip()


async def _run_site_build(project: ProjectFile, command: str) -> None:
    # `playhall gen` is to be the one of this Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    done = await run_command(
        ["/bin/sh", "-c", command], cwd=project.root, timeout_s=SITE_BUILD_S,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    if done.code == 0:
        return
    how = (
        f"ended with {done.code}" if done.code is not None else f"took over {SITE_BUILD_S:g} s and was ended"
    )
    advice = f"Mend it, or change [site] build in {project.path}."
    if done.code == _NOT_FOUND:
        advice = (
            "A program it runs is not installed, or not on PATH. Node.js, 20 or newer: https://nodejs.org"
        )
    raise BuildError(f"The site's build command {how}: {command}\n\n{done.output.rstrip()}\n\n{advice}")
