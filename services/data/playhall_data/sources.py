"""The clock and the randomness of the process, in one place; everything below takes them as arguments."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["SYSTEM", "Sources"]


@dataclass(frozen=True, slots=True)
class Sources:
    """`now_ms()` in milliseconds since 1970, and `rng(n)`: n random bytes fit for secrets."""

    now_ms: Callable[[], int]
    rng: Callable[[int], bytes]


SYSTEM = Sources(now_ms=lambda: time.time_ns() // 1_000_000, rng=secrets.token_bytes)
