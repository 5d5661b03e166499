"""The files of a project: which there are, what is in them, and which of them are room code.

Changes are found by looking, a few times a second, and not by the system's notifications: that works on every
file system (containers, network shares), has no limit of watches, and cannot miss what happens while a build
runs. A look is a stat for each file, about 1 ms for a game of 200; contents are read once.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Set
from pathlib import Path, PurePosixPath

from playhall.cli.project import FILE_NAME, ProjectFile

__all__ = ["Files", "Sources", "code_of", "difference", "digest", "files_below", "site_dir_of", "site_of"]

Files = dict[str, str]
"""Digests of contents by path, relative and with slashes."""

_IGNORED = frozenset({"node_modules", "__pycache__"})
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
        self, before: Files, site_dir: str | None, *, without: Set[str], timeout_s: float
    ) -> bool:
        """Wait until files differ from `before`, and then until they rest: a checkout is one change.

        The paths `without` do not count. Gives False after `timeout_s`.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        settle_by: float | None = None
        last = before
        while True:
            wait_s = _LOOK_S if settle_by is None else _SETTLE_S
            # A big project is looked at less often, so that it costs no more than a small one.
            await asyncio.sleep(max(wait_s, self._cost_s / _SHARE))
            now = await asyncio.to_thread(self.look, site_dir)
            if not difference(before, now) - without:
                settle_by = None
                if loop.time() >= deadline:
                    return False
            elif settle_by is None:
                settle_by = loop.time() + _STORM_S
            elif not difference(last, now) - without or loop.time() >= settle_by:
                return True
            last = now


def difference(before: Files, after: Files) -> set[str]:
    """Paths that came, went or have other contents."""
    return {path for path, _ in before.items() ^ after.items()}


def files_below(root: Path, site_dir: str | None = None) -> Iterator[tuple[str, os.stat_result]]:
    """Every regular file below a folder, links followed, in no certain order.

    Not what is hidden, caches, installed packages (node_modules, virtual environments) and editors' backups;
    but the site's folder always, whatever it is called.
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
    return not (name.startswith(".") or name.endswith(("~", ".pyc")) or name in _IGNORED)


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


def code_of(paths: Iterable[str], site_dir: str | None) -> list[str]:
    """The files that room code may need, in order: all but the project file and the site's part.

    The site's part is the topmost folder on the way to the site's that holds no Python. So web/index.html and
    web/src are no code where the site is web/dist, and a change of the page moves no room.
    """
    kept = [path for path in paths if path != FILE_NAME]
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
