"""The calls of a client that have no answer yet, and the futures that wait for it."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from typing_extensions import TypeVar

from playhall.client.core import ClientCore
from playhall.client.outputs import CallAnswered, CallFailed
from playhall.engine.calls import Call, CallSpec, call_spec_of
from playhall.engine.errors import PlayhallError

__all__ = ["CALL_S", "Calls"]

R = TypeVar("R")

CALL_S = 10.0


class Calls:
    """Makes calls on a core, and keeps a future for each until it has ended."""

    def __init__(self, core: ClientCore) -> None:
        self._core = core
        self._waiting: dict[int, tuple[CallSpec, asyncio.Future[Any]]] = {}

    def make(self, ask: Call[R], now: float, timeout: float) -> asyncio.Future[R]:
        """Make a call. Raises TypeError for one the schema does not declare, and what the core raises."""
        if type(ask) not in self._core.schema.calls:
            raise TypeError(f"{type(ask).__name__} is no call of the schema: Schema(calls=[...]) lists them")
        if not 0 < timeout < math.inf:
            raise ValueError(f"a timeout is a number of seconds above 0, not {timeout!r}")
        spec = call_spec_of(type(ask))
        number = self._core.call(spec.name, spec.encode(ask), now, timeout)
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting[number] = spec, future
        future.add_done_callback(lambda done: self._forget(number, done))
        return future

    def end(self, event: CallAnswered | CallFailed) -> None:
        """A call has ended."""
        spec, future = self._waiting.pop(event.call, (None, None))
        if spec is None or future is None or future.done():
            return
        if isinstance(event, CallFailed):
            future.set_exception(event.error)
            return
        try:
            future.set_result(spec.decode_reply(event.content))
        except ValueError as error:
            future.set_exception(PlayhallError(0, f"the reply to {spec.name} is not as declared: {error}"))

    def _forget(self, number: int, done: asyncio.Future[Any]) -> None:
        # Another connection's call may have the number by now.
        if done.cancelled() and self._waiting.get(number, (None, None))[1] is done:
            del self._waiting[number]
            self._core.forget_call(number)
