"""When to come back after a connection was lost, or could not be made.

The rules are those of docs/protocol/flow.md, Close. Every wait is drawn from its whole interval, so that
the clients of a server that died do not come back in step, however long they have been trying.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from playhall.engine.codes import CloseCode, Reconnect

__all__ = ["Backoff", "reconnect_rule", "split_reason"]

FIRST_S = 0.25
CAP_S = 10.0
HURRY_S = 0.25
STABLE_S = 10.0

_RETRY_AFTER = re.compile(r"retry-after=([0-9]{1,12});(.*)", re.DOTALL)


def reconnect_rule(code: int) -> Reconnect:
    """Whether and when a client comes back after a close with `code`; unknown codes back off."""
    try:
        return CloseCode(code).reconnect
    except ValueError:
        return Reconnect.BACKOFF


def split_reason(reason: str) -> tuple[float, str]:
    """Return the seconds of a close reason's retry-after (0 if it has none), and its text for people."""
    match = _RETRY_AFTER.fullmatch(reason)
    if match is None:
        return 0.0, reason
    return int(match[1]) / 1000, match[2]


class Backoff:
    """Draws the waits between attempts. `rng` returns numbers from 0 up to 1."""

    def __init__(self, rng: Callable[[], float]) -> None:
        self._rng = rng
        self._failures = 0
        self._hurried = False
        self._connected_at: float | None = None

    def connected(self, now: float) -> None:
        """The client is in the room."""
        if self._connected_at is None:
            self._connected_at = now

    def wait(self, rule: Reconnect, retry_after_s: float, now: float) -> float:
        """Return the seconds to wait after a connection ended by `rule`, which allows coming back."""
        if self._connected_at is not None and now - self._connected_at >= STABLE_S:
            self._failures = 0
            self._hurried = False
        self._connected_at = None
        return retry_after_s + self._rng() * self._interval(rule)

    def _interval(self, rule: Reconnect) -> float:
        if rule is Reconnect.NOW and not self._hurried:
            self._hurried = True
            return HURRY_S
        # Two to the sixth of the first wait is past the cap: no need for numbers that grow for ever.
        interval = min(CAP_S, FIRST_S * 2.0 ** min(self._failures, 6))
        self._failures += 1
        return interval
