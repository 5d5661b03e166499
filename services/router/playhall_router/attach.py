"""The router's end of an Attach stream: links, what goes up in batches, and what comes down checked.

A link is one connection's attachment to one generation. Its number is never used twice on a stream, so that a
frame meant for an attachment that has ended can meet no other. What comes from a room host is not trusted:
tenant code runs in its process. A frame is passed on only to links of exactly the generation it names, only
if it is of a type that rooms send, and only if it is not too large; what else comes is dropped, or closes the
one connection it concerns.

This is a core: `received` takes a response and calls the links' clients, `batch` gives the next request. The
stream itself is in `attach_stream.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from playhall.api.roomhost.v1 import roomhost_pb2 as pb
from playhall.engine.backend import Downlink, Lane
from playhall.engine.codes import CloseCode
from playhall_router.clock import RoomClock
from playhall_router.connection import Welcome
from playhall_router.limits import ROOM_FRAMES
from playhall_router.uplink import Uplink
from playhall_router.wake import Route

__all__ = ["CREDIT_STEP", "SILENT_S", "Attachment", "Client", "Ended", "JoinRequest", "Link"]

SILENT_S = 3.0
"""A host that says nothing for this long is lost."""
CREDIT_BESIDE = 64
"""Links whose credit is told beside frames; that of more goes after them."""
CREDIT_STEP = 16 * 1024
"""Credit that is told at once: half of what a room host may have on the way. Less is told with a beat."""
_APP_CODES = range(4000, 5000)
_MAX_TICK_RATE = 255
_MAX_TICK = (1 << 53) - 1


class Client(Protocol):
    """A connection as an attachment sees it."""

    @property
    def lane(self) -> Lane:
        """The way out to it."""

    def joined(self, welcome: Welcome, clock: RoomClock, now: float) -> None:
        """The room took it in."""

    def asleep(self, version: int, now: float) -> None:
        """The room sleeps; the link is gone."""

    def closed(self, code: int, reason: str, retry_after_ms: int, now: float) -> None:
        """The room wants it closed; the link is gone."""


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """What a room is told of somebody who wants in."""

    room_uid: str
    room_type: str
    player: str
    meta: bytes
    schema_hash: bytes
    session: bytes
    attempt: int
    connected_at_ms: int
    was_joined: bool
    resume: bytes
    connection_id: str
    credit_bytes: int


@dataclass(slots=True, eq=False)
class Link:
    """One connection's attachment to one generation."""

    number: int
    room_uid: str
    generation: int
    client: Client
    forward: Callable[[bytes], bool]
    """Queues a frame of the client's. False: the queue is full; see `Attachment.blame`."""
    room_no: int = 0
    """The room's number on this stream; 0 until it joined."""
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """The host says that a generation does not run there, or not for long."""

    room_uid: str
    generation: int
    reason: pb.RoomEnded.Reason.ValueType
    code: int


