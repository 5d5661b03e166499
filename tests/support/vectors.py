"""Loads the vectors, and says values as they do."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "protocol" / "vectors"


def load(name: str) -> dict[str, Any]:
    """The whole file."""
    document: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return document


def params(name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Vectors and their ids, for parametrize."""
    vectors = load(name)["vectors"]
    return vectors, [vector["id"] for vector in vectors]


def said(value: Any) -> Any:
    """A decoded value as the vectors write it."""
    if isinstance(value, bytes):
        return {"$hex": value.hex()}
    if isinstance(value, float):
        if math.isnan(value):
            return {"$float": "nan"}
        if math.isinf(value):
            return {"$float": "inf" if value > 0 else "-inf"}
        if value == 0 and math.copysign(1, value) < 0:
            return {"$float": "-0"}
    return value


def same(a: Any, b: Any) -> bool:
    """Equal, and a bool is no number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return bool(a == b)
