"""Saving a room: what has changed gets a version, and a record or base of it is written; and loading one.

What is saved is spread over several books (tracked entities, private state's retention, ids, bots, bans).
Each knows what of it was not written yet; here they are asked together.
"""

from __future__ import annotations

from collections.abc import Mapping

from playhall.engine.answers import Moment
from playhall.engine.backend import Flush
from playhall.engine.bans import Bans
from playhall.engine.botbook import BotBook
from playhall.engine.journal import MAX_SIZE, Journal
from playhall.engine.outputs import StoredRoom, WakeInfo
from playhall.engine.runtime import Runtime
from playhall.engine.statelog import SavedRoom, Totals, read, write_base, write_record

__all__ = ["Saving", "load"]

_NOBODY: Mapping[str, float | None] = {}


class Saving:
    """Gives versions to what changes in one room, and writes records and bases of it.

    All that writes raises RoomTooLargeError where the room's state has passed its limit, and FieldError where
    a column holds what does not fit. Either is the end of the room.
    """

    __slots__ = ("_bans", "_bots", "_next_id_written", "_runtime", "journal")

    def __init__(self, runtime: Runtime, bots: BotBook, bans: Bans) -> None:
        self._runtime = runtime
        self._bots = bots
        self._bans = bans
        self._next_id_written = runtime.store.next_id
        self.journal = Journal(runtime.emit, self._all)

    @property
    def dirty(self) -> bool:
        """Whether anything has changed since the last flush, so that the next has a version of its own."""
        runtime = self._runtime
        return (
            runtime.tracker.dirty
            or bool(runtime.retention.changed)
            or runtime.store.next_id != self._next_id_written
            or self._bans.dirty
            or self._bots.dirty
        )

    @property
    def last_moment(self) -> Moment:
        """When what was flushed last is told and saved."""
        return Moment(self._runtime.version, self.journal.last)

    def next_moment(self) -> Moment | None:
        """When all that has changed so far is told and saved. None: not known before the next flush."""
        return None if self.dirty else self.last_moment

    def flush(self, *, force: bool = False) -> Flush | None:
        """Give what has changed a version, and write a record of it. None: nothing has changed.

        With `force` there is a version and a record all the same.
        """
        runtime, journal, retention = self._runtime, self.journal, self._runtime.retention
        next_id = runtime.store.next_id
        moved, self._next_id_written = next_id != self._next_id_written, next_id
        bots = None if self._bots.idle else self._bots.take_changed()
        bans = self._bans.take_changed() if self._bans.dirty else None
        others = force or moved or bots is not None or bans is not None or bool(retention.changed)
        if not (others or runtime.tracker.dirty):
            return None
        runtime.version += 1
        flush = runtime.tracker.flush(runtime.version)
        seen = retention.take_changed() if retention.changed else _NOBODY
        record = write_record(flush, Totals(runtime.tick, next_id, seen, moved, bots, bans))
        if record is not None or force:
            journal.write(record or b"", runtime.version, runtime.tick, runtime.now.mono)
            if journal.large and not journal.warned:
                journal.warned = True
                runtime.warn("room.large", size=journal.size, limit=MAX_SIZE)
        return flush

    def write_base(self) -> None:
        """Write a base. It says that it is all up to its version: everything has to be flushed."""
        self.journal.base(self._runtime.version, self._runtime.tick, self._runtime.now.mono)

    def write_last_base(self) -> None:
        """Write all there is, under a version of its own; no client is told of it."""
        self._runtime.version += 1
        self._runtime.tracker.flush(self._runtime.version)
        self._runtime.retention.take_changed()
        self.write_base()

    def _all(self) -> bytes:
        runtime = self._runtime
        totals = Totals(
            runtime.tick,
            runtime.store.next_id,
            runtime.retention.all(),
            bots=self._bots.all(),
            bans=self._bans.all(),
        )
        return write_base(runtime.schema, totals, runtime.store.tracked())


def load(runtime: Runtime, stored: StoredRoom, wake: WakeInfo) -> SavedRoom:
    """Put what is stored of entities and private states back, and return all of it.

    Raises LayoutError or DamagedStateError.
    """
    saved = read(stored, runtime.schema)
    store = runtime.store
    runtime.tick = max(saved.tick, wake.tick)
    store.next_id = saved.next_id
    store.make_state(saved.state)
    for entity in saved.entities:
        store.restore(entity.cls, entity.id, entity.owner, entity.values)
    bots = {bot.player for bot in saved.bots}
    for private in saved.privates:
        store.make_private(private.player, private.values)
        seen = wake.saved_at if private.seen is None and private.player not in bots else private.seen
        runtime.retention.restore(private.player, seen)
    return saved
