"""What is on the stack of room code: hooks that run, and what is to be done once the outermost has returned.

The part of `hooks` that is in the way of every message and tick. The pure twin of `native.running`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from playhall.engine.timers import Timers
from playhall.engine.watch import Watch

__all__ = ["HookStack"]


class HookStack:
    """Marks and times hooks, and holds what is deferred.

    A hook is `begin`, its code, `end`, what is done with its outcome, `release`. Where it raises what ends
    whoever runs the room (KeyboardInterrupt, GeneratorExit), it is `abandon` instead of the last.
    """

    def __init__(self, timers: Timers | None, watch: Watch | None) -> None:
        self._timers = timers
        self._watch = watch
        self._depth = 0
        self._deferred: deque[tuple[Callable[[], None], bool]] = deque()
        self._pending: dict[int, Any] = {}

    def __len__(self) -> int:
        """How many hooks wait."""
        return len(self._pending)

    def begin(self, hook: str) -> None:
        """A hook is about to run."""
        self._depth += 1
        if self._watch is not None:
            self._watch.enter(hook)
        if self._timers is not None:
            self._timers.enter(hook)

    def end(self) -> None:
        """Its code has returned, or raised."""
        if self._timers is not None:
            self._timers.leave()
        if self._watch is not None:
            self._watch.leave()

    def release(self) -> None:
        """All that came of it is done: what was deferred runs, if it was the outermost."""
        self._depth -= 1
        if not self._depth and self._deferred:
            self._run_deferred()

    def abandon(self) -> None:
        """It ends, and nothing more is done here."""
        self._depth -= 1

    def hold(self) -> None:
        """What is deferred waits for `release`."""
        self._depth += 1

    def __enter__(self) -> None:
        self.hold()

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if kind is None:
            self.release()
        else:
            self.abandon()

    def _run_deferred(self) -> None:
        while not self._depth and self._deferred:
            call, nests = self._deferred.popleft()
            self._depth += not nests
            try:
                call()
            finally:
                self._depth -= not nests
