"""What waits to go up to one room host process: bounded, and cut into batches.

When it is full the oldest inputs go first: a newer one repeats them or stands for them. Then nothing more
fits, and whoever filled it most is to blame: all of theirs goes, so that others are not closed for it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.backend import UpQueue, UpRun
from playhall.engine.packing import UP_HEADER

__all__ = ["BATCH_BYTES", "MAX_BYTES", "Uplink"]

MAX_BYTES = 4 * 1024 * 1024
BATCH_BYTES = 256 * 1024


class Uplink(UpQueue):
    """A queue of what clients send and routers say of them, in order. Frames lie packed, in runs of at most
    `batch_bytes` each.
    """

    def __init__(
        self,
        max_bytes: int = MAX_BYTES,
        batch_bytes: int = BATCH_BYTES,
        on_first: Callable[[], object] = lambda: None,
    ) -> None:
        """`on_first` is called when something waits and nothing did."""
        super().__init__()
        self._max = max_bytes
        self._batch = batch_bytes
        self._on_first = on_first
        self._items: deque[UpRun | pb.Up] = deque()
        self.dropped = 0
        """Inputs dropped so far."""

    def __len__(self) -> int:
        return sum(item.frames if isinstance(item, UpRun) else 1 for item in self._items)

    def overflow(self, link: int, frame: bytes) -> bool:
        """Queue a frame in another run, or in the place of inputs. False: it does not fit even so."""
        size = UP_HEADER + len(frame)
        if self.size + size > self._max and not self._drop_inputs(size):
            return False
        run = self.run
        if run is None or run.size + size > self._batch:
            run = self.run = UpRun()
            self._append(run)
        run.append(link, frame)
        self.size += size
        self.room = min(self._batch - run.size, self._max - self.size)
        return True

    def push_control(self, up: pb.Up) -> None:
        """Queue a join or a leave: few, small beside the bound, and never refused."""
        self.run = None
        self._append(up)
        self.size += _control_size(up)

    def take(self) -> list[pb.Up]:
        """The oldest things, up to the bytes of a batch, one at least."""
        ups: list[pb.Up] = []
        taken = 0
        while self._items:
            item = self._items[0]
            size = item.size if isinstance(item, UpRun) else _control_size(item)
            if ups and taken + size > self._batch:
                break
            self._items.popleft()
            taken += size
            ups.append(pb.Up(frames=item.take()) if isinstance(item, UpRun) else item)
            if item is self.run:
                self.run = None
        self.size -= taken
        return ups

    def drop_worst(self) -> int:
        """Drop all frames of the link with the most bytes of them in here, and say whose they were; 0: there
        are none.
        """
        bytes_by_link: Counter[int] = Counter()
        for run in self._runs():
            run.weigh(bytes_by_link)
        if not bytes_by_link:
            return 0
        worst = max(bytes_by_link, key=bytes_by_link.__getitem__)
        for run in self._runs():
            before = run.size
            run.drop_link(worst)
            self.size -= before - run.size
        self._forget_empty()
        return worst

    def _append(self, item: UpRun | pb.Up) -> None:
        first = not self._items
        self._items.append(item)
        if first:
            self._on_first()

    def _drop_inputs(self, needed: int) -> bool:
        emptied = False
        for run in self._runs():
            if self.size + needed <= self._max:
                break
            before = run.size
            self.dropped += run.drop_inputs(self.size + needed - self._max)
            self.size -= before - run.size
            emptied = emptied or not run.frames
        if emptied:
            self._forget_empty()
        return self.size + needed <= self._max

    def _runs(self) -> Iterator[UpRun]:
        return (item for item in self._items if isinstance(item, UpRun))

    def _forget_empty(self) -> None:
        self._items = deque(item for item in self._items if isinstance(item, pb.Up) or item.frames)
        if self.run is not None and not self.run.frames:
            self.run = None


def _control_size(up: pb.Up) -> int:
    return up.ByteSize() + UP_HEADER
