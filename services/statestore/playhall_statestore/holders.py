"""Which room hosts are heard. Only this decides that an owner is dead.

A host is heard while its Write stream is open (or was until 250 ms ago) and a heartbeat came within 6 s. A
room whose holder has not opened a stream since the grant, or since the shard started, has a grace of 6 s.
Times are monotonic seconds; `heard_until` is the one number everything else follows from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from playhall_statestore.model import Now

__all__ = ["Holders", "Timing"]


@dataclass(frozen=True, slots=True)
class Timing:
    """The waits that decide; tests that are about something else shorten them."""

    silence_s: float = 6.0
    broken_s: float = 0.25
    crash_s: float = 60.0
    away_s: float = 2.0
    """A gap in the shard's own time that is its own pause, not silence of hosts."""


@dataclass(slots=True)
class _Link:
    stream: int | None
    beat: Now
    closed_at: float | None = None
    unread: bool = False
    """The shard itself does not read the stream now, so that silence means nothing."""


class Holders:
    """Links of hosts, and graces of rooms."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._links: dict[str, _Link] = {}
        self._grace: dict[str, float] = {}
        self._seen: float | None = None

    def opened(self, host_id: str, stream: int, now: Now) -> int | None:
        """A Write stream said hello. Gives the one it takes the place of."""
        old = self._links.get(host_id)
        self._links[host_id] = _Link(stream, now)
        return old.stream if old is not None else None

    def beat(self, host_id: str, stream: int, now: Now) -> None:
        link = self._links.get(host_id)
        if link is not None and link.stream == stream:
            link.beat = now

    def reading(self, host_id: str, stream: int, reads: bool, now: Now) -> None:
        """The shard stops or goes on reading a stream, because of its own bound."""
        link = self._links.get(host_id)
        if link is not None and link.stream == stream:
            link.unread = not reads
            link.beat = now

    def closed(self, host_id: str, stream: int, now: Now) -> None:
        link = self._links.get(host_id)
        if link is not None and link.stream == stream:
            link.stream = None
            link.unread = False
            link.closed_at = now.mono

    def forget(self, host_id: str) -> None:
        """A host that holds nothing and has no stream needs no link."""
        link = self._links.get(host_id)
        if link is not None and link.stream is None:
            del self._links[host_id]

    def granted(self, uid: str, host_id: str, now: Now) -> None:
        """A grant without a stream to hear it by counts as heard for a while."""
        link = self._links.get(host_id)
        if link is None or link.stream is None:
            self._grace[uid] = now.mono + self._timing.silence_s
        else:
            self.settled(uid)

    def settled(self, uid: str) -> None:
        """The grace of a room ends: its holder has a stream, or it has no holder."""
        self._grace.pop(uid, None)

    def host_heard_until(self, host_id: str) -> float:
        link = self._links.get(host_id)
        if link is None:
            return -math.inf
        if link.unread:
            return math.inf
        until = link.beat.mono + self._timing.silence_s
        return until if link.closed_at is None else min(until, link.closed_at + self._timing.broken_s)

    def heard_until(self, uid: str, host_id: str) -> float:
        return max(self.host_heard_until(host_id), self._grace.get(uid, -math.inf))

    def last_word_ms(self, host_id: str) -> int:
        """Wall time of the last heartbeat; 0 if there was none since the shard started."""
        link = self._links.get(host_id)
        return 0 if link is None else link.beat.wall_ms

    def passed(self, now: Now) -> None:
        """Call at every turn of the clock. A pause of the shard itself must not make hosts look silent."""
        gap = 0.0 if self._seen is None else now.mono - self._seen
        seen, self._seen = self._seen, now.mono
        if seen is None or gap <= self._timing.away_s:
            return
        for host_id, link in self._links.items():
            if link.closed_at is None and seen < self.host_heard_until(host_id):
                link.beat = Now(now.mono, link.beat.wall_ms)
        self._grace = {uid: until + gap for uid, until in self._grace.items()}

    def graced(self) -> list[str]:
        return list(self._grace)
