"""Of the stack of a process that is stuck, what the author of its room looks for.

The text is faulthandler's: a paragraph for each thread, the loop's last, with the innermost frame first. The
process may have written anything into it; what is in no such form stays as it is.
"""

from __future__ import annotations

import os.path
import re

import playhall
import playhall_roomhost

__all__ = ["room_stack"]

_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)')
_ROOM_HOST = os.path.join(os.path.dirname(os.path.abspath(playhall_roomhost.__file__)), "")
_SDK = os.path.join(os.path.dirname(os.path.abspath(playhall.__file__)), "")


def room_stack(dump: str) -> str:
    """Return the frames of the loop's thread from the room's first on, as a traceback shows them; the dump
    where there are none."""
    threads = dump.strip().split("\n\n")
    frames = [found for line in threads[-1].splitlines() if (found := _FRAME.fullmatch(line))]
    frames.reverse()
    files = [frame["file"] for frame in frames]
    hosts = [index for index, file in enumerate(files) if file.startswith(_ROOM_HOST)]
    engine = _first(files, hosts[-1] if hosts else 0, is_sdk=True)
    room = None if engine is None else _first(files, engine, is_sdk=False)
    if room is None:
        return dump
    shown = [f'  File "{frame["file"]}", line {frame["line"]}, in {frame["name"]}' for frame in frames[room:]]
    return "\n".join(["Stack (most recent call last):", *shown])


def _first(files: list[str], start: int, *, is_sdk: bool) -> int | None:
    found = (index for index in range(start, len(files)) if files[index].startswith(_SDK) is is_sdk)
    return next(found, None)
