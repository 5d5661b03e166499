"""Loading a build: its directory goes to the head of sys.path, and its room classes are imported.

A process loads one build in its life, so that modules of two builds never meet, whatever their names.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from playhall.engine.room import Room

__all__ = ["BuildError", "LoadedBuild", "load_build"]

_TRACE_FRAMES = 5


class BuildError(Exception):
    """The build cannot be loaded; the text says why, for its author."""


@dataclass(frozen=True)
class LoadedBuild:
    """Room classes by the name of their type."""

    rooms: Mapping[str, type[Room[Any, Any, Any]]]


def load_build(location: str, entries: Mapping[str, str]) -> LoadedBuild:
    """Import the room types of a build. `entries` are "module:Class" by type. Raises BuildError."""
    directory = _directory(location)
    if not entries:
        raise BuildError("the build has no room types")
    sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    return LoadedBuild({name: _room_class(name, entry) for name, entry in entries.items()})


def _directory(location: str) -> Path:
    url = urlparse(location)
    if url.scheme != "file" or url.netloc not in ("", "localhost"):
        raise BuildError(f"{location!r} is no file: URL of this machine")
    directory = Path(unquote(url.path))
    if not directory.is_absolute() or not directory.is_dir():
        raise BuildError(f"{location!r} is no directory")
    return directory


def _room_class(name: str, entry: str) -> type[Room[Any, Any, Any]]:
    module_name, colon, class_name = entry.partition(":")
    if not (colon and module_name and class_name):
        raise BuildError(f"room type {name!r}: {entry!r} is not module:Class")
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:  # room code may raise anything at import, SystemExit too
        raise BuildError(
            f"room type {name!r}: {module_name} cannot be imported: {_in_a_line(error)}\n{_trace(error)}"
        ) from error
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, Room)):
        raise BuildError(f"room type {name!r}: {entry!r} is no class derived from playhall.room.Room")
    return found


def _in_a_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()


def _trace(error: BaseException) -> str:
    """Where in the author's code it happened; the frames of the import itself say nothing."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    return "".join(traceback.format_list(frames[-_TRACE_FRAMES:])).rstrip()
