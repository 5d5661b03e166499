"""The rooms that this router has connections for: who waits, who is in, and the flow that wakes each.

The shell of `RoomFlow`. It owns the Attach streams too, because a stream's end is news for every room on it.
`Rooms` is called from the loop only and never waits; what takes time runs as tasks that report back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.codes import CloseCode, ErrorCode
from playhall_common import logs
from playhall_common.errors import ApiError
from playhall_router import meters
from playhall_router.attach import Ended
from playhall_router.attach_stream import AttachStream
from playhall_router.hosts import Hosts, Refused
from playhall_router.redis_hints import Hints
from playhall_router.registry import Registry, RoomEntry
from playhall_router.session import Session
from playhall_router.tasks import Tasks
from playhall_router.wake import (
    Attach,
    Forget,
    Lose,
    Output,
    Ownership,
    Place,
    Reason,
    Refusal,
    Refuse,
    RoomFlow,
    Route,
    StoreHint,
)
from playhall_router.wake_queue import WakeQueue
from playhall_router.watch import Watches

__all__ = ["Room", "Rooms"]

_READ_S = 5.0
_OFFER_S = 0.25
_KEEP_S = 10.0
"""How long a room without connections is remembered, so that a reload finds it watched."""

log = logs.get_logger()


class Room:
    """A room, and this router's sessions of it."""

    def __init__(self, entry: RoomEntry) -> None:
        self.uid = entry.room.room_uid
        self.project = entry.room.project
        self.room_id = entry.room.room_id
        self.entry = entry
        self.deploy_seq = 0
        """Of the newest grant, as the shard says; 0: not heard."""
        self.flow = RoomFlow()
        self.waiting: set[Session] = set()
        self.attached: set[Session] = set()
        self.place: Place | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.empty_at: float | None = None
        self.running = False

    @property
    def people(self) -> int:
        """Sessions that wait or are in."""
        return len(self.waiting) + len(self.attached)


