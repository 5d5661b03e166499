"""Any value that tests compare, as what pickles, compares by bits and tells of no address."""

from __future__ import annotations

import enum
import re
import struct
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any

from playhall.room import Entity

__all__ = ["plain"]

# Of outputs: what runs differs from one process to the next, and a traceback has the lines of one engine.
_LEFT_OUT = frozenset({"awaitable", "traceback"})
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def plain(value: Any) -> Any:
    """Return the value in tuples, text, bytes and whole numbers; floats by their bits."""
    match value:
        case str() if type(value) is not str and not isinstance(value, enum.Enum):
            found: Any = (type(value).__name__, str.__str__(value))
        case bytes() if type(value) is not bytes:
            found = (type(value).__name__, bytes.__getitem__(value, slice(None)))
        case int() if type(value) not in (int, bool) and not isinstance(value, enum.Enum):
            found = (type(value).__name__, int.__repr__(value))
        case str():
            found = _without_addresses(value)
        case None | bool() | int() | bytes():
            found = value
        case float():
            found = (type(value).__name__, struct.pack("<d", value).hex())
        case bytearray() | memoryview():
            found = bytes(value)
        case enum.Enum():
            found = (type(value).__name__, value.name)
        case BaseException():
            notes = getattr(value, "__notes__", [])
            found = (type(value).__name__, _without_addresses(str(value)), tuple(notes))
        case Entity() | type():
            found = _without_addresses(repr(value))
        case Mapping():
            found = ("mapping", tuple((plain(key), plain(each)) for key, each in value.items()))
        case Set():
            found = ("set", tuple(sorted((plain(each) for each in value), key=repr)))
        case list() | tuple():
            found = tuple(plain(each) for each in value)
        case _ if is_dataclass(value):
            kept = [each.name for each in fields(value) if each.name not in _LEFT_OUT]
            found = (type(value).__name__, *(plain(getattr(value, name)) for name in kept))
        case _ if type(value).__module__ == "numpy":
            found = (value.dtype.str, value.shape, value.tobytes())
        case _:
            found = _without_addresses(repr(value))
    return found


def _without_addresses(text: str) -> str:
    return _ADDRESS.sub("0x", text)
