"""What values may look like. Each check returns the value, or raises E_INVALID with the field's name."""

from __future__ import annotations

import re

from playhall.engine.codes import ErrorCode
from playhall_common import ids
from playhall_common.errors import ApiError

__all__ = ["invalid", "project_slug", "retention", "room_id", "room_type", "text"]

_RETENTION = re.compile(r"none|forever|([1-9][0-9]{0,3})([hd])")
_MAX_HOURS = 365 * 24


def invalid(field: str, message: str) -> ApiError:
    """The error for a field that cannot be so."""
    return ApiError(ErrorCode.INVALID, f"{field}: {message}", field=field)


def text(field: str, value: str, *, low: int = 0, high: int) -> str:
    """A string of `low` to `high` characters without control characters."""
    if not low <= len(value) <= high:
        raise invalid(field, f"expected {low} to {high} characters, not {len(value)}")
    if not value.isprintable():
        raise invalid(field, "holds characters that cannot be printed")
    return value


def project_slug(field: str, value: str) -> str:
    """See `ids.is_project_slug`."""
    if not ids.is_project_slug(value):
        raise invalid(
            field,
            f"{value!r} is no project slug: 3 to 40 of a-z, 0-9 and single hyphens, "
            "a letter first and no hyphen last",
        )
    return value


def room_id(field: str, value: str) -> str:
    """See `ids.is_room_id`."""
    if not ids.is_room_id(value):
        raise invalid(field, f"{value!r} is no room id: 1 to 64 of A-Z a-z 0-9 _ -")
    return value


def room_type(field: str, value: str) -> str:
    """See `ids.is_room_type`."""
    if not ids.is_room_type(value):
        raise invalid(field, f"{value!r} is no room type: a letter, then up to 63 of A-Z a-z 0-9 _ -")
    return value


def retention(field: str, value: str) -> str:
    """`none`, `forever`, or a number of hours or days up to 365d."""
    match = _RETENTION.fullmatch(value)
    if match is not None and match[1] is None:
        return value
    if match is None or int(match[1]) * (24 if match[2] == "d" else 1) > _MAX_HOURS:
        raise invalid(field, f"{value!r} is no retention: none, <n>h, <n>d up to 365d, or forever")
    return value