class Rooms:
    """See the module's text."""

    def __init__(
        self, registry: Registry, hosts: Hosts, hints: Hints, *, router_id: str, secret: str
    ) -> None:
        self._registry = registry
        self._hosts = hosts
        self._hints = hints
        self._router_id = router_id
        self._rooms: dict[str, Room] = {}
        self._streams: dict[tuple[str, str], AttachStream] = {}
        self._wakes = WakeQueue()
        self._tasks = Tasks()
        self._offering: set[str] = set()
        """Projects for whose draining processes places are being looked for."""
        self.read_first: Callable[[], object] = lambda: None
        """Called before a batch goes up to a room host: reads what clients have sent by then."""
        self._watches = Watches(
            registry, secret, router_id, on_status=self._heard_status, on_lost=self._lost_shard
        )

    def start(self) -> None:
        """Begin to find places for rooms whose processes drain."""
        self._tasks.start(self._offer_places(), "places")

    def __len__(self) -> int:
        return len(self._rooms)

    def measure(self) -> None:
        """Put into the metrics what changes all the time."""
        meters.rooms.set(len(self._rooms))
        meters.streams.set(len(self._streams))
        meters.uplink_bytes.set(sum(stream.attachment.uplink.size for stream in self._streams.values()))
        meters.wakes_waiting.set(len(self._wakes))
        meters.wakes_running.set(self._wakes.running)

    async def close(self) -> None:
        """End streams and wakes."""
        await self._watches.close()
        await self._tasks.close()

    async def ownership(self, room_uid: str) -> Ownership | None:
        """What the shard says of a room; None while it is being woken here. E_UNAVAILABLE."""
        room = self._rooms.get(room_uid)
        if room is not None and room.flow.placing:
            return None
        return await self._watches.read(room_uid, timeout=_READ_S)

    # Sessions.

    def enter(self, session: Session, entry: RoomEntry) -> None:
        """A session is for this room; from now on it may wait for it."""
        uid = entry.room.room_uid
        room = self._rooms.get(uid)
        if room is None:
            room = self._rooms[uid] = Room(entry)
            self._watches.watch(uid)
            self._tasks.start(self._read_hint(room), f"hint {uid}")
        if not room.people:
            # Who is in plays on the build of before, and after a crash comes back to it, whoever comes then.
            room.entry = entry
        room.empty_at = None
        room.waiting.add(session)

    def wants(self, session: Session) -> None:
        """The session waits for its room."""
        room = self._rooms.get(session.room_uid)
        if room is not None:
            room.attached.discard(session)
            room.waiting.add(session)
            room.flow.wanted(_now())
            self._carry_out(room)
            if room.flow.placing:
                session.waking(_now())

    def stream_for(self, session: Session) -> tuple[AttachStream, Route] | None:
        """The stream to where the session's room runs; the session counts as attached."""
        room = self._rooms.get(session.room_uid)
        route = room.flow.route if room is not None else None
        if room is None or route is None:
            return None
        room.waiting.discard(session)
        room.attached.add(session)
        return self._stream(route), route

    def joined(self, session: Session) -> None:
        """The room took the session in."""
        room = self._rooms.get(session.room_uid)
        if room is not None:
            room.flow.joined()

    def slept(self, session: Session, route: Route) -> None:
        """The session's room sleeps."""
        room = self._rooms.get(session.room_uid)
        if room is not None:
            room.flow.slept(route)

    def leave(self, session: Session) -> None:
        """The session is over."""
        room = self._rooms.get(session.room_uid)
        if room is None:
            return
        room.waiting.discard(session)
        room.attached.discard(session)
        if not room.waiting:
            room.flow.unwanted()
        if not room.people:
            room.empty_at = _now()

    def sweep(self, now: float) -> None:
        """Forget rooms that nobody has asked for in a while."""
        for room in list(self._rooms.values()):
            if room.empty_at is not None and now - room.empty_at >= _KEEP_S and not room.flow.placing:
                del self._rooms[room.uid]
                self._watches.unwatch(room.uid)
                if room.timer is not None:
                    room.timer.cancel()

    # What the flow says.

    def _carry_out(self, room: Room) -> None:
        """Carry out what the flow says. What that leads to is carried out by the same loop, not within it."""
        if room.running:
            return
        room.running = True
        try:
            while outputs := room.flow.take_outputs():
                for output in outputs:
                    self._do(room, output)
        finally:
            room.running = False
        self._arm(room)

    def _do(self, room: Room, output: Output) -> None:
        now = _now()
        match output:
            case Attach():
                # Who was in before a failover comes before newcomers, and has its seat (protocols, M7).
                for session in sorted(room.waiting, key=lambda each: each.rank):
                    session.attach(now)
            case Lose(route):
                for session in [each for each in room.attached if each.route == route]:
                    room.attached.discard(session)
                    session.lost(now)
            case Refuse(code, text, retry_after_ms):
                for session in list(room.waiting):
                    session.refuse(code, text, now, retry_after_ms)
            case Place():
                self._queue(room, output)
            case StoreHint(route):
                self._tasks.start(self._hints.store_route(room.uid, route), f"store {room.uid}")
            case Forget():
                self._registry.forget(room.project, room.room_id)

    def _arm(self, room: Room) -> None:
        if room.timer is not None:
            room.timer.cancel()
            room.timer = None
        at = room.flow.next_timer()
        if at is not None:
            room.timer = asyncio.get_running_loop().call_at(at, self._timer, room)

    def _timer(self, room: Room) -> None:
        room.timer = None
        room.flow.timer(_now())
        self._carry_out(room)

    # Wakes.

    def _queue(self, room: Room, place: Place) -> None:
        room.place = place
        for session in list(room.waiting):
            session.waking(_now())
        self._wakes.add(room.uid, room.project, room.people)
        self._start_wakes()

    def _start_wakes(self) -> None:
        for uid in self._wakes.take():
            room = self._rooms.get(uid)
            if room is None or room.place is None:
                self._wakes.done(uid)
            else:
                self._tasks.start(self._wake(room, room.place), f"wake {uid}")

    async def _wake(self, room: Room, place: Place) -> None:
        begun = _now()
        answer: Route | Refused = Refused(Refusal.UNAVAILABLE)
        try:
            answer = await self._place(room, place)
        finally:
            self._wakes.done(room.uid)
            if isinstance(answer, Route):
                room.flow.started(answer, _now())
            else:
                room.flow.refused(
                    answer.refusal,
                    _now(),
                    code=answer.code,
                    text=answer.text,
                    retry_after_ms=answer.retry_after_ms,
                )
            meters.wake_seconds.labels(_facts(answer).get("refusal", "started")).observe(_now() - begun)
            log.info(
                "room_woken" if isinstance(answer, Route) else "wake_refused",
                project=room.project, room=room.room_id, room_uid=room.uid, reason=place.reason.name.lower(),
                seconds=round(_now() - begun, 3), **_facts(answer),
            )  # fmt: skip
            self._carry_out(room)
            self._start_wakes()

    async def _place(self, room: Room, place: Place) -> Route | Refused:
        refused = await self._look_up(room, place)
        if refused is not None:
            return refused
        if room.entry.type is None:
            text = f"the live build has no room type {room.entry.room.room_type!r}"
            return Refused(Refusal.FAILED, CloseCode.WRONG_ROOM_TYPE, text)
        return await self._hosts.start_room(room.entry, place.reason, place.host_id)

    async def _look_up(self, room: Room, place: Place) -> Refused | None:
        """The room's build: a crash comes back on the one that died; everything else on what is live now."""
        crashed = place.reason is Reason.CRASH and not place.fresh
        if crashed and room.deploy_seq in (0, room.entry.build.deploy_seq):
            return None
        try:
            entry = await self._registry.lookup(room.project, room.room_id, room.deploy_seq if crashed else 0)
        except ApiError as error:
            if error.code is ErrorCode.UNKNOWN:
                return Refused(Refusal.DELETED)
            # Without data, what is known of a crashed room must do; the shard refuses too old a build.
            return None if crashed else Refused(Refusal.UNAVAILABLE, text=error.message)
        if entry.room.room_uid != room.uid:
            return Refused(Refusal.DELETED)
        room.entry = entry
        return None

    # What is heard.

    async def _read_hint(self, room: Room) -> None:
        route = await self._hints.route(room.uid)
        if route is not None:
            room.flow.hinted(route, _now())
            self._carry_out(room)

    def _heard_status(self, room_uid: str, status: Ownership, owner: Route, deploy_seq: int) -> None:
        room = self._rooms.get(room_uid)
        if room is not None:
            room.deploy_seq = deploy_seq
            room.flow.status(status, owner, _now())
            self._carry_out(room)

    def _lost_shard(self, room_uid: str) -> None:
        room = self._rooms.get(room_uid)
        if room is not None:
            room.flow.shard_lost()

    # Attach streams.

    def _stream(self, route: Route) -> AttachStream:
        key = (route.host_id, route.address)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = AttachStream(
                route, router_id=self._router_id, now=_now(), on_ended=self._ended,
                host_token=self._host_token, read_first=lambda: self.read_first(),
            )  # fmt: skip
            self._tasks.start(self._run(stream, key), f"attach {route.address}")
        return stream

    async def _run(self, stream: AttachStream, key: tuple[str, str]) -> None:
        try:
            await stream.run()
        finally:
            del self._streams[key]
            meters.inputs_dropped.inc(stream.attachment.uplink.dropped)
            meters.frames_refused.inc(stream.attachment.dropped_frames)
            self._lost_stream(stream)

    def _lost_stream(self, stream: AttachStream) -> None:
        """Everybody on it waits again. The flows decide whether to attach anew or to wake."""
        lost = {(link.room_uid, link.generation) for link in stream.attachment.links}
        for room_uid, generation in lost:
            room = self._rooms.get(room_uid)
            if room is not None:
                self._lose(room, Route(generation, stream.host_id, stream.address))

    def _lose(self, room: Room, route: Route) -> None:
        """Attachments to this route are over, whether or not the flow still thinks of it."""
        now = _now()
        room.flow.failed(route, now)
        self._do(room, Lose(route))
        self._carry_out(room)

    def _ended(self, stream: AttachStream, ended: Ended) -> None:
        """A host says that a generation is not there, or not for long."""
        room = self._rooms.get(ended.room_uid)
        if room is None:
            return
        route = Route(ended.generation, stream.host_id, stream.address)
        if not (room.flow.knows(route) or any(session.route == route for session in room.attached)):
            return  # no host speaks for another, nor of what has long been over
        match ended.reason:
            case pb.RoomEnded.REASON_CLOSING:
                room.flow.closing(route, _now())
                self._carry_out(room)
            case pb.RoomEnded.REASON_NOT_HERE:
                room.flow.unknown(route, _now())
                self._do(room, Lose(route))
                self._carry_out(room)
            case pb.RoomEnded.REASON_STOPPED:
                self._stop(room, route, ended.code)
            case pb.RoomEnded.REASON_RELEASED | pb.RoomEnded.REASON_FENCED:
                moved = any(session.route == route for session in room.attached)
                room.flow.ended(route, _now(), moved=moved)
                self._do(room, Lose(route))
                self._carry_out(room)

    def stopped(self, room_uid: str, route: Route, code: int) -> None:
        """A supervisor says that the room blocked its process, which it kills for that. May be said again."""
        room = self._rooms.get(room_uid)
        if room is None or room.flow.is_over(route.generation) or not room.flow.knows(route):
            return
        # The process may have been silent for long enough that its people wait for it already.
        is_newest = room.flow.route is None or room.flow.route == route
        self._stop(room, route, code, others=list(room.waiting) if is_newest else [])

    def _stop(self, room: Room, route: Route, code: int, others: Iterable[Session] = ()) -> None:
        """Room code raised: this is no failover, and everybody hears of it; `others` too, who wait."""
        now = _now()
        code = code if 4000 <= code < 5000 else CloseCode.ROOM_STOPPED
        for session in [*(each for each in room.attached if each.route == route), *others]:
            session.refuse(code, "the room stopped with an error", now)
        room.flow.ended(route, now, moved=False)
        self._carry_out(room)

    async def _offer_places(self) -> None:
        """Rooms with connections leave a process that drains only as there are places for them: look for
        those, again and again until the rooms have moved.
        """
        while True:
            projects = {self._drains(stream) for stream in self._streams.values()}
            for project in projects - {""} - self._offering:
                self._offering.add(project)
                self._tasks.start(self._offer_places_of(project), f"places {project}")
            await asyncio.sleep(_OFFER_S)

    async def _offer_places_of(self, project: str) -> None:
        try:
            places = await self._hosts.places(project)
        finally:
            self._offering.discard(project)
        streams = [stream for stream in self._streams.values() if self._drains(stream) == project]
        for index, stream in enumerate(streams):
            stream.offer_places((places + index) // len(streams))

    def _drains(self, stream: AttachStream) -> str:
        """The project of a process that drains while connections here are attached to it; else nothing."""
        found = self._hosts.placement.find(stream.host_id) if len(stream.attachment) else None
        return found[0] if found is not None and found[1].draining else ""

    async def _host_token(self, host_id: str) -> str:
        """A new token for a process: for the project and build that it runs."""
        found = self._hosts.placement.find(host_id)
        if found is None:
            return ""
        project, process = found
        return await self._registry.host_token(project, process.build_id, host_id)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _facts(answer: Route | Refused) -> dict[str, object]:
    if isinstance(answer, Route):
        return {"generation": answer.generation, "host_id": answer.host_id}
    return {"refusal": answer.refusal.name.lower(), "text": answer.text}
