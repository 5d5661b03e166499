"""Hints that routers share through Valkey: where rooms run, and what an address did lately.

All of it may be lost, old or wrong. A call takes at most 200 ms; after a few that failed nothing is asked for
a while, so that a router without Valkey is as fast as one with it. No method raises: without an answer a
route is not known, and a count is 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from playhall_common import logs
from playhall_router.breaker import Breaker
from playhall_router.wake import Route
from playhall_router.windows import WINDOW_S

if TYPE_CHECKING:
    from redis.asyncio import Redis

__all__ = ["Hints"]

T = TypeVar("T")

CALL_S = 0.2
_ROUTE_TTL_S = 3600
_PREFIX = "playhall:"

log = logs.get_logger()


class _StoredRoute(msgspec.Struct, array_like=True):
    generation: int
    host_id: str
    address: str


_decode = msgspec.msgpack.Decoder(_StoredRoute).decode
_encode = msgspec.msgpack.Encoder().encode


class Hints:
    """Valkey, as a client; with an empty URL nothing is shared."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._redis: Redis | None = None
        self._breaker = Breaker()

    async def close(self) -> None:
        """Close the connections."""
        if self._redis is not None:
            await self._redis.aclose()

    async def route(self, room_uid: str) -> Route | None:
        """Where a room ran when somebody last wrote it down."""
        data: object = await self._ask(lambda redis: redis.get(_route_key(room_uid)), None)
        if not isinstance(data, bytes):
            return None
        try:
            stored = _decode(data)
        except msgspec.DecodeError:
            return None
        return Route(stored.generation, stored.host_id, stored.address)

    async def store_route(self, room_uid: str, route: Route) -> None:
        """Write down where a room runs."""
        data = _encode(_StoredRoute(route.generation, route.host_id, route.address))
        await self._ask(lambda redis: redis.set(_route_key(room_uid), data, ex=_ROUTE_TTL_S), None)

    async def count(self, key: str, now_s: float) -> int:
        """Count one more of something in this minute; gives how many it were, over all routers."""
        name = f"{_PREFIX}window:{int(now_s // WINDOW_S)}:{key}"

        async def ask(redis: Redis) -> Any:
            async with redis.pipeline(transaction=False) as pipe:
                pipe.incr(name)
                pipe.expire(name, 2 * WINDOW_S)
                return (await pipe.execute())[0]

        counted: object = await self._ask(ask, 0)
        return counted if isinstance(counted, int) else 0

    async def _ask(self, ask: Callable[[Redis], Awaitable[T]], otherwise: T) -> T:
        loop = asyncio.get_running_loop()
        if not self._url or not self._breaker.allows(loop.time()):
            return otherwise
        from redis.exceptions import RedisError  # with the first call, not with every start

        try:
            async with asyncio.timeout(CALL_S):
                answer = await ask(self._connect())
        except (RedisError, OSError, TimeoutError) as error:
            if self._breaker.failed(loop.time()):
                log.warning("hints_away", error=str(error) or type(error).__name__)
            return otherwise
        self._breaker.worked()
        return answer

    def _connect(self) -> Redis:
        if self._redis is None:
            from redis.asyncio import Redis

            self._redis = Redis.from_url(self._url, socket_connect_timeout=CALL_S, max_connections=16)
        return self._redis


def _route_key(room_uid: str) -> str:
    return f"{_PREFIX}route:{room_uid}"
