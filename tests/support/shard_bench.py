"""A shard on a volume in memory, driven by hand: what the tests of its core share."""

from __future__ import annotations

import itertools
import zlib
from typing import TypeVar

from playhall_statestore.holders import Timing
from playhall_statestore.model import End, Now, Room
from playhall_statestore.requests import (
    Ack,
    Acks,
    Answer,
    CloseRoom,
    Granted,
    Hello,
    OpenRoom,
    Output,
    Part,
    Reply,
    Request,
    RoomNews,
    StreamClosed,
    StrikeRoom,
)
from playhall_statestore.shard import Shard
from playhall_statestore.volume import Identity, Volume

ROOM = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
OTHER = "01ARZ3NDEKTSV4RRFFQ69G5FAW"
EPOCH = 3
PROJECT = "demo"

T = TypeVar("T", bound=Output)


class ShardBench:
    """Requests one by one, each committed at once unless it is `hold`; time moves by `pass_time`."""

    def __init__(self, timing: Timing | None = None) -> None:
        self.timing = timing or Timing()
        self.volume = Volume(":memory:")
        self.volume.set_identity(Identity("test", "shard-0", EPOCH))
        self.now = Now(1000.0, 1_700_000_000_000)
        self._numbers = itertools.count(1)
        self.shard = self._start()

    def _start(self) -> Shard:
        loaded = self.volume.load()
        return Shard(EPOCH, loaded.counter, loaded.rooms, loaded.beats, self.timing, self.now)

    def restart(self) -> None:
        """A crash: what was not committed is gone, and so are streams and watchers."""
        self.shard = self._start()

    def pass_time(self, seconds: float, step: float = 1.0) -> list[Output]:
        """The clock goes on, and the shard's timer with it."""
        outputs: list[Output] = []
        while seconds > 0:
            turn = min(step, seconds)
            seconds -= turn
            self.now = Now(self.now.mono + turn, self.now.wall_ms + round(turn * 1000))
            said, expired = self.shard.timer(self.now)
            outputs += said
            for request in expired:
                outputs += self.do(request)
        return outputs

    def do(self, *requests: Request) -> list[Output]:
        """All in one commit; what is said after it."""
        for request in requests:
            self.shard.apply(request, self.now)
        return self.commit()

    def commit(self) -> list[Output]:
        changes = self.shard.take_changes()
        if changes is not None:
            self.volume.commit(changes)
        return self.shard.committed(self.now)

    def number(self) -> int:
        return next(self._numbers)

    def answer(self, request: Request) -> Answer:
        (reply,) = of(self.do(request), Reply)
        return reply.answer

    # What hosts do.

    def open_request(
        self,
        host: str = "h1",
        uid: str = ROOM,
        *,
        open_id: str | None = None,
        deploy_seq: int = 1,
        has_state: bool = False,
        project: str = PROJECT,
    ) -> OpenRoom:
        token = self.number()
        return OpenRoom(
            token, project, uid, host, f"{host}:1", open_id or f"open-{token}", deploy_seq, has_state
        )

    def open(self, host: str = "h1", uid: str = ROOM, **options: object) -> Answer:
        return self.answer(self.open_request(host, uid, **options))  # type: ignore[arg-type]

    def grant(self, host: str = "h1", uid: str = ROOM, **options: object) -> Granted:
        answer = self.open(host, uid, **options)
        assert isinstance(answer, Granted), answer
        return answer

    def connect(
        self, host: str = "h1", *rooms: tuple[str, int], project: str | None = None
    ) -> tuple[int, Acks]:
        """A Write stream and the answer to its hello."""
        stream = self.number()
        self.shard.stream_opened(stream, host, self.now)
        (acks,) = of(self.do(Hello(stream, host, project, rooms)), Acks)
        return stream, acks

    def disconnect(self, stream: int, host: str = "h1") -> None:
        self.shard.stream_closed(stream, host, self.now)
        self.do(StreamClosed(stream))

    def close_request(
        self, generation: int, version: int = 0, kind: End = End.HIBERNATED, host: str = "h1", uid: str = ROOM
    ) -> CloseRoom:
        return CloseRoom(self.number(), PROJECT, uid, generation, version, 0, kind, None, host)

    def close(
        self, generation: int, version: int = 0, kind: End = End.HIBERNATED, host: str = "h1"
    ) -> Answer:
        return self.answer(self.close_request(generation, version, kind, host))

    def strike(self, generation: int) -> Answer:
        return self.answer(StrikeRoom(self.number(), PROJECT, ROOM, generation))

    def write(self, *parts: Part) -> list[Ack]:
        return [ack for acks in of(self.do(*parts), Acks) for ack in acks.acks]

    # What can be seen.

    def room(self, uid: str = ROOM) -> Room:
        room = self.shard.room(uid)
        assert room is not None
        return room

    def stored(self, granted: Granted, uid: str = ROOM) -> list[bytes]:
        """What a host is given after the grant."""
        if granted.base is None:
            return []
        return [item.data for item in self.volume.read_items(uid, granted.base, granted.upto)]

    def status(self, uid: str = ROOM) -> RoomNews:
        return self.shard.news(uid, self.now)


def of(outputs: list[Output], kind: type[T]) -> list[T]:
    return [output for output in outputs if isinstance(output, kind)]


def part(
    stream: int,
    generation: int,
    version: int,
    *,
    prev: int | None = None,
    data: bytes | None = None,
    base: bool = False,
    last: bool = True,
    whole: bytes | None = None,
    tick: int | None = None,
    alarm_ms: int | None = None,
    uid: str = ROOM,
) -> Part:
    """A record or base; `whole` is what the checksum is of, where this is its last piece."""
    data = b"%d.%d" % (generation, version) if data is None else data
    return Part(
        stream,
        uid,
        generation,
        version - 1 if prev is None else prev,
        version,
        version * 10 if tick is None else tick,
        data,
        last,
        base,
        alarm_ms,
        zlib.crc32(data if whole is None else whole),
    )
