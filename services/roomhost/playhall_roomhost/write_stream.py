"""A process's side of one Write stream to a shard: what is not acknowledged yet, and what to send next.

A sans-IO core. Each record is kept until the shard says that it is durable. When a stream breaks, the next
one begins with a hello; the shard answers where each room stands, and what it does not have goes out again,
in order. Records of a room are chained by `prev`; where the chain has a gap (the room wrote more than may
wait here, or the shard lost what it had) only a base helps, so the room is asked for one.

Rooms take turns, and nothing larger than 256 KiB is sent at once, so that one room's base holds up nobody's
records.

A base is acknowledged by its version, as the record of that version is. So it counts as written only when
an ack covers it that came after those for all before it; a base kept longer than needed is sent again at
worst.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.engine.outputs import BaseOut, RecordOut
from playhall_common.record_runs import pack_record, read_durable

__all__ = [
    "MAX_PART_BYTES",
    "MAX_PROCESS_BYTES",
    "MAX_ROOM_BYTES",
    "MAX_ROOM_RECORDS",
    "BaseNeeded",
    "Deleted",
    "Durable",
    "Event",
    "Fenced",
    "WriteStream",
]  # fmt: skip

MAX_PART_BYTES = 256 * 1024
MAX_ROOM_BYTES = 4 * 1024 * 1024
MAX_ROOM_RECORDS = 4_096
MAX_PROCESS_BYTES = 64 * 1024 * 1024
HEARD_S = 3.0


class Durable(msgspec.Struct, frozen=True, gc=False):
    """Everything of this generation up to `version` is on disk."""

    room_uid: str
    generation: int
    version: int


@dataclass(frozen=True, slots=True)
class Fenced:
    """Another generation holds the grant: the room here is over."""

    room_uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """The room is deleted for good."""

    room_uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class BaseNeeded:
    """Only a base brings the shard up to date. Records until then are of no use and are not kept."""

    room_uid: str
    generation: int


Event: TypeAlias = Durable | Fenced | Deleted | BaseNeeded


class _Item(msgspec.Struct, eq=False, gc=False):
    """A record or a base."""

    prev: int
    version: int
    tick: int
    data: bytes
    base: bool
    alarm_ms: int | None
    queued_at: float
    offset: int = 0
    """How much of it went out on this stream."""


@dataclass(slots=True, eq=False)
class _Room:
    uid: str
    generation: int
    number: int
    open: bool
    """The shard said where the room stands, on this stream; or just granted it."""
    named: bool = False
    """The shard was told its number, on this stream."""
    durable: int = 0
    sent: deque[_Item] = field(default_factory=deque)
    unsent: deque[_Item] = field(default_factory=deque)
    record_bytes: int = 0
    base_bytes: int = 0
    lost: bool = False
    """Records were dropped. A base is asked for when the shard can take one."""
    needs_base: bool = False
    """A base was asked for."""
    lost_alarm_ms: int | None = None
    """The alarm that a dropped record set."""
    told_tick: int = 0
    queued: bool = False
    """It stands in the line of rooms with something to send."""


class WriteStream:
    """The records of all rooms of a process that live on one shard."""

    def __init__(self, host_id: str) -> None:
        self._host_id = host_id
        self.map_epoch = 0
        """The shard's epoch, as far as it is known. To read; see `learn_epoch`."""
        self._rooms: dict[str, _Room] = {}
        self._by_number: dict[int, _Room] = {}
        self._numbers = 0
        self._ended: list[int] = []
        """Numbers that the shard need not know any more."""
        self._line: deque[_Room] = deque()
        self._events: list[Event] = []
        self._token: str | None = None
        self._connected = False
        self._hello_sent = False
        self._answered = False
        self._heard_at = 0.0
        self.heard_until = -math.inf
        """Until when the shard is there: it answered the hello, and said something within 3 s."""
        self._bytes = 0
        self._record_bytes = 0
        self._lost: set[_Room] = set()

    # What the process says.

    def add(self, room_uid: str, generation: int) -> None:
        """The shard granted this generation; what it held of the room before is void."""
        self._forget(room_uid)
        self._numbers += 1
        room = _Room(room_uid, generation, self._numbers, self._hello_sent)
        self._rooms[room_uid] = self._by_number[room.number] = room

    def remove(self, room_uid: str, generation: int) -> None:
        """The generation has ended. One that is not there is no error."""
        room = self._rooms.get(room_uid)
        if room is not None and room.generation == generation:
            self._forget(room_uid)

    def record(self, room_uid: str, generation: int, record: RecordOut, now: float) -> None:
        """A flush of the room's."""
        room = self._current(room_uid, generation)
        if room is None:
            return
        if room.lost or room.needs_base:
            room.lost_alarm_ms = _newer(record.alarm_ms, room.lost_alarm_ms)
            return
        item = _Item(record.prev, record.version, record.tick, record.data, False, record.alarm_ms, now)
        self._append(room, item)

    def base(self, room_uid: str, generation: int, base: BaseOut, now: float) -> None:
        """All of the room's state, which takes the place of what was not sent yet."""
        room = self._current(room_uid, generation)
        if room is None:
            return
        self._drop(room, room.unsent)
        alarm_ms = _newer(base.alarm_ms, room.lost_alarm_ms)
        room.lost = room.needs_base = False
        self._lost.discard(room)
        room.lost_alarm_ms = None
        self._append(room, _Item(0, base.version, base.tick, base.data, True, alarm_ms, now))

    def refresh_token(self, token: str) -> None:
        """Tell the shard of a newer host token."""
        self._token = token

    def learn_epoch(self, epoch: int) -> bool:
        """The map, or the shard itself, names this epoch. Whether that is news: an older one never is."""
        is_newer = epoch > self.map_epoch
        self.map_epoch = max(self.map_epoch, epoch)
        return is_newer

    # The stream.

    def connected(self, now: float) -> None:
        """A new stream is open. Its first request is the hello."""
        self.disconnected()
        self._connected = True
        self._heard_at = now

    def disconnected(self) -> None:
        """The stream is gone; all that is unacknowledged waits for the next."""
        self._connected = self._hello_sent = self._answered = False
        self.heard_until = -math.inf
        self._token = None
        self._line.clear()
        self._ended.clear()
        for room in self._rooms.values():
            room.open = room.named = room.queued = False
            while room.sent:
                room.unsent.appendleft(room.sent.pop())
            for item in room.unsent:
                item.offset = 0
            self._bound(room)

    def received(self, response: pb.WriteResponse, now: float) -> None:
        """The shard said something; `take_events` has what it means."""
        self._heard_at = now
        for number, version in read_durable(response.durable):
            numbered = self._by_number.get(number)
            if numbered is not None:
                self._durable(numbered, version)
        for ack in response.acks:
            room = self._rooms.get(ack.room_uid)
            if room is None or room.generation != ack.generation:
                continue
            if ack.outcome == pb.RoomAck.OUTCOME_DURABLE:
                self._durable(room, ack.version)
            elif ack.outcome == pb.RoomAck.OUTCOME_NEED_BASE:
                self._gap(room)
            else:
                self._over(room, ack.outcome)
        if response.hello and self._hello_sent:  # else it is the answer of a stream that is gone
            self._answered = True
        if self._answered:
            self.heard_until = now + HEARD_S

    def next_request(self) -> pb.WriteRequest | None:
        """What to send now; None: nothing."""
        if not self._connected:
            return None
        request = pb.WriteRequest()
        if not self._hello_sent:
            self._hello_sent = True
            request.hello.host_id = self._host_id
            request.hello.map_epoch = self.map_epoch
            for room in self._rooms.values():
                room.named = True
                request.hello.rooms.append(_grant(room))
            return request
        if self._token is not None:
            request.host_token, self._token = self._token, None
        if self._ended:
            request.ended.extend(self._ended)
            self._ended.clear()
        self._ask_lost()
        self._fill(request)
        has_more = request.records or request.run or request.host_token or request.ended
        return request if has_more else None

    def heartbeat(self, ticks: Iterable[tuple[str, int, int]]) -> pb.WriteRequest | None:
        """The loop is alive. `ticks` are (room_uid, generation, tick); those the shard knows are left out."""
        if not self._hello_sent:
            return None
        request = pb.WriteRequest(heartbeat=True)
        for room_uid, generation, tick in ticks:
            room = self._rooms.get(room_uid)
            # The shard keeps ticks of what it has; a room it has nothing of starts at its first base.
            if room is not None and room.generation == generation and tick > room.told_tick and room.durable:
                room.told_tick = tick
                request.ticks.add(room_uid=room_uid, generation=generation, tick=tick)
        return request

    def take_events(self) -> list[Event]:
        """What happened since the last call."""
        events, self._events = self._events, []
        return events

    # To read.

    @property
    def has_rooms(self) -> bool:
        return bool(self._rooms)

    @property
    def answered(self) -> bool:
        """The shard answered this stream's hello: what it did not fence is still ours."""
        return self._answered

    @property
    def queued_bytes(self) -> int:
        """What is not acknowledged."""
        return self._bytes

    def silent_s(self, now: float) -> float:
        """How long the shard has said nothing on this stream."""
        return now - self._heard_at

    def lag_s(self, now: float) -> float:
        """Age of the oldest record that is not durable."""
        oldest = now
        for room in self._rooms.values():
            for item in room.sent or room.unsent:
                if item.version > room.durable:
                    oldest = min(oldest, item.queued_at)
                    break
        return now - oldest

    # Inside.

    def _current(self, room_uid: str, generation: int) -> _Room | None:
        room = self._rooms.get(room_uid)
        return room if room is not None and room.generation == generation else None

    def _forget(self, room_uid: str) -> None:
        room = self._rooms.pop(room_uid, None)
        if room is not None:
            del self._by_number[room.number]
            if room.named:
                self._ended.append(room.number)
            self._drop(room, room.sent)
            self._drop(room, room.unsent)
            self._lost.discard(room)

    def _append(self, room: _Room, item: _Item) -> None:
        room.unsent.append(item)
        self._count(room, item, 1)
        if item.tick > room.told_tick:
            room.told_tick = item.tick
        self._bound(room)
        if room.open and not room.queued:
            room.queued = True
            self._line.append(room)

    def _enqueue(self, room: _Room) -> None:
        if room.open and room.unsent and not room.queued:
            room.queued = True
            self._line.append(room)

    def _fill(self, request: pb.WriteRequest) -> None:
        """Put what rooms have to send into the request: one thing of each in turn, up to 256 KiB."""
        run: list[bytes] = []
        size = 0
        while self._line and size < MAX_PART_BYTES:
            room = self._line.popleft()
            room.queued = False
            unsent = room.unsent
            if not unsent or self._rooms.get(room.uid) is not room:
                continue
            item = unsent[0]
            if not room.named:
                room.named = True
                request.rooms.append(_grant(room))
            data = item.data
            if not item.base and item.alarm_ms is None and len(data) <= MAX_PART_BYTES:
                run.append(
                    pack_record(room.number, item.prev, item.version, zlib.crc32(data), item.tick, data)
                )
                size += len(data)
                room.sent.append(unsent.popleft())
                if not unsent:
                    continue
            elif run:
                # The run comes last in a request, and what a room says has an order.
                room.queued = True
                self._line.appendleft(room)
                break
            else:
                size += self._send_part(room, item, request)
            self._enqueue(room)
        request.run = b"".join(run)

    def _send_part(self, room: _Room, item: _Item, request: pb.WriteRequest) -> int:
        """Put the next part of an item into the request; gives its size."""
        data = item.data[item.offset : item.offset + MAX_PART_BYTES]
        item.offset += len(data)
        part = request.records.add(
            room_uid=room.uid,
            generation=room.generation,
            prev=item.prev,
            version=item.version,
            tick=item.tick,
            data=data,
            base=item.base,
        )
        if item.offset >= len(item.data):
            part.last = True
            part.crc32 = zlib.crc32(item.data)
            if item.alarm_ms is not None:
                part.alarm_ms = item.alarm_ms
            room.sent.append(room.unsent.popleft())
        return len(data)

    def _durable(self, room: _Room, version: int) -> None:
        if not room.open:
            if self._hello_sent:
                self._stands_at(room, version)
            else:
                self._advance(room, version)  # the last words of a stream that broke
            return
        sent = room.sent
        first = sent[0] if sent else None
        while sent:
            item = sent[0]
            if item.version > version or (item.version == version and item.base and item is not first):
                break
            self._count(room, sent.popleft(), -1)
        self._advance(room, version)

    def _stands_at(self, room: _Room, version: int) -> None:
        """The answer to a hello."""
        room.open = True
        while room.unsent and (
            room.unsent[0].version < version
            or (room.unsent[0].version == version and not room.unsent[0].base)
        ):
            self._count(room, room.unsent.popleft(), -1)
        first = room.unsent[0] if room.unsent else None
        gap = version < room.durable if first is None else not first.base and first.prev != version
        if gap:
            self._gap(room)
        self._enqueue(room)
        self._advance(room, version)

    def _advance(self, room: _Room, version: int) -> None:
        if version > room.durable:
            room.durable = version
            self._events.append(Durable(room.uid, room.generation, version))

    def _gap(self, room: _Room) -> None:
        room.open = True
        if room.needs_base or any(item.base for queue in (room.sent, room.unsent) for item in queue):
            # It is coming; that the shard misses what is before it is old news.
            self._enqueue(room)
            return
        self._lose(room)

    def _ask_lost(self) -> None:
        for room in [room for room in self._lost if room.open]:
            self._lost.discard(room)
            room.lost, room.needs_base = False, True
            self._events.append(BaseNeeded(room.uid, room.generation))

    def _over(self, room: _Room, outcome: pb.RoomAck.Outcome.ValueType) -> None:
        self._forget(room.uid)
        event = Deleted if outcome == pb.RoomAck.OUTCOME_DELETED else Fenced
        self._events.append(event(room.uid, room.generation))

    def _bound(self, room: _Room) -> None:
        """Nobody's records grow without end: over the bound they go, for a base once it can be sent."""
        kept = room.record_bytes if room.open else room.record_bytes + room.base_bytes
        if kept > MAX_ROOM_BYTES or len(room.sent) + len(room.unsent) > MAX_ROOM_RECORDS:
            self._lose(room)
        # A base that is on its way out may be as large as a room's state; it is soon gone.
        while (self._record_bytes if self._connected else self._bytes) > MAX_PROCESS_BYTES:
            self._lose(max(self._rooms.values(), key=self._weight))

    def _weight(self, room: _Room) -> int:
        return room.record_bytes if self._connected else room.record_bytes + room.base_bytes

    def _lose(self, room: _Room) -> None:
        self._drop(room, room.sent)
        self._drop(room, room.unsent)
        room.lost = True
        self._lost.add(room)

    def _drop(self, room: _Room, queue: deque[_Item]) -> None:
        while queue:
            item = queue.popleft()
            self._count(room, item, -1)
            room.lost_alarm_ms = _newer(item.alarm_ms, room.lost_alarm_ms)

    def _count(self, room: _Room, item: _Item, sign: int) -> None:
        size = sign * len(item.data)
        self._bytes += size
        if item.base:
            room.base_bytes += size
        else:
            room.record_bytes += size
            self._record_bytes += size


def _grant(room: _Room) -> pb.RoomGrant:
    return pb.RoomGrant(room_uid=room.uid, generation=room.generation, number=room.number)


def _newer(alarm_ms: int | None, older_ms: int | None) -> int | None:
    return older_ms if alarm_ms is None else alarm_ms
