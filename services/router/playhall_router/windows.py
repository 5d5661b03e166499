"""How often one address may do what costs others: come as a new guest, create a room.

Counted in windows of a minute, in this process; the count that routers share lies in Valkey
(`redis_hints.py`), and may be lost. Memory is bounded: with too many addresses in one window the ones counted
first are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict

__all__ = ["WINDOW_S", "Windows"]

WINDOW_S = 60
_MAX_KEYS = 50_000


class Windows:
    """Counts per key in the current window."""

    def __init__(self, max_keys: int = _MAX_KEYS) -> None:
        self._max = max_keys
        self._window = -1
        self._counts: OrderedDict[str, int] = OrderedDict()

    def count(self, key: str, now_s: float) -> int:
        """Count one more; gives how many it were in this window."""
        window = int(now_s // WINDOW_S)
        if window != self._window:
            self._window = window
            self._counts.clear()
        count = self._counts.get(key, 0) + 1
        self._counts[key] = count
        while len(self._counts) > self._max:
            self._counts.popitem(last=False)
        return count
