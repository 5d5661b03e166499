"""A circuit breaker: after a few failures in a row, nothing is tried for a while."""

from __future__ import annotations

__all__ = ["Breaker"]


class Breaker:
    """Opens after `failures` in a row, for `open_s`; then one failure is enough to open it again."""

    def __init__(self, *, failures: int = 3, open_s: float = 5.0) -> None:
        self._limit = failures
        self._open_s = open_s
        self._failures = 0
        self._open_until = 0.0

    def allows(self, now: float) -> bool:
        """Whether it is worth a try."""
        return now >= self._open_until

    def worked(self) -> None:
        """A try succeeded."""
        self._failures = 0

    def failed(self, now: float) -> bool:
        """A try failed. Whether this opened the breaker."""
        self._failures += 1
        if self._failures < self._limit:
            return False
        self._open_until = now + self._open_s
        return True