class Attachment:
    """One room host process, attached. `route.generation` plays no part here."""

    def __init__(self, host_id: str, now: float, on_first: Callable[[], object] = lambda: None) -> None:
        """`on_first` is called when something waits to go up and nothing did."""
        self.host_id = host_id
        self.uplink = Uplink(on_first=on_first)
        self._downlink = Downlink(ROOM_FRAMES, CREDIT_STEP)
        self._links: dict[int, Link] = {}
        self._clocks: dict[int, RoomClock] = {}
        self._next = 1
        self._heard_at = now
        self._welcomed = False
        self._all_credit = False

    @property
    def links(self) -> Iterable[Link]:
        """Everybody who is attached."""
        return self._links.values()

    @property
    def dropped_frames(self) -> int:
        """Frames that came down for nobody, or that no room may send."""
        return self._downlink.dropped

    def __len__(self) -> int:
        return len(self._links)

    def silent(self, now: float) -> bool:
        """Whether the host has said nothing for so long that it is lost."""
        return now - self._heard_at >= SILENT_S

    # Up.

    def join(self, client: Client, route: Route, request: JoinRequest) -> Link:
        """Ask a room in."""
        number = self._next
        link = Link(number, request.room_uid, route.generation, client, partial(self.uplink.push, number))
        self._next += 1
        self._links[number] = link
        client.lane.generation = route.generation
        client.lane.owes = False
        self._downlink.lanes[number] = client.lane
        join = pb.Join(
            room_uid=request.room_uid, generation=route.generation, player=request.player, meta=request.meta,
            schema_hash=request.schema_hash, session=request.session, attempt=request.attempt,
            connected_at_ms=request.connected_at_ms, was_joined=request.was_joined, resume=request.resume,
            connection_id=request.connection_id, credit_bytes=request.credit_bytes,
            room_type=request.room_type,
        )  # fmt: skip
        self.uplink.push_control(pb.Up(link=link.number, join=join))
        return link

    def blame(self, link: Link) -> Link | None:
        """Drop what the worst has in the queue that `link` found full. Who that is, to be closed; None: who
        is gone.
        """
        worst = self.uplink.drop_worst()
        return self._links.get(worst) if worst else link

    def leave(self, link: Link, clean: bool) -> None:
        """The connection is gone."""
        if link.number in self._links:
            self.drop([link])
            self.uplink.push_control(pb.Up(link=link.number, leave=pb.Leave(clean=clean)))

    def batch(self, now: float, *, all_credit: bool = False) -> pb.AttachRequest | None:
        """The next request, if there is anything to say. `all_credit`: report even little credit, now or with
        the next one: frames do not wait for what is asked of many sockets.
        """
        self._all_credit |= all_credit
        request = pb.AttachRequest(items=self.uplink.take() if self.uplink else ())
        owing = len(self._links) if self._all_credit else len(self._downlink.owing)
        if owing and (owing <= CREDIT_BESIDE or not request.items):
            links, totals = self._downlink.report(now, all_of_it=self._all_credit)
            self._all_credit = False
            request.drained_links.extend(links)
            request.drained_bytes.extend(totals)
        return request if request.items or request.drained_links else None

    @property
    def owes_credit(self) -> bool:
        """Whether a client was sent much that has not been reported as drained."""
        return bool(self._downlink.owing)

    # Down.

    def received(self, response: pb.AttachResponse, now: float) -> list[Ended]:
        """The host said something. Raises ValueError where another host answers than was meant, or what it
        says is no run of frames.
        """
        self._heard_at = now
        if not self._welcomed:
            self._check_welcome(response)
        for clock in response.clocks:
            known = self._clocks.get(clock.room_no)
            if known is not None and clock.tick <= _MAX_TICK:
                known.report(clock.tick, clock.fraction, now)
        ended: list[Ended] = []
        for down in response.items:
            if down.frames:
                self._frames(down.frames, now)
                continue
            control = down.WhichOneof("control")
            if control == "ended":
                ended.append(Ended(down.ended.room_uid, down.generation, down.ended.reason, down.ended.code))
            elif control is not None:
                for link in self._meant(down):
                    self._control(control, down, link, now)
        return ended

    def members(self, room_uid: str, generation: int) -> list[Link]:
        """Who is attached to this generation of a room."""
        return [
            link
            for link in self._links.values()
            if link.room_uid == room_uid and link.generation == generation
        ]

    def drop(self, links: Iterable[Link]) -> None:
        """These attachments are over on the host's side."""
        for link in links:
            self._links.pop(link.number, None)
            self._downlink.lanes.pop(link.number, None)
            link.ended = True

    def _check_welcome(self, response: pb.AttachResponse) -> None:
        if response.welcome.host_id != self.host_id:
            raise ValueError(f"another host answers: {response.welcome.host_id!r}")
        self._welcomed = True

    def _frames(self, run: bytes, now: float) -> None:
        for number in self._downlink.deliver(run, now):
            link = self._links.get(number)
            if link is not None:
                self._close(link, CloseCode.ROOM_STOPPED, "the room sent what no room may send", 0, now)

    def _meant(self, down: pb.Down) -> list[Link]:
        found = (self._links.get(number) for number in down.links)
        meant = [link for link in found if link is not None and link.generation == down.generation]
        self._downlink.dropped += len(down.links) - len(meant)
        return meant

    def _control(self, control: str, down: pb.Down, link: Link, now: float) -> None:
        if control == "joined":
            self._joined(down.joined, link, now)
        elif control == "close":
            code = down.close.code if down.close.code in _APP_CODES else CloseCode.ROOM_STOPPED
            self._close(link, code, down.close.reason, down.close.retry_after_ms, now)
        elif control == "asleep":
            self.drop([link])
            link.client.asleep(down.asleep.version, now)

    def _joined(self, joined: pb.Joined, link: Link, now: float) -> None:
        if joined.tick > _MAX_TICK or not 0 < joined.tick_rate <= _MAX_TICK_RATE:
            self._close(link, CloseCode.ROOM_STOPPED, "the room's time makes no sense", 0, now)
            return
        link.room_no = joined.room_no
        clock = self._clocks.get(joined.room_no)
        if clock is None or clock.tick_rate != joined.tick_rate:
            clock = RoomClock(joined.tick_rate, joined.tick, joined.fraction, now)
            self._clocks[joined.room_no] = clock
            self._forget_clocks()
        fraction = min(joined.fraction, 255)
        welcome = Welcome(
            link.generation, joined.version, joined.tick, fraction, joined.tick_rate, joined.resumed
        )
        link.client.joined(welcome, clock, now)

    def _forget_clocks(self) -> None:
        """Drop the clocks of rooms nobody is in any more, once they are the most."""
        if len(self._clocks) > 2 * len(self._links) + 64:
            used = {link.room_no for link in self._links.values()}
            self._clocks = {number: clock for number, clock in self._clocks.items() if number in used}

    def _close(self, link: Link, code: int, reason: str, retry_after_ms: int, now: float) -> None:
        # The room hears of it in either case; it ignores links that it closed itself.
        self.leave(link, clean=False)
        link.client.closed(code, reason, retry_after_ms, now)
