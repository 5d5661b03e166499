"""The router: its sessions from the socket to the room, their timers, and their end in a drain."""

from __future__ import annotations

import asyncio
import random
import secrets
import time

from playhall.engine import frames
from playhall.engine.codes import CloseCode
from playhall_common import logs
from playhall_router import meters
from playhall_router.admission import Admission, AdmissionLimits, RefusedError
from playhall_router.attach_stream import AttachStream
from playhall_router.config import RouterConfig
from playhall_router.hosts import Hosts
from playhall_router.redis_hints import Hints
from playhall_router.registry import Registry
from playhall_router.rooms import Rooms
from playhall_router.session import Session
from playhall_router.tasks import Tasks
from playhall_router.voice_tokens import VoiceTokens
from playhall_router.wake import Route
from playhall_router.wire import Wire

__all__ = ["Router"]

ADMIT_S = 10.0
_SWEEP_S = 0.25
_POLL_S = 0.025
_DRAIN_STEP_S = 0.1
_MAX_SPREAD_MS = 2000

log = logs.get_logger()


class Router:
    """See the module's text. It is the `Owner` of its sessions."""

    def __init__(self, config: RouterConfig) -> None:
        secret = config.service_secret
        self.router_id = secrets.token_hex(8)
        self.registry = Registry(config.data_address, secret)
        self.hosts = Hosts(config.hosts, self.registry, self.router_id)
        self.hints = Hints(config.redis_url)
        self.rooms = Rooms(self.registry, self.hosts, self.hints, router_id=self.router_id, secret=secret)
        self.ready = False
        self._config = config
        self._voice = VoiceTokens(config.voice_address, secret)
        limits = AdmissionLimits(config.guests_per_minute, config.rooms_per_minute)
        self._admission = Admission(self.registry, self.hints, config.guest_secret, limits)
        self._sessions: set[Session] = set()
        self._slow: set[Session] = set()
        self._poll: asyncio.TimerHandle | None = None
        self._tasks = Tasks()

    def start(self) -> None:
        """Begin to listen to hosts, and to time."""
        self.hosts.start(self.rooms.stopped)
        self.rooms.start()
        self._tasks.start(self._sweep(), "sweep")
        self.ready = True

    async def close(self) -> None:
        """End everything."""
        if self._poll is not None:
            self._poll.cancel()
        await self._tasks.close()
        await self.rooms.close()
        await self.hosts.close()
        await self._voice.close()
        await self.registry.close()
        await self.hints.close()

    # Transports.

    @property
    def has_room(self) -> bool:
        """Whether one more connection may come."""
        return self.ready and len(self._sessions) < self._config.max_connections

    def open(self, wire: Wire) -> Session:
        """A client has connected."""
        now = asyncio.get_running_loop().time()
        session = Session(self, wire, secrets.token_hex(8), now=now, connected_at_ms=int(time.time() * 1000))
        self._sessions.add(session)
        meters.opened.inc()
        return session

    # Sessions.

    def admit(self, session: Session, hello: frames.Hello) -> None:
        self._tasks.start(self._admit(session, hello), "admit")

    def wants(self, session: Session) -> None:
        self.rooms.wants(session)

    def stream_for(self, session: Session) -> tuple[AttachStream, Route] | None:
        return self.rooms.stream_for(session)

    def joined(self, session: Session) -> None:
        self.rooms.joined(session)
        if self._config.voice_address:
            self._tasks.start(self._send_voice(session), "voice")

    def slept(self, session: Session, route: Route) -> None:
        self.rooms.slept(session, route)

    def slow(self, session: Session) -> None:
        self._slow.add(session)
        if self._poll is None:
            self._poll = asyncio.get_running_loop().call_later(_POLL_S, self._poll_slow)

    def gone(self, session: Session) -> None:
        self._sessions.discard(session)
        self._slow.discard(session)
        self.rooms.leave(session)
        meters.closed.labels(str(session.close_code)).inc()
        meters.unreliable_dropped.inc(session.dropped)
        hello, identity = session.connection.hello, session.connection.identity
        log.info(
            "connection_over",
            project=hello.project if hello else None,
            room=hello.room if hello else None,
            player=identity.player if identity else None,
            sdk=hello.sdk if hello else None,
            connection=session.connection_id,
            joined=session.connection.joined_once,
            code=session.close_code,
            reason=session.close_reason,
            seconds=round(asyncio.get_running_loop().time() - session.opened_at, 3),
        )

    async def _admit(self, session: Session, hello: frames.Hello) -> None:
        loop = asyncio.get_running_loop()
        wire = session.wire
        try:
            async with asyncio.timeout(ADMIT_S):
                identity = await self._admission.identify(hello, origin=wire.origin, address=wire.address)
                session.connection.authenticated(identity)
                entry = await self._admission.find_room(hello, address=wire.address)
        except RefusedError as error:
            session.refuse(error.code, error.text, loop.time(), error.retry_after_ms)
            return
        except TimeoutError:
            session.refuse(
                CloseCode.WAKE_TIMEOUT, f"the room was not found within {ADMIT_S:g} s", loop.time()
            )
            return
        if session in self._sessions:
            self.rooms.enter(session, entry)
            session.placed_in(entry.room.room_uid, entry.room.room_type, loop.time())

    async def _send_voice(self, session: Session) -> None:
        hello, identity = session.connection.hello, session.connection.identity
        if hello is not None and identity is not None:
            frame = await self._voice.frame(hello.project, session.room_uid, identity.player)
            if frame is not None:
                session.send(frame, asyncio.get_running_loop().time())

    # Time.

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_SWEEP_S)
            now = loop.time()
            for session in [session for session in self._sessions if session.due(now)]:
                session.timer(now)
            self.rooms.sweep(now)
            self.rooms.measure()
            meters.connections.set(len(self._sessions))
            meters.slow.set(len(self._slow))

    def _poll_slow(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._slow = {session for session in self._slow if session.poll(now)}
        self._poll = loop.call_later(_POLL_S, self._poll_slow) if self._slow else None

    # The end.

    async def drain(self) -> None:
        """Send everybody to other routers: after a pause in which readiness says no, and then not all at
        once.
        """
        self.ready = False
        if self._sessions:
            await asyncio.sleep(self._config.drain_delay_s)
        rng = random.Random()
        step = max(1, int(self._config.closes_per_s * _DRAIN_STEP_S))
        spread_ms = min(_MAX_SPREAD_MS, 1000 * len(self._sessions) // self._config.closes_per_s)
        while self._sessions:
            now = asyncio.get_running_loop().time()
            for session in list(self._sessions)[:step]:
                session.refuse(CloseCode.ROOM_MOVED, "the router stops", now, rng.randrange(spread_ms + 1))
            await asyncio.sleep(_DRAIN_STEP_S)
