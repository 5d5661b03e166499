"""Which hook of a room runs now, where another process can read it, and which took too long.

The pure twin of `native.running`.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["HOOK_BYTES", "Watch"]

HOOK_BYTES = 64
"""Bytes of a hook's name on a page, with zeros after it."""
_MAX_NAMES = 10_000


class Watch:
    """The watch over the hooks of one room. They do not nest as far as it goes: it follows the last to begin.

    `page` are HOOK_BYTES bytes, the name of the hook that runs; the first is 0 while none does. `clock` gives
    seconds. A hook that takes more than `slow_s` is `slow`: its name, when it began, and how long it took.
    """

    def __init__(self, page: memoryview, slow_s: float, clock: Callable[[], float]) -> None:
        self._page = page
        self._slow_s = slow_s
        self._clock = clock
        self._marks: dict[str, bytes] = {}
        self._hook = ""
        self._began = 0.0
        self.slow = ("", 0.0, 0.0)

    def enter(self, hook: str) -> None:
        """A hook, or call, begins."""
        marks = self._marks.get(hook)
        if marks is None:
            marks = hook.encode(errors="replace")[:HOOK_BYTES].ljust(HOOK_BYTES, b"\0")
            if len(self._marks) < _MAX_NAMES:
                self._marks[hook] = marks
        self._page[:] = marks
        self._hook, self._began = hook, self._clock()

    def leave(self) -> None:
        """It has returned."""
        self._page[0] = 0
        took = self._clock() - self._began
        if took > self._slow_s:
            self.slow = (self._hook, self._began, took)

    def past(self, moment: float) -> bool:
        """Whether a moment has come, by the clock."""
        return self._clock() >= moment
