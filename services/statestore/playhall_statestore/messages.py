"""Protos to the core's requests, and what the core says to protos. Bad input is refused here: E_INVALID."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from playhall.api.statestore.v1 import statestore_pb2 as pb
from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_common.ids import is_project_slug, is_ulid
from playhall_common.record_runs import pack_durable, read_run
from playhall_statestore.model import MAX_PART_BYTES, End, Item, Outcome
from playhall_statestore.requests import (
    Ack,
    AlreadyOpen,
    Backoff,
    CloseRoom,
    Granted,
    OpenRoom,
    Part,
    RoomNews,
    StrikeRoom,
)

__all__ = [
    "MAX_GENERATION", "MAX_ROOMS", "Numbers", "checked_host", "checked_uid", "close_room", "grants",
    "open_room",
    "outcome", "parts", "room_status", "state_parts", "strike_room", "ticks",
]  # fmt: skip

MAX_TEXT = 256
MAX_GENERATION = 1 << 53
MAX_ALARM_MS = 1 << 53
MAX_TICK = 1 << 53
MAX_ROOMS = 10_000


def checked_uid(uid: str) -> str:
    if not is_ulid(uid):
        raise _invalid("room_uid", "is no room's uid")
    return uid


def checked_host(host_id: str) -> str:
    return _text("host_id", host_id)


def open_room(token: int, request: pb.OpenRequest) -> OpenRoom:
    return OpenRoom(
        token,
        _project(request.project),
        checked_uid(request.room_uid),
        checked_host(request.host_id),
        _text("host_address", request.host_address),
        _text("open_id", request.open_id),
        _below("deploy_seq", request.deploy_seq, 1 << 53),
        request.has_state,
    )


def close_room(token: int, request: pb.CloseRequest) -> CloseRoom:
    if request.kind in (pb.END_UNSPECIFIED, pb.END_NEVER, pb.END_CRASHED):
        raise _invalid("kind", "is not how a host ends a generation")
    return CloseRoom(
        token,
        _project(request.project),
        checked_uid(request.room_uid),
        _below("generation", request.generation, MAX_GENERATION),
        request.version,
        _below("tick", request.tick, MAX_TICK),
        _end(request.kind),
        _alarm(request.alarm_ms),
        checked_host(request.host_id),
    )


def strike_room(token: int, request: pb.StrikeRequest) -> StrikeRoom:
    generation = _below("generation", request.generation, MAX_GENERATION)
    return StrikeRoom(token, _project(request.project), checked_uid(request.room_uid), generation)


def grants(hello: pb.WriteHello) -> tuple[tuple[str, int], ...]:
    if len(hello.rooms) > MAX_ROOMS:
        raise _invalid("hello.rooms", f"has more than {MAX_ROOMS} rooms")
    return tuple(_room(room) for room in hello.rooms)


def _room(room: pb.RoomGrant) -> tuple[str, int]:
    return checked_uid(room.room_uid), _below("generation", room.generation, MAX_GENERATION)


class Numbers:
    """What one stream calls its rooms."""

    def __init__(self) -> None:
        self._rooms: dict[int, tuple[str, int]] = {}
        self._numbers: dict[tuple[str, int], int] = {}

    def learn(self, rooms: Iterable[pb.RoomGrant], ended: Iterable[int] = ()) -> None:
        """Some rooms got numbers, and some numbers are over."""
        for number in ended:
            self._forget(number)
        for grant in rooms:
            if grant.number:
                room = _room(grant)
                self._forget(grant.number)
                self._forget(self._numbers.get(room, 0))
                self._rooms[grant.number], self._numbers[room] = room, grant.number
        if len(self._rooms) > MAX_ROOMS:
            raise _invalid("rooms", f"names more than {MAX_ROOMS} rooms")

    def _forget(self, number: int) -> None:
        room = self._rooms.pop(number, None)
        if room is not None:
            del self._numbers[room]

    def parts(self, stream: int, run: bytes) -> list[Part]:
        """The records of a run."""
        try:
            records = read_run(run)
        except ValueError as error:
            raise _invalid("run", f"is none: {error}") from None
        if any(tick >= MAX_TICK for _, _, _, _, tick, _ in records):
            raise _invalid("run", "has a tick that is out of range")
        try:
            return [
                Part(stream, *self._rooms[number], prev, version, tick, data, True, False, None, crc32)
                for number, prev, version, crc32, tick, data in records
            ]
        except KeyError as unknown:
            raise _invalid("run", f"has a room {unknown} that was not named") from None

    def acks(self, waiting: list[Ack], hello: bool) -> pb.WriteResponse:
        """What waits to be said."""
        durable: list[tuple[int, int]] = []
        others: list[pb.RoomAck] = []
        for ack in waiting:
            number = self._numbers.get((ack.uid, ack.generation))
            if number is None or hello or ack.outcome is not Outcome.DURABLE:
                others.append(_ack(ack))
            else:
                durable.append((number, ack.version))
        return pb.WriteResponse(acks=others, hello=hello, durable=pack_durable(durable))


def parts(stream: int, request: pb.WriteRequest) -> list[Part]:
    return [_part(stream, record) for record in request.records]


def _part(stream: int, record: pb.RecordPart) -> Part:
    alarm_ms = _below("alarm_ms", record.alarm_ms, MAX_ALARM_MS) if record.HasField("alarm_ms") else None
    return Part(
        stream,
        checked_uid(record.room_uid),
        _below("generation", record.generation, MAX_GENERATION),
        record.prev,
        record.version,
        _below("tick", record.tick, MAX_TICK),
        record.data,
        record.last,
        record.base,
        alarm_ms,
        record.crc32,
    )


def ticks(request: pb.WriteRequest) -> tuple[tuple[str, int, int], ...]:
    if len(request.ticks) > MAX_ROOMS:
        raise _invalid("ticks", f"has more than {MAX_ROOMS} rooms")
    return tuple(
        (checked_uid(tick.room_uid), tick.generation, _below("tick", tick.tick, MAX_TICK))
        for tick in request.ticks
    )


def outcome(answer: Granted | AlreadyOpen | Backoff) -> pb.OpenResponse:
    match answer:
        case Granted():
            return pb.OpenResponse(granted=_granted(answer))
        case AlreadyOpen():
            return pb.OpenResponse(
                already_open=pb.AlreadyOpen(
                    generation=answer.generation, host_id=answer.host_id, host_address=answer.host_address
                )
            )
        case Backoff():
            return pb.OpenResponse(backoff=pb.OpenBackoff(retry_after_ms=answer.retry_after_ms))


def _granted(granted: Granted) -> pb.Granted:
    return pb.Granted(
        generation=granted.generation,
        version=granted.version,
        tick=granted.tick,
        saved_at_ms=granted.saved_at_ms,
        elapsed_ms=granted.elapsed_ms,
        prior_end=pb.End.ValueType(granted.prior_end),
        has_state=granted.base is not None,
        alarm_ms=granted.alarm_ms,
    )


def state_parts(items: list[Item]) -> Iterator[pb.OpenResponse]:
    """What was written, in order, in pieces; the last one says that it is."""
    for number, item in enumerate(items):
        kind = pb.StatePart.KIND_BASE if item.base else pb.StatePart.KIND_RECORD
        starts = range(0, len(item.data), MAX_PART_BYTES) or range(1)
        for start in starts:
            last = start == starts[-1]
            part = pb.StatePart(
                kind=kind,
                data=item.data[start : start + MAX_PART_BYTES],
                last=last,
                end=last and number == len(items) - 1,
            )
            yield pb.OpenResponse(state=part)


def _ack(ack: Ack) -> pb.RoomAck:
    return pb.RoomAck(
        room_uid=ack.uid,
        generation=ack.generation,
        outcome=pb.RoomAck.Outcome.ValueType(ack.outcome),
        version=ack.version,
    )


def room_status(news: RoomNews) -> pb.RoomStatus:
    return pb.RoomStatus(
        room_uid=news.uid,
        status=pb.RoomStatus.Status.ValueType(news.status),
        generation=news.generation,
        host_id=news.host_id,
        host_address=news.host_address,
        version=news.version,
        deploy_seq=news.deploy_seq,
    )


def _end(kind: int) -> End:
    try:
        return End(kind)
    except ValueError:
        raise _invalid("kind", f"{kind} is not known here") from None


def _alarm(alarm_ms: int) -> int | None:
    return None if alarm_ms < 0 else _below("alarm_ms", alarm_ms, MAX_ALARM_MS)


def _project(project: str) -> str:
    if not is_project_slug(project):
        raise _invalid("project", "is no project's slug")
    return project


def _text(name: str, text: str) -> str:
    if not 0 < len(text) <= MAX_TEXT:
        raise _invalid(name, f"has not 1 to {MAX_TEXT} characters")
    return text


def _below(name: str, value: int, limit: int) -> int:
    if value >= limit:
        raise _invalid(name, f"{value} is out of range")
    return value


def _invalid(name: str, reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID, f"{name} {reason}", field=name)
