"""Bundles: a project's room code and site as they were at one moment, in a folder named by their hash.

A build must not change under the rooms that run it, so the code is copied out of the folder that is being
edited: `<builds>/<hash>/code/<package>/...` and `<builds>/<hash>/site/...`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playhall.cli.project import ProjectFile

__all__ = ["Bundle", "make_bundle", "prune"]

_NOT_CODE = frozenset({"node_modules", "__pycache__"})
_KEPT = 10


@dataclass(frozen=True)
class Bundle:
    """What was copied. `hash` is that of code and site, `code_hash` of the code alone, both hexadecimal."""

    hash: str
    code_hash: str
    code: Path
    site: Path | None


def make_bundle(project: ProjectFile, builds: Path) -> Bundle:
    """Copy the project's code and built site below `builds`, unless they are there. Raises OSError."""
    code = dict(_code_files(project))
    site_dir = project.root / project.site.dir if project.site else None
    site = dict(_files(site_dir)) if site_dir else {}
    code_hash = _hash(code)
    whole = hashlib.sha256(f"{code_hash} {_hash(site)} {project.package}".encode()).hexdigest()[:16]
    target = builds / whole
    if not target.exists():
        builds.mkdir(parents=True, exist_ok=True)
        staging = builds / f".{whole}-{uuid.uuid4().hex[:8]}"
        _write(code, staging / "code" / project.package)
        (staging / "code" / project.package / "__init__.py").touch()
        if site_dir:
            _write(site, staging / "site")
        os.replace(staging, target)
    return Bundle(whole, code_hash, target / "code", target / "site" if site_dir else None)


def prune(builds: Path, keep: Bundle) -> None:
    """Remove all but the newest bundles; processes of older builds have imported what they need."""
    bundles = [path for path in builds.iterdir() if path.is_dir()]
    bundles.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in bundles[_KEPT:]:
        if path.name != keep.hash:
            shutil.rmtree(path, ignore_errors=True)


def _code_files(project: ProjectFile) -> Iterator[tuple[str, bytes]]:
    """Everything below the project's folder but the site's folder, hidden folders and caches."""
    site_top = Path(project.site.dir).parts[0] if project.site else None
    for top in sorted(project.root.iterdir()):
        if top.name.startswith(".") or top.name in _NOT_CODE or top.name == site_top:
            continue
        if top.is_dir():
            yield from ((f"{top.name}/{name}", data) for name, data in _files(top))
        elif top.is_file():
            yield top.name, top.read_bytes()


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in _NOT_CODE and not f.startswith("."))
        for name in sorted(names):
            path = Path(where, name)
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path.read_bytes()


def _hash(files: dict[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{len(name)} {name} {len(files[name])} ".encode())
        whole.update(files[name])
    return whole.hexdigest()[:16]


def _write(files: dict[str, bytes], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
