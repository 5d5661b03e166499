"""Answers of room code that wait: for what came before them to be safe, and to be known.

An answer may tell of anything that has changed in the room before it. So it leaves when all of that is
durable, and when its own connection has been sent the update that holds it; at once when both are so already.
Neither is known of a change before the flush that gives it a version, so an answer given after a change waits
for the next flush first, and then for what that flush was.

Answers to one connection leave in the order in which they were given, as do those to nobody's (requests).
What waits is bounded by whoever asks: there are only so many unanswered calls and requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from playhall.engine.links import Link, LinkState

__all__ = ["Answers", "Moment"]


@dataclass(frozen=True, slots=True)
class Moment:
    """What has to be done before an answer leaves: a version to be sent, and a record to be durable."""

    version: int
    record: int


@dataclass(slots=True)
class _Answer:
    number: int
    deliver: Callable[[], None]
    after: Moment | None


class Answers:
    """The answers of one room that wait."""

    def __init__(self) -> None:
        self.waiting: dict[Link | None, deque[_Answer]] = {}
        """Those that wait, by link."""
        self.count = 0
        """How many there have been."""

    def held(self, count: int) -> bool:
        """Whether one of the first `count` answers waits that somebody is still there to get."""
        return any(
            answers[0].number < count and (link is None or link.state is not LinkState.GONE)
            for link, answers in self.waiting.items()
            if answers
        )

    def add(self, link: Link | None, deliver: Callable[[], None], after: Moment | None) -> None:
        """Keep an answer until `release` finds that it may leave.

        It waits for the moment `after`; None: for what the next flush turns out to be.
        """
        self.waiting.setdefault(link, deque()).append(_Answer(self.count, deliver, after))
        self.count += 1

    def flushed(self, moment: Moment) -> None:
        """There was a flush: what waited for one waits for this moment now."""
        for answers in self.waiting.values():
            for answer in reversed(answers):
                if answer.after is not None:
                    break
                answer.after = moment

    def release(self, durable: int) -> None:
        """Deliver all that may leave. Those of connections that have gone are given up, by `deliver` too."""
        for link, answers in list(self.waiting.items()):
            while answers and _may_leave(link, answers[0].after, durable):
                answers.popleft().deliver()
            if not answers and self.waiting.get(link) is answers:
                del self.waiting[link]


def _may_leave(link: Link | None, after: Moment | None, durable: int) -> bool:
    if link is not None and link.state is LinkState.GONE:
        return True
    if after is None or durable < after.record:
        return False
    return link is None or link.view.version >= after.version
