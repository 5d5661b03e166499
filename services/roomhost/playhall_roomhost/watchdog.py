"""When a process counts as stuck: its loop has not turned for `stuck_s`.

A sans-IO core: it is shown the beats and the time. A gap in the supervisor's own time (the machine slept,
or was busy) says nothing about the processes, and starts the waits anew.
"""

from __future__ import annotations

__all__ = ["Watchdog"]

_OWN_GAP_S = 1.5


class Watchdog:
    """Watches processes, by a key of the caller's."""

    def __init__(self, stuck_s: float) -> None:
        self._stuck_s = stuck_s
        self._seen: dict[str, tuple[int, float]] = {}
        self._looked_at: float | None = None

    def watch(self, key: str, beats: int, now: float) -> None:
        """From now on expect beats."""
        self._seen[key] = (beats, now)

    def forget(self, key: str) -> None:
        """No longer expect any."""
        self._seen.pop(key, None)

    def look(self, beats: dict[str, int], now: float) -> list[str]:
        """Which of them are stuck; each is named once and then forgotten. Call at least every second."""
        gap = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        stuck = []
        for key, count in beats.items():
            if key not in self._seen:
                continue
            last, since = self._seen[key]
            if count != last or gap > _OWN_GAP_S:
                self._seen[key] = (count, now)
            elif now - since >= self._stuck_s:
                stuck.append(key)
                del self._seen[key]
        return stuck
