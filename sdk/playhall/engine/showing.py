"""Values as the inspector shows them: strict JSON that says what JSON cannot, and bounded in size.

NaN and infinities     "NaN", "Infinity", "-Infinity"
bytes                  {"bytes": how many, "hex": the first 32 of them}
what is too long       {"cut": its beginning, "size": its length in characters}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from playhall.engine import jsontext
from playhall.engine.fields import FieldType, JsonValue

__all__ = ["MAX_TEXT", "cut", "listed", "show_content", "show_field", "show_json", "show_sized"]

T = TypeVar("T")

MAX_TEXT = 1_000
"""Characters of a text, and of JSON as text, that are shown whole."""
_MAX_HEX = 32
_LEAST = 200
"""Bytes that a thing in a list is taken to have at least."""


def cut(text: str) -> Any:
    """Show a text, or the beginning of a long one."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= MAX_TEXT else {"cut": text[:MAX_TEXT], "size": len(text)}


def show_field(type: FieldType, stored: Any) -> Any:
    """Show the stored value of a field."""
    if isinstance(stored, JsonValue):
        return show_json(stored.data)
    return _show_plain(type.load(stored))


def show_content(value: object) -> Any:
    """Show what is JSON or bytes; what turns out to be neither, as Python prints it."""
    return show_sized(value)[0]


def show_sized(value: object) -> tuple[Any, int]:
    """Do so, and return how long it is: in bytes, or in characters of what Python prints."""
    if isinstance(value, bytes | bytearray | memoryview):
        return _show_plain(bytes(value)), len(value)
    try:
        data = jsontext.encode(value)
    except (TypeError, ValueError):
        text = repr(value)
        return cut(text), len(text)
    return show_json(data), len(data)


def show_json(data: bytes) -> Any:
    """Show a JSON text, or the beginning of a long one."""
    return jsontext.decode(data) if len(data) <= MAX_TEXT else cut(data.decode())


def listed(things: Iterable[T], show: Callable[[T], Any], *, most: int, most_bytes: int) -> list[Any]:
    """Show things, as far as there is room for them: the first one at least."""
    shown: list[Any] = []
    left = most_bytes
    for thing in things:
        if len(shown) == most or left <= 0:
            break
        shown.append(show(thing))
        left -= max(_LEAST, len(msgspec.json.encode(shown[-1])))
    return shown


def _show_plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return {"bytes": len(value), "hex": value[:_MAX_HEX].hex()}
    return cut(value) if isinstance(value, str) else value
