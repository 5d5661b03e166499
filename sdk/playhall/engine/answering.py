"""Asking room code: the calls of clients, the requests of backends, and what becomes of what it answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from playhall.engine.answers import Answers
from playhall.engine.calls import CallRejected, Handler
from playhall.engine.codes import ERRORS, ErrorCode
from playhall.engine.connection import Message
from playhall.engine.faults import error_text, said_by, traceback_text
from playhall.engine.frames import Call, Reply, ReplyError, encode_server
from playhall.engine.links import Link, LinkState
from playhall.engine.outputs import AnswerOut, LogOut
from playhall.engine.payloads import Payload, encode_payload
from playhall.engine.room import Room
from playhall.engine.runtime import Runtime
from playhall.engine.saving import Saving
from playhall.engine.sending import Sending

__all__ = ["Answering"]

# Calls of one connection, and requests of all backends, that have no answer yet.
MAX_CALLS = 32
MAX_REQUESTS = 1_024
MAX_TEXT = 4_096
"""Bytes of an error's text."""

_TOO_MANY = "too many have no answer yet"


class Answering:
    """Runs what answers in one room. What it refuses itself leaves at once, all else as `Answers` says."""

    __slots__ = (
        "_answers",
        "_handlers",
        "_requests",
        "_room",
        "_runtime",
        "_saving",
        "_sending",
        "_unanswered",
        "waiting",
    )

    def __init__(self, runtime: Runtime, room: Room[Any, Any, Any], saving: Saving, sending: Sending) -> None:
        self._runtime = runtime
        self._room = room
        self._handlers: Mapping[str, Handler] = type(room)._handlers
        self._saving = saving
        self._sending = sending
        self._answers = Answers()
        self.waiting: Mapping[Link | None, object] = self._answers.waiting
        """The answers that wait."""
        self._unanswered: Counter[int] = Counter()
        self._requests: set[int] = set()

    @property
    def count(self) -> int:
        """How many answers there have been."""
        return self._answers.count

    def held(self, count: int) -> bool:
        """Whether one of the first `count` answers waits that somebody is still there to get."""
        return self._answers.held(count)

    # Calls

    def call(self, link: Link, frame: Call) -> None:
        """A call of a client that has joined."""
        handler = self._handlers.get(frame.name)
        if handler is None:
            self._refuse(link, frame, ErrorCode.UNKNOWN, f"no such call: {frame.name}")
        elif self._unanswered[link.number] >= MAX_CALLS or not self._runtime.hooks.has_room(link.number):
            self._refuse(link, frame, ErrorCode.LIMIT, _TOO_MANY)
        else:
            self._run_call(link, frame, handler)

    def _run_call(self, link: Link, frame: Call, handler: Handler) -> None:
        spec = handler.spec
        try:
            ask = spec.decode(frame.content)
        except ValueError as error:
            self._refuse(link, frame, ErrorCode.REJECTED, f"{spec.name} was not understood: {error}")
            return
        link.conn._client_tick = frame.seen
        self._unanswered[link.number] += 1
        method = getattr(self._room, handler.method)

        def answer(result: Any, error: BaseException | None) -> None:
            reply = self._reply_to(frame, spec.encode_reply, result, error, link.player)
            self._keep(link, lambda: self._deliver(link, reply))

        self._runtime.ask(f"call {spec.name}", lambda: method(link.conn, ask), answer, link=link.number)

    def _reply_to(
        self,
        frame: Call,
        encode: Callable[[Any], Payload],
        result: Any,
        error: BaseException | None,
        player: str,
    ) -> bytes:
        if error is None:
            try:
                return encode_server(Reply(frame.call, encode(result)))
            except Exception as problem:
                error = problem
        self._report(error, call=frame.name, player=player)
        return encode_server(ReplyError(frame.call, _http(ErrorCode.REJECTED), _failed(frame.name, error)))

    def _refuse(self, link: Link, frame: Call, code: ErrorCode, text: str) -> None:
        self._sending.reply(link, encode_server(ReplyError(frame.call, _http(code), text)))

    def _deliver(self, link: Link, reply: bytes) -> None:
        self._unanswered[link.number] -= 1
        if not self._unanswered[link.number]:
            del self._unanswered[link.number]
        if link.state is LinkState.JOINED:
            self._sending.reply(link, reply)

    # Requests

    def request(self, token: int, message: Message) -> None:
        """A backend's request. Answered by one AnswerOut of its token."""
        room = self._room
        if type(room).on_request is Room.on_request:
            self._runtime.emit(AnswerOut(token, error=ErrorCode.UNKNOWN, text="the room has no on_request"))
        elif len(self._requests) >= MAX_REQUESTS or not self._runtime.hooks.has_room(None):
            self._runtime.emit(AnswerOut(token, error=ErrorCode.LIMIT, text=_TOO_MANY))
        else:
            self._requests.add(token)
            self._runtime.ask(
                "on_request",
                lambda: room.on_request(message),
                lambda result, error: self._keep_answer(self._answer_to(token, result, error)),
            )

    def _answer_to(self, token: int, result: Any, error: BaseException | None) -> AnswerOut:
        if error is None:
            try:
                return AnswerOut(token, json=_json(result))
            except Exception as problem:
                error = problem
        self._report(error, hook="on_request")
        return AnswerOut(token, error=ErrorCode.REJECTED, text=_failed("on_request", error))

    def _keep_answer(self, answer: AnswerOut) -> None:
        def deliver() -> None:
            if answer.token in self._requests:
                self._requests.remove(answer.token)
                self._runtime.emit(answer)

        self._keep(None, deliver)

    def stop(self, reason: str) -> None:
        """The room is over: no request will be answered."""
        for token in sorted(self._requests):
            self._runtime.emit(AnswerOut(token, error=ErrorCode.UNAVAILABLE, text=reason))
        self._requests.clear()

    # What waits

    def _keep(self, link: Link | None, deliver: Callable[[], None]) -> None:
        self._answers.add(link, deliver, self._saving.next_moment())
        self.release()

    def flushed(self) -> None:
        """There was a flush."""
        self._answers.flushed(self._saving.last_moment)
        self.release()

    def release(self) -> None:
        """Deliver all that has nothing to wait for any more."""
        self._answers.release(self._saving.journal.durable)

    def _report(self, error: BaseException, **fields: Any) -> None:
        if isinstance(error, CallRejected):
            return
        fields |= {"tick": self._runtime.tick, "error": error_text(error)}
        self._runtime.emit(LogOut("error", "room.call_failed", fields, traceback_text(error)))


def _json(value: object) -> bytes:
    payload = encode_payload(value)
    if payload.format:
        raise TypeError("the answer to a request is JSON, not bytes")
    return payload.data


def _http(code: ErrorCode) -> int:
    return ERRORS[code].http


def _failed(what: str, error: BaseException) -> str:
    """Return what the caller is told: a rejection in the game's own words, an error as one."""
    said = said_by(error)  # not str(error), which may raise, or be no Unicode
    has_words = isinstance(error, CallRejected) and said != type(error).__name__
    text = said if has_words else f"{what} failed in the room: {said}"
    return text.encode()[:MAX_TEXT].decode(errors="ignore")
