"""The shell around a `ClientCore`: opens transports, moves frames, keeps the timer. It decides nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from playhall.client.core import ABNORMAL, ClientCore
from playhall.client.outputs import CloseTransport, Event, OpenTransport, Output, SendFrame
from playhall.client.transport import Dial, Transport
from playhall.engine.errors import PlayhallError

__all__ = ["Driver"]

# A transport closes within two seconds by itself; this is for one that does not keep its word.
CLOSE_S = 3.0
# While so much waits, writes wait for it.
CLOGGED_BYTES = 64 * 1024

_log = logging.getLogger("playhall.client")


class Driver:
    """Runs one core on the running event loop. `handle` gets its events in order, and must not raise."""

    def __init__(self, core: ClientCore, dial: Dial, handle: Callable[[Event], None]) -> None:
        self._core = core
        self._dial = dial
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        self._link: _Link | None = None
        self._closing: set[_Link] = set()
        self._timer: asyncio.TimerHandle | None = None
        # Kept here: what uvloop gives for a time that has come does not tell it.
        self._timer_at: float | None = None
        self._pumping = False

    @property
    def unsent(self) -> int:
        """How many bytes wait because the other side does not take them."""
        transport = self._link.transport if self._link is not None else None
        return transport.unsent if transport is not None else 0

    def now(self) -> float:
        """The time as the core is told it."""
        return self._loop.time()

    def pump(self) -> None:
        """Carry out what the core has put out. To be called after each call of it."""
        if self._pumping:
            return  # a listener called the client: the loop below goes on with what came of that
        self._pumping = True
        try:
            while outputs := self._core.take_outputs():
                for output in outputs:
                    self._carry_out(output)
        finally:
            self._pumping = False
        self._arm()

    async def wait_closed(self) -> None:
        """Wait until the transports that were closed are gone."""
        if self._closing:
            await asyncio.wait([link.gone for link in self._closing], timeout=CLOSE_S)

    def _carry_out(self, output: Output) -> None:
        match output:
            case SendFrame(data, unreliable):
                if self._link is not None and self._link.transport is not None:
                    self._link.transport.send(data, unreliable)
            case OpenTransport():
                self._link = _Link(self, self._loop)
                self._link.dial(self._dial)
            case CloseTransport(code, reason):
                link, self._link = self._link, None
                if link is not None:
                    self._closing.add(link)
                    link.gone.add_done_callback(lambda _: self._closing.discard(link))
                    link.close(code, reason)
            case _:
                self._handle(output)

    def _arm(self) -> None:
        at = self._core.next_timer()
        if at == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = None if at is None else self._loop.call_at(at, self._timer_due)

    def _timer_due(self) -> None:
        self._timer = self._timer_at = None
        self._core.timer(self.now(), clogged=self.unsent > CLOGGED_BYTES)
        self.pump()

    # What the link at hand reports; links of before do not.

    def link_opened(self, link: _Link) -> None:
        if link is self._link:
            self._core.opened(self.now())
            self.pump()

    def link_received(self, link: _Link, frame: bytes) -> None:
        if link is self._link:
            self._core.received(frame, self.now())
            self.pump()

    def link_violated(self, link: _Link, problem: str) -> None:
        if link is self._link:
            self._core.refuse(problem)
            self.pump()

    def link_closed(self, link: _Link, code: int, reason: str) -> None:
        if link is self._link:
            self._link = None
            self._core.closed(code, reason, self.now())
            self.pump()


class _Link:
    """One transport, from the attempt to open it to its end. The receiver of what comes over it."""

    def __init__(self, driver: Driver, loop: asyncio.AbstractEventLoop) -> None:
        self._driver = driver
        self._loop = loop
        self._dialling: asyncio.Task[None] | None = None
        self.transport: Transport | None = None
        self.gone: asyncio.Future[None] = loop.create_future()

    def dial(self, dial: Dial) -> None:
        self._dialling = self._loop.create_task(self._open(dial), name="playhall: connect")

    def close(self, code: int, reason: str) -> None:
        if self.transport is not None:
            self.transport.close(code, reason)
        elif self._dialling is not None:
            self._dialling.cancel()

    def received(self, frame: bytes) -> None:
        self._driver.link_received(self, frame)

    def violated(self, problem: str) -> None:
        self._driver.link_violated(self, problem)

    def closed(self, code: int, reason: str) -> None:
        if not self.gone.done():
            self.gone.set_result(None)
            self._driver.link_closed(self, code, reason)

    async def _open(self, dial: Dial) -> None:
        try:
            transport = await dial(self)
        except asyncio.CancelledError:
            self.closed(ABNORMAL, "")
            raise
        except PlayhallError as error:
            self.closed(error.code, error.message)
        except (OSError, TimeoutError) as error:
            self.closed(ABNORMAL, str(error) or "the connection could not be made in time")
        except Exception as error:
            _log.exception("connecting failed in a way it should not")
            self.closed(ABNORMAL, repr(error))
        else:
            if not self.gone.done():
                self.transport = transport
                self._driver.link_opened(self)
