"""What waits to go up to one room host process: bounded, and cut into batches.

When it is full the oldest inputs go first: a newer one repeats them or stands for them. Then nothing more
fits, and whoever filled it most is to blame.
"""

from __future__ import annotations

from collections import Counter, deque

from playhall.api.roomhost.v1 import roomhost_pb2 as pb

__all__ = ["BATCH_BYTES", "MAX_BYTES", "Uplink"]

MAX_BYTES = 4 * 1024 * 1024
BATCH_BYTES = 256 * 1024
_OVERHEAD = 16
"""What an item costs beside its payload, about."""


_NOTHING = pb.Up()


class _Item:
    __slots__ = ("dropped", "size", "up")

    def __init__(self, up: pb.Up, size: int) -> None:
        self.up = up
        self.size = size
        self.dropped = False


class Uplink:
    """A queue of things routers say of connections, in order."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max = max_bytes
        self._items: deque[_Item] = deque()
        self._inputs: deque[_Item] = deque()
        self._bytes = 0
        self._tombs = 0
        self.dropped = 0
        """Inputs dropped so far."""

    def __len__(self) -> int:
        return len(self._items) - self._tombs

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return self._bytes

    def push(self, up: pb.Up, *, is_input: bool = False) -> bool:
        """Queue one thing. False: it does not fit even without any input, and was not queued."""
        size = len(up.payload) + _OVERHEAD
        if self._bytes + size > self._max and not self._drop_inputs(size):
            return False
        self._append(_Item(up, size), is_input)
        return True

    def push_control(self, up: pb.Up) -> None:
        """Queue a join or a leave: few, small beside the bound, and never refused."""
        self._append(_Item(up, up.ByteSize() + _OVERHEAD), False)

    def take(self, max_bytes: int = BATCH_BYTES) -> list[pb.Up]:
        """The oldest things, up to `max_bytes`, one at least."""
        ups: list[pb.Up] = []
        taken = 0
        items, inputs = self._items, self._inputs
        while items and (not ups or taken + items[0].size <= max_bytes):
            item = items.popleft()
            if item.dropped:
                self._tombs -= 1
                continue
            if inputs and inputs[0] is item:
                inputs.popleft()
            self._bytes -= item.size
            taken += item.size
            ups.append(item.up)
        return ups

    def worst(self) -> int:
        """The link with the most bytes in here; 0 when it is empty."""
        bytes_by_link: Counter[int] = Counter()
        for item in self._items:
            if not item.dropped:
                bytes_by_link[item.up.link] += item.size
        return bytes_by_link.most_common(1)[0][0] if bytes_by_link else 0

    def _append(self, item: _Item, is_input: bool) -> None:
        self._items.append(item)
        if is_input:
            self._inputs.append(item)
        self._bytes += item.size

    def _drop_inputs(self, needed: int) -> bool:
        while self._inputs and self._bytes + needed > self._max:
            item = self._inputs.popleft()
            item.dropped = True
            item.up = _NOTHING
            self._bytes -= item.size
            self._tombs += 1
            self.dropped += 1
        if self._tombs > len(self._items) // 2:
            self._items = deque(item for item in self._items if not item.dropped)
            self._tombs = 0
        return self._bytes + needed <= self._max
