"""The object store: immutable names, whole contents.

    ObjectStore          the interface; calls block, and come from threads
    DirectoryObjects     a directory, one file for each object

A name has one logical content (A4). Putting it again writes the same thing; a reader sees one or the other
whole. What is put is on disk when `put` returns.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Protocol

__all__ = ["DirectoryObjects", "ObjectStore"]

_TEMPORARY = ".put-"


class ObjectStore(Protocol):
    """Names are relative paths of letters, digits and - _ / only. Failures raise OSError."""

    def put(self, name: str, data: bytes) -> None:
        """Durable when it returns."""

    def get(self, name: str) -> bytes | None:
        """None: there is no such object."""

    def list(self, prefix: str) -> list[str]:
        """Names under a folder (`prefix` ends with /), in order."""

    def delete(self, name: str) -> None:
        """Idempotent."""


class DirectoryObjects:
    """Objects as files. A file appears under its name only when all of it is on disk."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True)

    def put(self, name: str, data: bytes) -> None:
        path = self._path(name)
        self._make_folder(path.parent)
        temporary = path.parent / f"{_TEMPORARY}{secrets.token_hex(8)}"
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)

    def get(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def list(self, prefix: str) -> list[str]:
        folder = self._path(prefix)
        if not folder.is_dir():
            return []
        files = (
            path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(_TEMPORARY)
        )
        return sorted(path.relative_to(self._root).as_posix() for path in files)

    def delete(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        parts = name.rstrip("/").split("/")
        if not all(part and not part.startswith(".") for part in parts):
            raise ValueError(f"{name!r} is no name of an object")
        return self._root.joinpath(*parts)

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
