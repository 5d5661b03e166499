"""The gate before a router's client: sizes and rates of what it sends, checked before anything is decoded.

A bucket of frames holds as many as it gains in a second, so a burst is let through once and the rate holds
over time. That of bytes holds as much as the other buckets let through at once: it is there for those who go
on.

`native/gate.pyx` has the twins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from playhall.engine.packing import UpQueue

__all__ = [
    "CONTROL",
    "FORWARD",
    "TOO_LONG",
    "TOO_MANY",
    "TOO_MUCH",
    "UNKNOWN",
    "Gate",
    "Rules",
    "TokenBucket",
]

_WHOLE = 1.0 - 1e-6
"""Gains are sums of floats: the last bits of what something costs may be missing."""

FORWARD = 0
"""The frame goes on to the room."""
CONTROL = 1
"""The router has to look at the frame."""
UNKNOWN = 2
"""No client sends such a frame."""
TOO_LONG = 3
TOO_MANY = 4
TOO_MUCH = 5


class Rules:
    """What holds for every client. Kinds are the first bytes of frames.

    `limits`: what clients send, and how large it may be. Of these `control` is for the router, `steady` has a
    rate of its own, which a gate is told, and `free` none. Messages are all the others.
    """

    __slots__ = ("bytes_at_once", "bytes_per_s", "control", "free", "limits", "messages_per_s", "steady")

    def __init__(
        self,
        limits: Mapping[int, int],
        *,
        control: Collection[int],
        steady: Collection[int],
        free: Collection[int],
        messages_per_s: float,
        bytes_per_s: float,
        bytes_at_once: float,
    ) -> None:
        self.limits = dict(limits)
        self.control = frozenset(control)
        self.steady = frozenset(steady)
        self.free = frozenset(free)
        self.messages_per_s = messages_per_s
        self.bytes_per_s = bytes_per_s
        self.bytes_at_once = bytes_at_once


class TokenBucket:
    """Lets `rate` tokens a second through, and `at_once` of them in one moment: as many, where not given."""

    __slots__ = ("_at", "_at_once", "_rate", "_tokens")

    def __init__(self, rate: float, now: float, at_once: float | None = None) -> None:
        self._rate = rate
        self._at_once = rate if at_once is None else at_once
        self._tokens = self._at_once
        self._at = now

    def take(self, now: float, cost: float = 1.0) -> bool:
        """Whether something that costs so much may pass."""
        tokens = min(self._at_once, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if tokens < cost * _WHOLE:
            self._tokens = tokens
            return False
        self._tokens = tokens - cost
        return True

    def change_rate(self, rate: float) -> None:
        """Let another number through, a second and at once; what was gained stays gained."""
        self._tokens += max(0.0, rate - self._at_once)
        self._rate = self._at_once = rate


class Gate:
    """One client's. Times are monotonic seconds."""

    __slots__ = ("_bytes", "_messages", "_rules", "_steady", "heard_at", "link", "open", "queue")

    def __init__(self, rules: Rules, steady_per_s: float, now: float) -> None:
        self.open = False
        """The client is in its room: what is no control goes on to it."""
        self.heard_at = now
        """When the client sent its newest frame."""
        self.queue: UpQueue | None = None
        """Where frames go that pass; None: nowhere yet."""
        self.link = 0
        """Whose they are there."""
        self._rules = rules
        self._messages = TokenBucket(rules.messages_per_s, now)
        self._steady = TokenBucket(steady_per_s, now)
        self._bytes = TokenBucket(rules.bytes_per_s, now, rules.bytes_at_once)

    def judge(self, frame: bytes, now: float) -> int:
        """What becomes of a frame: one of this module's numbers."""
        self.heard_at = now
        rules = self._rules
        kind = frame[0] if frame else -1
        limit = rules.limits.get(kind)
        if limit is None:
            return UNKNOWN
        if len(frame) > limit:
            return TOO_LONG
        if kind not in rules.free and not (self._steady if kind in rules.steady else self._messages).take(
            now
        ):
            return TOO_MANY
        if not self._bytes.take(now, len(frame)):
            return TOO_MUCH
        return FORWARD if self.open and kind not in rules.control else CONTROL

    def change_steady(self, per_s: float) -> None:
        """The steady ones have another rate."""
        self._steady.change_rate(per_s)
