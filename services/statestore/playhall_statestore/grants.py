"""Who may write a room: Open, Close, Strike, and the end of a silent holder.

Invariants: a room has at most one grant (W1); a holder that is heard keeps it (W2); a generation is given
once, because its counter is part of the commit; after Close nothing of the generation is accepted (H1),
because every write asks `is_current`.
"""

from __future__ import annotations

from playhall.engine.codes import ErrorCode
from playhall_statestore.batch import Batch
from playhall_statestore.holders import Holders
from playhall_statestore.model import End, Mark, Now, Room, Saved
from playhall_statestore.requests import (
    AbandonGrant,
    AlreadyOpen,
    Answer,
    Backoff,
    Closed,
    CloseRoom,
    ExpireHolder,
    Granted,
    OpenRoom,
    Refused,
    StrikeRoom,
    Struck,
)

__all__ = ["Grants", "is_current"]

_REMEMBERED_OPENS = 8
_WITH_BASE = frozenset({End.HIBERNATED, End.MOVED, End.SLEPT})


class Grants:
    """The rules. State is the batch's and the holders'."""

    def __init__(self, epoch: int, holders: Holders, crash_s: float) -> None:
        self._epoch = epoch
        self._holders = holders
        self._crash_s = crash_s
        self.takes_new_rooms = True
        """False while the disk is nearly full."""

    def open(self, batch: Batch, request: OpenRoom, now: Now) -> Answer:
        room = batch.room(request.uid)
        if room is None:
            refusal = self._refuse_new(request)
            if refusal is not None:
                return refusal
            batch.add(Room(request.uid, request.project))
        elif room.held and (room.open_id, room.host_id) == (request.open_id, request.host_id):
            return _granted(room)
        else:
            answer = self._refuse(room, request, now)
            if answer is not None:
                return answer
        return self._grant(batch, request, now)

    def _refuse_new(self, request: OpenRoom) -> Refused | None:
        if request.has_state:
            return Refused(ErrorCode.STATE_MISSING)
        if not self.takes_new_rooms:
            return Refused(ErrorCode.FULL, "the shard's disk is nearly full")
        return None

    def _refuse(self, room: Room, request: OpenRoom, now: Now) -> Answer | None:
        if room.project != request.project:
            return Refused(ErrorCode.FORBIDDEN, "the room belongs to another project")
        if request.open_id == room.open_id or request.open_id in room.spent_open_ids:
            return Refused(ErrorCode.FENCED, "this Open was answered, and its grant has ended since")
        if request.deploy_seq < room.deploy_seq:
            return Refused(ErrorCode.STALE_BUILD)
        # A host that asks again for a room it holds has lost it: it would not ask while it runs it.
        if room.held and room.host_id != request.host_id and self.is_heard(room, now):
            return AlreadyOpen(room.generation, room.host_id, room.host_address)
        wait_ms = room.strikes.wait_ms(now.wall_ms)
        if wait_ms:
            return Backoff(wait_ms)
        if request.has_state and not room.has_state:
            return Refused(ErrorCode.STATE_MISSING)
        if room.evicted:
            return Refused(ErrorCode.UNAVAILABLE, "the state is not back from the object store yet")
        return None

    def _grant(self, batch: Batch, request: OpenRoom, now: Now) -> Granted:
        room = batch.touch(request.uid)
        if room.held:
            self._end(batch, room, End.CRASHED, self._last_word_ms(batch, room))
        batch.counter += 1
        room.spent_open_ids = (*room.spent_open_ids, room.open_id)[-_REMEMBERED_OPENS:]
        room.generation = self._epoch << 32 | batch.counter
        room.version = 0
        room.held = True
        room.host_id = request.host_id
        room.host_address = request.host_address
        room.open_id = request.open_id
        room.deploy_seq = request.deploy_seq
        room.elapsed_ms = max(0, now.wall_ms - room.ended_ms) if room.end is not End.NEVER else 0
        self._holders.granted(room.uid, room.host_id, now)
        batch.save(room)
        return _granted(room)

    def close(self, batch: Batch, request: CloseRoom, now: Now) -> Answer:
        room = batch.room(request.uid)
        if room is None or room.generation != request.generation or room.project != request.project:
            return Refused(ErrorCode.FENCED)
        if not room.held:
            return Refused(ErrorCode.FENCED) if room.end is End.CRASHED else Closed()
        if room.host_id != request.host_id:
            return Refused(ErrorCode.FENCED)
        if request.version > room.version:
            return Refused(ErrorCode.UNAVAILABLE, f"version {request.version} is not written yet")
        if request.kind in _WITH_BASE and room.version and room.base != Mark(room.generation, room.version):
            return Refused(ErrorCode.UNAVAILABLE, f"the base of version {room.version} is not written yet")
        room = batch.touch(request.uid)
        if request.kind is not End.STOPPED:
            # What a stopped room did since its last record is not saved, and neither is what that did to the
            # alarm.
            room.alarm_ms = request.alarm_ms
        room.saved = room.saved._replace(tick=max(room.saved.tick, request.tick))
        self._end(batch, room, request.kind, now.wall_ms)
        return Closed()

    def strike(self, batch: Batch, request: StrikeRoom, now: Now) -> Answer:
        room = batch.room(request.uid)
        if room is None or room.project != request.project:
            return Refused(ErrorCode.UNKNOWN)
        if request.generation > room.generation:
            return Refused(ErrorCode.INVALID, "no such generation was granted")
        strikes = room.strikes.struck(request.generation, now.wall_ms)
        if strikes != room.strikes:
            room = batch.touch(request.uid)
            room.strikes = strikes
            batch.save(room)
        return Struck(strikes.streak)

    def expire(self, batch: Batch, request: ExpireHolder, now: Now) -> None:
        """Close a generation as a crash if its holder is still as silent as when this was asked for."""
        room = batch.room(request.uid)
        if room is None or not room.held or room.generation != request.generation:
            return
        if now.mono >= self._holders.heard_until(room.uid, room.host_id) + self._crash_s:
            room = batch.touch(request.uid)
            self._end(batch, room, End.CRASHED, self._last_word_ms(batch, room))

    def abandon(self, batch: Batch, request: AbandonGrant) -> None:
        """Take a grant back that its holder never learnt of: as if it had not been given."""
        room = batch.room(request.uid)
        if room is None or not room.held or room.generation != request.generation:
            return
        room = batch.touch(request.uid)
        room.held = False
        room.open_id = ""
        batch.save(room)

    def is_heard(self, room: Room, now: Now) -> bool:
        return room.held and now.mono < self._holders.heard_until(room.uid, room.host_id)

    def _last_word_ms(self, batch: Batch, room: Room) -> int:
        beats = batch.host_beats(room.host_id)
        spoken = self._holders.last_word_ms(room.host_id)
        return max(spoken, beats.wall_ms if beats is not None else 0, room.saved.wall_ms)

    def _end(self, batch: Batch, room: Room, end: End, ended_ms: int) -> None:
        """The grant is over. A quiet room's tick is the one its host named last."""
        beats = batch.host_beats(room.host_id)
        generation, tick = beats.ticks.get(room.uid, (0, 0)) if beats is not None else (0, 0)
        if end is End.CRASHED and generation == room.generation and tick > room.saved.tick:
            room.saved = room.saved._replace(tick=tick)
        room.held = False
        room.end = end
        room.ended_ms = ended_ms
        batch.save(room)


def is_current(room: Room | None, generation: int, host_id: str, project: str | None) -> bool:
    """Whether this host may write to the room in this generation."""
    return (
        room is not None
        and room.held
        and room.generation == generation
        and room.host_id == host_id
        and (project is None or room.project == project)
    )


def _granted(room: Room) -> Granted:
    saved: Saved = room.saved
    return Granted(
        generation=room.generation,
        version=saved.at.version,
        tick=saved.tick,
        saved_at_ms=saved.wall_ms,
        elapsed_ms=room.elapsed_ms,
        prior_end=room.end,
        alarm_ms=room.alarm_ms,
        base=room.base,
        upto=saved.at,
    )
