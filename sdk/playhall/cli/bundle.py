"""Bundles: room code and site as they were at one moment, in folders named by the hash of what is in them.

A build must not change under the rooms that run it, so it is copied out of the folder that is being edited:
`<builds>/code/<hash>/<package>/...` and `<builds>/site/<hash>/...`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from playhall.cli.sources import Files

__all__ = ["copy_code", "copy_site", "original_paths", "prune", "sweep"]

CODE, SITE = "code", "site"
_KEPT = 10
_CHUNK = 1 << 20
_TRACEBACK = "Traceback (most recent call last):\n"


def copy_code(files: Files, root: Path, builds: Path, package: str) -> Path:
    """Copy room code as a package; gives the folder to import it from. Raises OSError."""
    target = _copy_files(files, root, builds / CODE, below=package)
    (target / package / "__init__.py").touch()
    return target


def copy_site(files: Files, root: Path, builds: Path, site_dir: str) -> Path:
    """Copy a built site; gives the folder to serve. Raises OSError."""
    return _copy_files(files, root, builds / SITE, remove_prefix=f"{site_dir}/")


def prune(builds: Path) -> None:
    """Remove all but the ten copies of each used last; older processes have imported what they need."""
    for store in (builds / CODE, builds / SITE):
        folders = sorted(store.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in folders[_KEPT:]:
            shutil.rmtree(path, ignore_errors=True)


def sweep(builds: Path) -> None:
    """Make the stores, without what a copy that was interrupted left behind."""
    for store in (builds / CODE, builds / SITE):
        store.mkdir(parents=True, exist_ok=True)
        for path in store.glob(".*"):
            shutil.rmtree(path, ignore_errors=True)


def original_paths(text: str, *, builds: Path, package: str, root: Path) -> str:
    """A traceback as its author reads it: with the files that were copied, from the first of them on."""
    copy = re.escape(f"{builds / CODE}/") + r"[0-9a-f]{16}/" + re.escape(f"{package}/")
    text = re.sub(copy, lambda _: f"{root}/", text)
    head, found, rest = text.partition(_TRACEBACK)
    own = f'  File "{root}/'
    if not found or _TRACEBACK in rest or own not in rest:
        return text
    return f"{head}{found}{rest[rest.index(own) :]}"


def _copy_files(files: Files, root: Path, store: Path, *, below: str = "", remove_prefix: str = "") -> Path:
    """Copy files of `root` into a folder of `store`, unless it is there, and return that.

    `files` are as they were last seen; one that has changed since is copied as it is now, one that is gone
    is left out. They come to stand in the folder `below` instead of in `remove_prefix`. Raises OSError.
    """
    places = {path: _join(below, path.removeprefix(remove_prefix)) for path in files}
    target = store / _hash({places[path]: content for path, content in files.items()})
    if not target.exists():
        staging = store / f".{uuid.uuid4().hex}"
        try:
            (staging / below).mkdir(parents=True)
            copied = {places[path]: _copy(root / path, staging / places[path]) for path in files}
            target = store / _hash({path: content for path, content in copied.items() if content})
            if not target.exists():
                staging.rename(target)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    os.utime(target)  # prune goes by it
    return target


def _join(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path


def _copy(source: Path, target: Path) -> str | None:
    """Copy a file and give the digest of what was copied; None where it is gone."""
    whole = hashlib.sha256()
    try:
        reading = source.open("rb", buffering=0)
    except FileNotFoundError:
        return None
    with reading:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as writing:
            while data := reading.read(_CHUNK):
                writing.write(data)
                whole.update(data)
    return whole.hexdigest()


def _hash(contents: Mapping[str, str | None]) -> str:
    whole = hashlib.sha256()
    for path in sorted(contents):
        whole.update(f"{len(path)} {path} {contents[path]} ".encode())
    return whole.hexdigest()[:16]
