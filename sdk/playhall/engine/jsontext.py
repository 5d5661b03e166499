"""JSON as Playhall sends and keeps it: what a browser's JSON.parse reads back as the same value.

Both ways are stricter than JSON where languages differ: no NaN, no infinities, no integer beyond 2^53 - 1
(which a browser would change), no lone surrogate, nesting of at most 512. What comes out of `decode` can be
given to `encode`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["MAX_DEPTH", "MAX_SAFE_INT", "decode", "encode", "is_too_deep", "read", "same"]

MAX_DEPTH = 512
MAX_SAFE_INT = 2**53 - 1

_SCALARS = frozenset((type(None), bool, str))
_LONG_DIGITS = re.compile(rb"(?<![0-9.])[0-9]{16}")  # digits behind a point may be as many as there are


def encode(value: object) -> bytes:
    """Return the JSON text of a value, in UTF-8.

    Raises TypeError where a part is not JSON, and ValueError where JSON cannot carry it.
    """
    _check(value, 0)
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        raise ValueError("text with a lone surrogate is not Unicode") from None


def decode(data: bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError."""
    try:
        value = _DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not JSON: {error}") from None
    except (RecursionError, UnicodeDecodeError):
        raise ValueError("not JSON: nested too deep, or not UTF-8") from None
    # A walk in Python costs far more than the decoding, so it is made only for what could be out of bounds.
    if _LONG_DIGITS.search(data) or data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        _check(value, 0)
    return value


def is_too_deep(value: object) -> bool:
    """Whether a decoded JSON value is nested over MAX_DEPTH deep.

    For JSON that need not suit browsers. How deep a decoder goes differs between versions of Python.
    """
    layer = _containers([value])
    for _ in range(MAX_DEPTH):
        if not layer:
            return False
        layer = [inner for each in layer for inner in _containers(each)]
    return bool(layer)


def _containers(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, dict) else value
    return [item for item in items if isinstance(item, dict | list)]


def same(a: object, b: object) -> bool:
    """Whether two JSON values are structurally equal: key order does not matter, and a bool is no number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, Mapping):
        return (
            isinstance(b, Mapping)
            and len(a) == len(b)
            and all(key in b and same(value, b[key]) for key, value in a.items())
        )
    if isinstance(a, Sequence) and not isinstance(a, str):
        return (
            isinstance(b, Sequence) and not isinstance(b, str) and len(a) == len(b) and all(map(same, a, b))
        )
    return a == b


def _check(value: object, depth: int) -> None:
    kind = type(value)
    if kind in _SCALARS:
        return
    if isinstance(value, int):
        if not -MAX_SAFE_INT <= value <= MAX_SAFE_INT:
            raise ValueError(f"{value} is beyond 2^53 - 1, and a browser would change it")
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"{value} is not JSON")
    elif isinstance(value, str):
        return
    elif depth == MAX_DEPTH:
        raise ValueError(f"nested over {MAX_DEPTH} deep")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"a key of an object must be str, not {type(key).__name__}")
            _check(item, depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        for item in value:
            _check(item, depth + 1)
    else:
        raise TypeError(f"{kind.__name__} is not JSON")


def _plain(value: object) -> object:
    """Turn what `_check` lets through and msgspec does not know into what it does."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
_DECODER = msgspec.json.Decoder()
read: Callable[[bytes], Any] = _DECODER.decode
"""Read JSON that needs no more checks than the reader's own; raises whatever that does."""
