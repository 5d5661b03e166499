"""The shard as a state machine: requests in, one commit at a time, answers out after it.

    shard.apply(request, now)            any number of times; nothing is visible yet
    changes = shard.take_changes()       for one transaction; None: nothing to commit
    outputs = shard.committed(now)       the transaction is durable
    shard.rolled_back(streams)           or it failed, and nothing of it happened

What needs no commit takes effect at once: which hosts are heard, who watches, and the clock. `timer` is due
at `next_timer`; the requests it gives are queued like any other. A shard that starts again is a new one, made
from what the volume holds: whatever was in a batch without a commit is gone, as after a crash.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from playhall_statestore.batch import Batch
from playhall_statestore.grants import Grants
from playhall_statestore.holders import Holders, Timing
from playhall_statestore.model import (
    Change,
    DropBeats,
    End,
    HostBeats,
    Now,
    Outcome,
    Room,
    Status,
)
from playhall_statestore.requests import (
    AbandonGrant,
    Ack,
    Acks,
    CloseRoom,
    ExpireHolder,
    Hello,
    OpenRoom,
    Output,
    Part,
    Parts,
    Request,
    RoomNews,
    StreamClosed,
    StrikeRoom,
    Ticks,
)
from playhall_statestore.stored import apply_stored, is_stored
from playhall_statestore.watchers import Watchers
from playhall_statestore.writes import Writes

__all__ = ["Shard"]


class Shard:
    """The rooms of one shard under one epoch."""

    def __init__(
        self,
        epoch: int,
        counter: int,
        rooms: Iterable[Room],
        beats: dict[str, HostBeats],
        timing: Timing,
        now: Now,
    ) -> None:
        self._rooms = {room.uid: room for room in rooms}
        self._counter = counter
        self._beats = beats
        self._timing = timing
        self._holders = Holders(timing)
        self._grants = Grants(epoch, self._holders, timing.crash_s)
        self._writes = Writes()
        self._watchers = Watchers()
        self._streams: dict[str, int] = {}
        self._held: dict[str, set[str]] = {}
        self._was_heard: dict[str, bool] = {}
        self._batch: Batch | None = None
        self.unstored: set[str] = set()
        """Rooms whose newest state is in no object yet. To read."""
        for room in self._rooms.values():
            self._note_stored(room)
            if room.held:
                self._held.setdefault(room.host_id, set()).add(room.uid)
                self._holders.granted(room.uid, room.host_id, now)

    # Requests: applied in a batch.

    def apply(self, request: Request, now: Now) -> None:
        """Add a request to the open batch."""
        if self._batch is None:
            self._batch = Batch(self._rooms, self._counter, self._beats)
        batch = self._batch
        match request:
            case Parts():
                for part in request.parts:
                    self._writes.part(batch, part, now)
            case Part():
                self._writes.part(batch, request, now)
            case Ticks():
                self._writes.ticks(batch, request, now)
            case Hello():
                self._writes.hello(batch, request)
            case StreamClosed():
                self._writes.close(batch, request.stream)
            case OpenRoom():
                batch.reply(request.token, self._grants.open(batch, request, now))
            case CloseRoom():
                batch.reply(request.token, self._grants.close(batch, request, now))
            case StrikeRoom():
                batch.reply(request.token, self._grants.strike(batch, request, now))
            case ExpireHolder():
                self._grants.expire(batch, request, now)
            case AbandonGrant():
                self._grants.abandon(batch, request)
            case _:
                apply_stored(batch, request)

    def take_changes(self) -> list[Change] | None:
        """Close the batch for new requests. None: there is nothing to commit; still call `committed`."""
        assert self._batch is not None, "no request was applied"
        changes = self._batch.take_changes()
        for host_id in self._idle_hosts(self._batch):
            self._beats.pop(host_id, None)
            changes.append(DropBeats(host_id))
        return changes or None

    def committed(self, now: Now) -> list[Output]:
        """The batch is durable: what it says may leave."""
        batch, self._batch = self._batch, None
        assert batch is not None, "there is no batch"
        self._counter = batch.counter
        self._beats.update(batch.beats)
        outputs: list[Output] = list(batch.take_outputs())
        for uid, room in batch.rooms.items():
            before = self._rooms.get(uid)
            self._rooms[uid] = room
            # What was written changes nothing of who holds the room, and makes what is in no object no fewer.
            if uid in batch.saved:
                self._note_stored(room)
                outputs += self._moved(before, room)
            elif uid not in self.unstored:
                self._note_stored(room)
        outputs += self._watchers.refresh(batch.saved, lambda uid: self.news(uid, now))
        return outputs

    def _note_stored(self, room: Room) -> None:
        if room.has_state and not room.evicted and not is_stored(room):
            self.unstored.add(room.uid)
        else:
            self.unstored.discard(room.uid)

    def rolled_back(self, streams: Iterable[int]) -> None:
        """Nothing of the batch happened. `streams` had requests in it and are being ended."""
        batch, self._batch = self._batch, None
        assert batch is not None, "there is no batch"
        for stream in streams:
            self._writes.kill(stream)

    def _moved(self, before: Room | None, room: Room) -> list[Acks]:
        """Keep who holds what; a holder that lost its grant is told at once."""
        if before is not None and before.held and (not room.held or room.generation != before.generation):
            self._drop_holder(before)
        if room.held:
            self._held.setdefault(room.host_id, set()).add(room.uid)
            if room.host_id in self._streams:
                # It may have opened since the grant, while that was committed.
                self._holders.settled(room.uid)
        else:
            self._holders.settled(room.uid)
            if room.end is not End.CRASHED:
                return []
        if before is None or not before.held or (room.held and before.generation == room.generation):
            return []
        stream = self._streams.get(before.host_id)
        return [] if stream is None else [Acks(stream, (_fenced(before),))]

    def _drop_holder(self, room: Room) -> None:
        uids = self._held.get(room.host_id, set())
        uids.discard(room.uid)
        if not uids:
            self._held.pop(room.host_id, None)
            self._was_heard.pop(room.host_id, None)
            self._holders.forget(room.host_id)

    def _idle_hosts(self, batch: Batch) -> list[str]:
        """Hosts with a row of ticks that hold nothing any more."""
        named = set(batch.beats)
        return [host_id for host_id in self._beats if host_id not in self._held and host_id not in named]

    # At once: hosts, watchers, the clock.

    def stream_opened(self, stream: int, host_id: str, now: Now) -> int | None:
        """A Write stream of this host; queue its Hello next. Gives an older one, to be ended."""
        self._streams[host_id] = stream
        for uid in self._held.get(host_id, ()):
            self._holders.settled(uid)
        return self._holders.opened(host_id, stream, now)

    def stream_beat(self, stream: int, host_id: str, now: Now) -> None:
        self._holders.beat(host_id, stream, now)

    def stream_reading(self, stream: int, host_id: str, reads: bool, now: Now) -> None:
        """The shard stops or goes on reading a stream, because of its own bound."""
        self._holders.reading(host_id, stream, reads, now)

    def stream_closed(self, stream: int, host_id: str, now: Now) -> None:
        """The stream is gone; queue StreamClosed next."""
        if self._streams.get(host_id) == stream:
            del self._streams[host_id]
        self._holders.closed(host_id, stream, now)
        if host_id not in self._held:
            self._holders.forget(host_id)

    def watch(self, watcher: int, uid: str, now: Now) -> list[Output]:
        return list(self._watchers.watch(watcher, uid, self.news(uid, now)))

    def unwatch(self, watcher: int, uid: str) -> None:
        self._watchers.unwatch(watcher, uid)

    def watcher_left(self, watcher: int) -> None:
        self._watchers.leave(watcher)

    def watch_count(self, watcher: int) -> int:
        return self._watchers.count(watcher)

    def timer(self, now: Now) -> tuple[list[Output], list[ExpireHolder]]:
        """Notice who is no longer heard, and who has not been for so long that it counts as crashed."""
        self._holders.passed(now)
        changed = set(self._holders.graced())
        expired: list[ExpireHolder] = []
        for host_id, uids in self._held.items():
            heard = now.mono < self._holders.host_heard_until(host_id)
            if heard != self._was_heard.get(host_id):
                self._was_heard[host_id] = heard
                changed |= uids
            if not heard:
                expired += self._expired(host_id, uids, now)
        return list(self._watchers.refresh(sorted(changed), lambda uid: self.news(uid, now))), expired

    def _expired(self, host_id: str, uids: set[str], now: Now) -> list[ExpireHolder]:
        crash_s = self._timing.crash_s
        return [
            ExpireHolder(uid, self._rooms[uid].generation)
            for uid in sorted(uids)
            if now.mono >= self._holders.heard_until(uid, host_id) + crash_s
        ]

    def next_timer(self, now: Now) -> float:
        """When `timer` is due (mono) at the latest; inf: not before something happens."""
        due = math.inf
        for host_id, uids in self._held.items():
            until = self._holders.host_heard_until(host_id)
            ends = [until] if until > now.mono else [self._holders.heard_until(uid, host_id) for uid in uids]
            for end in ends:
                due = min(due, end if end > now.mono else end + self._timing.crash_s)
        return due

    # To read: as of the last commit.

    @property
    def takes_new_rooms(self) -> bool:
        return self._grants.takes_new_rooms

    @takes_new_rooms.setter
    def takes_new_rooms(self, takes: bool) -> None:
        self._grants.takes_new_rooms = takes

    def room(self, uid: str) -> Room | None:
        """Not to be changed."""
        return self._rooms.get(uid)

    def rooms(self) -> Iterable[Room]:
        """Not to be changed."""
        return self._rooms.values()

    def is_heard(self, room: Room, now: Now) -> bool:
        return self._grants.is_heard(room, now)

    def news(self, uid: str, now: Now) -> RoomNews:
        """Who owns a room."""
        room = self._rooms.get(uid)
        if room is None:
            return RoomNews(uid, Status.NEW)
        if room.held:
            status = Status.LIVE if self._grants.is_heard(room, now) else Status.DEAD
            return RoomNews(
                uid, status, room.generation, room.host_id, room.host_address, deploy_seq=room.deploy_seq
            )
        if room.end is End.NEVER:
            return RoomNews(uid, Status.NEW)
        status = Status.ASLEEP if room.end is End.SLEPT else Status.CLOSED
        version = room.saved.at.version
        return RoomNews(uid, status, room.generation, version=version, deploy_seq=room.deploy_seq)


def _fenced(room: Room) -> Ack:
    return Ack(room.uid, room.generation, Outcome.FENCED)
