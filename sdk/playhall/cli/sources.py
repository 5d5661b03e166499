"""The files of a project: which there are, what is in them, and which of them are room code.

Changes are found by looking, a few times a second, and not by the system's notifications: that works on every
file system (containers, network shares), has no limit of watches, and cannot miss what happens while a build
runs. A look is a stat for each file, about 1 ms for a game of 200; contents are read once.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Set
from pathlib import Path, PurePosixPath

from playhall.cli.project import FILE_NAME, ProjectFile

__all__ = [
    "Files",
    "Settling",
    "Sources",
    "code_of",
    "difference",
    "digest",
    "files_below",
    "site_dir_of",
    "site_of",
]

Files = dict[str, str]
"""Digests of contents by path, relative and with slashes."""

_IGNORED = frozenset({"node_modules", "__pycache__"})
_TEST = re.compile(r"(test_.*|.*_test|conftest)\.py")
_OF_PAGES = (
    ".html",
    ".css",
    ".scss",
    ".js",
    ".mjs",
    ".cjs",
    ".jsx",
    ".ts",
    ".tsx",
    ".vue",
    ".svelte",
    ".map",
)
_CHUNK = 1 << 20
_LOOK_S = 0.25
_SETTLE_S = 0.1
_STORM_S = 3.0
_SHARE = 0.05


class Sources:
    """Looks at the files of a folder; remembers contents by their stat."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, tuple[tuple[int, int, int], str]] = {}
        self._cost_s = 0.0

    def look(self, site_dir: str | None) -> Files:
        """All files as they are now. What cannot be read is not there: a build that needs it says so."""
        begun = time.perf_counter()
        known: dict[str, tuple[tuple[int, int, int], str]] = {}
        for path, found in files_below(self._root, site_dir):
            mark = (found.st_mtime_ns, found.st_size, found.st_ino)
            before = self._known.get(path)
            if before is not None and before[0] == mark:
                known[path] = before
                continue
            try:
                known[path] = (mark, digest(self._root / path))
            except OSError:
                continue
        self._known = known
        self._cost_s = time.perf_counter() - begun
        return {path: content for path, (_, content) in known.items()}

    async def changed(
        self, before: Files, site_dir: str | None, *, without: Set[str], timeout_s: float | None
    ) -> bool:
        """Wait until files differ from `before` and rest again (see `Settling`). False: none did in time."""
        loop = asyncio.get_running_loop()
        settling = Settling(before, without)
        deadline = None if timeout_s is None else loop.time() + timeout_s
        while not settling.done:
            if deadline is not None and not settling.begun and loop.time() >= deadline:
                return False
            wait_s = _SETTLE_S if settling.begun else _LOOK_S
            # A big project is looked at less often, so that it costs no more than a small one.
            await asyncio.sleep(max(wait_s, self._cost_s / _SHARE))
            settling.seen(await asyncio.to_thread(self.look, site_dir), loop.time())
        return True


class Settling:
    """When to build again: once files that differ from what was built rest, so that a checkout is one change.

    What does not rest for 3 s is built anyway. The paths `without` do not count.
    """

    def __init__(self, built: Files, without: Set[str]) -> None:
        self._built, self._without = built, without
        self._last = built
        self._by: float | None = None
        self.done = False

    @property
    def begun(self) -> bool:
        """Whether a difference was seen, and may still grow."""
        return self._by is not None

    def seen(self, files: Files, now: float) -> None:
        """Take the files as they are now."""
        if not difference(self._built, files) - self._without:
            self._by = None
        elif self._by is None:
            self._by = now + _STORM_S
        else:
            self.done = now >= self._by or not difference(self._last, files) - self._without
        self._last = files


def difference(before: Files, after: Files) -> set[str]:
    """Paths that came, went or have other contents."""
    return {path for path, _ in before.items() ^ after.items()}


def files_below(root: Path, site_dir: str | None = None) -> Iterator[tuple[str, os.stat_result]]:
    """Every regular file below a folder, links followed, in no certain order.

    Not what is hidden, caches, installed packages (node_modules, virtual environments), editors' backups and
    tests, by pytest's names; but the site's folder always, whatever it is called.
    """
    folders: list[tuple[str, str, frozenset[tuple[int, int]]]] = [(str(root), "", frozenset())]
    if site_dir is not None:
        folders.append((str(root / site_dir), f"{site_dir}/", frozenset()))
    while folders:
        folder, prefix, above = folders.pop()
        for entry in _entries(folder):
            try:
                found = entry.stat()
            except OSError:
                # A link to nowhere, or gone since.
                continue
            path = prefix + entry.name
            if stat.S_ISREG(found.st_mode):
                yield path, found
            elif stat.S_ISDIR(found.st_mode) and path != site_dir and not _is_environment(entry.path):
                here = (found.st_dev, found.st_ino)
                if here not in above:  # a link to a folder it is in would go on for ever
                    folders.append((entry.path, f"{path}/", above | {here}))


def _is_environment(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if _counts(entry.name)]
    except OSError:
        return []


def _counts(name: str) -> bool:
    left_out = name.startswith(".") or name.endswith(("~", ".pyc")) or name in _IGNORED
    return not (left_out or _TEST.fullmatch(name))


def digest(path: Path) -> str:
    """Of a file's contents, hexadecimal. Raises OSError."""
    whole = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while data := file.read(_CHUNK):
            whole.update(data)
    return whole.hexdigest()


def site_dir_of(project: ProjectFile) -> str | None:
    """The site's folder, relative to the project's."""
    return os.path.normpath(project.site.dir) if project.site else None


def site_of(paths: Iterable[str], site_dir: str) -> list[str]:
    """The files that are served, in order."""
    return sorted(path for path in paths if path.startswith(f"{site_dir}/"))


def with_site(files: Files, others: Files, site_dir: str) -> Files:
    """`files`, but those that are served as they are in `others`."""
    folder = f"{site_dir}/"
    kept = {path: content for path, content in files.items() if not path.startswith(folder)}
    return kept | {path: content for path, content in others.items() if path.startswith(folder)}


def code_of(paths: Iterable[str], site_dir: str | None) -> list[str]:
    """The files that room code may need, in order: all but the project file and what is the page's.

    That is what only browsers and their tools read, and the topmost folder on the way to the site's that has
    no Python in it: all of `web` where the site is web/dist. A change of the page moves no room.
    """
    kept = [path for path in paths if path != FILE_NAME and not path.endswith(_OF_PAGES)]
    if site_dir is not None:
        part = _site_part(kept, site_dir)
        kept = [path for path in kept if not path.startswith(part)]
    return sorted(kept)


def _site_part(paths: Iterable[str], site_dir: str) -> str:
    whole = f"{site_dir}/"
    python = [path for path in paths if path.endswith(".py") and not path.startswith(whole)]
    for folder in reversed([*PurePosixPath(site_dir).parents][:-1]):
        if not any(path.startswith(f"{folder}/") for path in python):
            return f"{folder}/"
    return whole
