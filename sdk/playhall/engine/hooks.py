"""Running room code: what it raises, what it returns to be awaited, and for how long.

Each run ends in exactly one call of its `then(error)`; of `then(result, error)` where room code is asked for
an answer. That is at once for a hook that is done when it returns, later for one that gave an awaitable
(settled, or out of time), never for one that was dropped. Work that must not happen in the middle of a hook
(the `on_leave` of a connection that the hook kicked) is deferred until the outermost hook has returned.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

from playhall.engine.outputs import AwaitOut, CancelOut, Output
from playhall.engine.profile import Profile
from playhall.engine.running import HookStack, Watch

__all__ = ["Hooks", "Then", "ThenAnswer"]

Then: TypeAlias = Callable[[BaseException | None], None]
ThenAnswer: TypeAlias = Callable[[Any, BaseException | None], None]

# How many awaitables may be unsettled: what one connection can cause, and all of a room together.
MAX_AWAITS_OF_LINK = 32
MAX_AWAITS = 1_024


@dataclass(frozen=True, slots=True)
class _Pending:
    hook: str
    link: int | None
    deadline: float
    timeout_s: float
    then: ThenAnswer


class Hooks(HookStack):
    """The hooks of one room that are running or waiting."""

    def __init__(
        self,
        emit: Callable[[Output], None],
        profile: Profile | None = None,
        watch: Watch | None = None,
    ) -> None:
        """With a `profile` hooks are timed; a `watch` follows them."""
        super().__init__(profile, watch)
        self.watch = watch
        self._emit = emit
        self._profile = profile
        self._of_link: dict[int, int] = {}
        self._next_token = 1

    @property
    def next_deadline(self) -> float | None:
        if not self._pending:
            return None
        deadline: float = min(pending.deadline for pending in self._pending.values())
        return deadline

    def has_room(self, link: int | None) -> bool:
        """Whether one more awaitable may be started for this connection, or for none."""
        if not self._pending:
            return True
        of_link = 0 if link is None else self._of_link.get(link, 0)
        return of_link < MAX_AWAITS_OF_LINK and len(self._pending) < MAX_AWAITS

    def run(
        self,
        hook: str,
        call: Callable[[], Any],
        then: Then,
        *,
        mono: float,
        timeout_s: float,
        link: int | None = None,
    ) -> None:
        """Call a hook that may be `def` or `async def`."""
        self.ask(hook, call, lambda _, error: then(error), mono=mono, timeout_s=timeout_s, link=link)

    def ask(
        self,
        hook: str,
        call: Callable[[], Any],
        then: ThenAnswer,
        *,
        mono: float,
        timeout_s: float,
        link: int | None = None,
    ) -> None:
        """Call room code that answers: `then` gets what it returned, or what its awaitable came to."""
        self.begin(hook)
        try:
            try:
                got = call()
            finally:
                self.end()
        except (KeyboardInterrupt, GeneratorExit):
            self.abandon()
            raise  # these end whoever runs the room, and are not the hook's
        except BaseException as error:
            self._tell(then, None, error)
        else:
            self.returned(hook, got, then, mono=mono, timeout_s=timeout_s, link=link)
        self.release()

    def returned(
        self, hook: str, got: Any, then: ThenAnswer, *, mono: float, timeout_s: float, link: int | None
    ) -> None:
        """A hook that was begun has returned this: it is done, or goes on where that can be awaited."""
        if got is None or not inspect.isawaitable(got):
            self._tell(then, got, None)
            return
        steps = got if self._profile is None else self._profile.stepped(hook, got)
        self._wait(_Pending(hook, link, mono + timeout_s, timeout_s, then), steps)

    def defer(self, call: Callable[[], None], *, nests: bool = False) -> None:
        """Call when no hook is on the stack: now, or as soon as the outermost has returned.

        What the call itself defers runs after it; before it goes on if it `nests`, as what goes through many
        steps does. Of those calls that do not, any number may be deferred at once: they leave no frames.
        """
        self._deferred.append((call, nests))
        if not self._depth:
            self._run_deferred()

    def holding(self) -> AbstractContextManager[None]:
        """What is deferred meanwhile waits until this ends: for what asks room code in the middle.

        Room code may defer at any time (`request_hibernate` in an interest's `sees`).
        """
        return self

    def settle(self, token: int, error: BaseException | None, result: Any = None) -> None:
        """An awaitable has ended. A token that is not known (it was dropped, or out of time) is ignored."""
        pending = self._take(token)
        if pending is not None:
            self._finish(pending, result, error)

    def expire(self, mono: float) -> None:
        """End every wait whose time is over, as if it had raised TimeoutError."""
        for token in [token for token, pending in self._pending.items() if pending.deadline <= mono]:
            pending = self._take(token)
            if pending is not None:
                self._emit(CancelOut(token))
                error = TimeoutError(f"{pending.hook} took over {pending.timeout_s:g} s")
                self._finish(pending, None, error)

    def drop(self, hook: str, link: int) -> None:
        """Cancel what waits for this hook of this connection, without calling its `then`."""
        for token, pending in list(self._pending.items()):
            if pending.hook == hook and pending.link == link:
                self._cancel(token)

    def stop(self) -> None:
        """Cancel everything that waits, and forget what is deferred: no more room code runs."""
        self._deferred.clear()
        for token in list(self._pending):
            self._cancel(token)

    def _cancel(self, token: int) -> None:
        self._take(token)
        self._emit(CancelOut(token))

    def _wait(self, pending: _Pending, awaitable: Any) -> None:
        token, self._next_token = self._next_token, self._next_token + 1
        self._pending[token] = pending
        if pending.link is not None:
            self._of_link[pending.link] = self._of_link.get(pending.link, 0) + 1
        self._emit(AwaitOut(token, awaitable, pending.timeout_s, pending.hook))

    def _take(self, token: int) -> _Pending | None:
        pending: _Pending | None = self._pending.pop(token, None)
        if pending is not None and pending.link is not None:
            self._of_link[pending.link] -= 1
            if not self._of_link[pending.link]:
                del self._of_link[pending.link]
        return pending

    def _finish(self, pending: _Pending, result: Any, error: BaseException | None) -> None:
        self.hold()
        self._tell(pending.then, result, error)
        self.release()

    def _tell(self, then: ThenAnswer, result: Any, error: BaseException | None) -> None:
        """Call what is to be called at the end of a hook that was begun."""
        try:
            then(result, error)
        except BaseException:
            self.abandon()
            raise
