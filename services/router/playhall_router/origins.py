"""Which pages a project lets in, by the Origin that browsers send."""

from __future__ import annotations

from collections.abc import Set
from urllib.parse import urlsplit

__all__ = ["is_allowed"]


def is_allowed(origin: str, allowed: Set[str]) -> bool:
    """Whether an origin is named: whole (`https://game.example`), or by its host. What is no origin is
    not."""
    return origin in allowed or _host(origin) in allowed


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None
