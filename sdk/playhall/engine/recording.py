"""What went between a room and its clients lately, and what the room logged: for the inspector.

Frames are kept as they are, which costs next to nothing; they are read when somebody looks, once each. What
is kept is bounded: MAX_LINES lines, and of each sort (messages, calls with their replies, owner writes, the
rest) the last MAX_MESSAGES, of MAX_BYTES together. So what clients send all the time pushes out no calls.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from playhall.engine.codes import ERRORS
from playhall.engine.errors import ProtocolError
from playhall.engine.frames import (
    CALL,
    MESSAGE,
    REPLY,
    UNRELIABLE,
    WRITE,
    Call,
    ClientFrame,
    Inputs,
    Message,
    Reply,
    ReplyError,
    ServerFrame,
    Unreliable,
    Write,
    decode_client,
    decode_server,
)
from playhall.engine.outputs import AnswerOut, LogOut, Output
from playhall.engine.schema import Schema
from playhall.engine.showing import cut, show_content, show_field, show_json, show_sized
from playhall.engine.wire import Reader

__all__ = ["MAX_BYTES", "MAX_LINES", "MAX_MESSAGES", "Recorder"]

MAX_MESSAGES = 200
MAX_BYTES = 1024 * 1024
MAX_LINES = 100
_MAX_TRACEBACK = 4_000
_MAX_ENTRIES = 8
"""Entities of a write, and inputs of a frame, that are shown."""
_BACKEND = ""
"""Who asks in requests: no player has this id."""


@dataclass(slots=True)
class _Entry:
    number: int
    wall: float
    tick: int
    from_client: bool
    player: str
    others: int
    size: int
    data: bytes
    # When it was noted, by the clock for measuring.
    at: float
    # What was read of it; from then on `data` is of no use.
    shown: dict[str, Any] | None = None
    # Of a call or request: its number, and what it was answered with.
    call: int | None = None
    reply: _Entry | None = None


class _Kept:
    """The last entries of one sort, oldest first."""

    def __init__(self) -> None:
        self.entries: deque[_Entry] = deque()
        self._bytes = 0

    def add(self, entry: _Entry) -> list[_Entry]:
        """Keep it, and return those there is no place for any more."""
        self.entries.append(entry)
        return self.grow(entry.size)

    def grow(self, size: int) -> list[_Entry]:
        """One of them has so many bytes more."""
        self._bytes += size
        gone: list[_Entry] = []
        while len(self.entries) > MAX_MESSAGES or self._bytes > MAX_BYTES:
            entry = self.entries.popleft()
            self._bytes -= entry.size + (0 if entry.reply is None else entry.reply.size)
            gone.append(entry)
        return gone


class Recorder:
    """The last messages and log lines of one room. `clock` (seconds) measures how long calls took."""

    def __init__(self, schema: Schema[Any, Any], clock: Callable[[], float]) -> None:
        self._schema = schema
        self._clock = clock
        self._messages, self._calls, self._writes, self._rest = _Kept(), _Kept(), _Kept(), _Kept()
        self._sorts = {
            MESSAGE: self._messages,
            UNRELIABLE: self._messages,
            CALL: self._calls,
            REPLY: self._calls,
            WRITE: self._writes,
        }
        # Calls that are kept and have no reply yet, by who asked and number.
        self._asked: dict[tuple[str, int], _Entry] = {}
        self._count = 0
        self._lines: deque[dict[str, Any]] = deque(maxlen=MAX_LINES)
        self._line_count = 0

    def noted(self, output: Output, wall: float, tick: int) -> None:
        """What the room has put out: of interest are its log, and answers to requests."""
        if isinstance(output, LogOut):
            self._log(output, wall, tick)
        elif isinstance(output, AnswerOut):
            self._answer(output, wall, tick)

    def requested(self, token: int, content: object, wall: float, tick: int) -> None:
        """A backend's request."""
        content, size = show_sized(content)
        entry = self._entry(True, [_BACKEND], b"", wall, tick, size)
        entry.shown = {"kind": "request", "call": token, "name": "request", "content": content}
        self._ask(entry, token)

    def received(self, player: str, data: bytes, wall: float, tick: int) -> None:
        """A frame of a player's client, which could be read."""
        entry = self._entry(True, [player], data, wall, tick, len(data))
        if data[0] == CALL:
            self._ask(entry, _call_of(data))
        else:
            self._sorts.get(data[0], self._rest).add(entry)

    def sent(self, players: Sequence[str], data: bytes, wall: float, tick: int) -> None:
        """A message or reply to players."""
        if not players:
            return
        entry = self._entry(False, players, data, wall, tick, len(data))
        if data[0] == REPLY:
            self._reply(entry, _call_of(data))
        else:
            self._sorts.get(data[0], self._rest).add(entry)

    def messages(self) -> list[dict[str, Any]]:
        """Return the last messages of all sorts, oldest first, as JSON: a call has its `reply` in it."""
        sorts = (self._messages, self._calls, self._writes, self._rest)
        merged = heapq.merge(*(kept.entries for kept in sorts), key=lambda entry: entry.number)
        return [self._show(entry) for entry in merged]

    def lines(self) -> list[dict[str, Any]]:
        """Return the last log lines, oldest first, as JSON."""
        return list(self._lines)

    def _log(self, line: LogOut, wall: float, tick: int) -> None:
        self._line_count += 1
        shown: dict[str, Any] = {
            "number": self._line_count, "at": wall, "tick": tick, "level": line.level, "event": line.event,
        }  # fmt: skip
        fields = dict(line.fields)
        shown["message"] = cut(str(fields.pop("message", "")))
        shown["fields"] = {str(name): cut(str(value)) for name, value in fields.items()}
        shown["traceback"] = None if line.traceback is None else line.traceback[-_MAX_TRACEBACK:]
        self._lines.append(shown)

    def _answer(self, answer: AnswerOut, wall: float, tick: int) -> None:
        entry = self._entry(False, [_BACKEND], b"", wall, tick, len(answer.json))
        entry.shown = {"kind": "reply", "call": answer.token, "name": "request"}
        if answer.error is None:
            entry.shown["content"] = show_json(answer.json)
        else:
            entry.shown["error"] = {"code": ERRORS[answer.error].http, "text": cut(answer.text)}
        self._reply(entry, answer.token)

    def _entry(
        self, from_client: bool, players: Sequence[str], data: bytes, wall: float, tick: int, size: int
    ) -> _Entry:
        self._count += 1
        others = len(players) - 1
        return _Entry(self._count, wall, tick, from_client, players[0], others, size, data, self._clock())

    def _ask(self, entry: _Entry, call: int) -> None:
        entry.call = call
        self._asked[entry.player, call] = entry
        self._forget(self._calls.add(entry))

    def _reply(self, entry: _Entry, call: int) -> None:
        asked = self._asked.pop((entry.player, call), None)
        if asked is None:
            gone = self._calls.add(entry)
        else:
            asked.reply = entry
            gone = self._calls.grow(entry.size)
        self._forget(gone)

    def _forget(self, gone: list[_Entry]) -> None:
        for entry in gone:
            if entry.call is not None and self._asked.get((entry.player, entry.call)) is entry:
                del self._asked[entry.player, entry.call]

    def _show(self, entry: _Entry) -> dict[str, Any]:
        shown = {**_head(entry), **self._read(entry)}
        if entry.call is not None:
            shown["reply"] = None if entry.reply is None else self._show_reply(entry, entry.reply)
        return shown

    def _show_reply(self, asked: _Entry, reply: _Entry) -> dict[str, Any]:
        said = {name: value for name, value in self._read(reply).items() if name in ("content", "error")}
        took = round(1_000 * (reply.at - asked.at), 3)
        return {"at": reply.wall, "tick": reply.tick, "bytes": reply.size, "took_ms": took, **said}

    def _read(self, entry: _Entry) -> dict[str, Any]:
        """What a frame says. It is read once."""
        if entry.shown is None:
            data, entry.data = entry.data, b""
            try:
                frame = decode_client(data, self._schema) if entry.from_client else decode_server(data)
                entry.shown = _show_frame(frame)
            except ProtocolError as error:
                entry.shown = {"kind": "unread", "error": {"code": 0, "text": str(error)}}
        return entry.shown


def _call_of(data: bytes) -> int:
    """The number of a call, or of the call that a reply is to: it comes first in both frames."""
    return Reader(data, 1).varint32()


def _head(entry: _Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "at": entry.wall,
        "tick": entry.tick,
        "direction": "in" if entry.from_client else "out",
        "player": entry.player,
        "others": entry.others,
        "bytes": entry.size,
    }


def _show_frame(frame: ClientFrame | ServerFrame | None) -> dict[str, Any]:
    match frame:
        case Message():
            return {"kind": "message", "content": show_content(frame.content)}
        case Unreliable():
            return {"kind": "unreliable", "content": show_content(frame.content)}
        case Call():
            content = show_content(frame.content)
            return {"kind": "call", "call": frame.call, "name": frame.name, "content": content}
        case Reply():
            return {"kind": "reply", "call": frame.call, "name": None, "content": show_content(frame.content)}
        case ReplyError():
            error = {"code": frame.code, "text": cut(frame.text)}
            return {"kind": "reply", "call": frame.call, "name": None, "error": error}
        case Write():
            return {"kind": "write", "content": _show_write(frame)}
        case Inputs():
            entries = [{"tick": each.tick, "lag": each.lag} for each in frame.entries[:_MAX_ENTRIES]]
            return {"kind": "input", "content": entries}
        case _:
            return {"kind": type(frame).__name__.lower()}


def _show_write(frame: Write) -> list[dict[str, Any]]:
    return [
        {
            "id": entry.id,
            "kind": entry.spec.name,
            "fields": {
                entry.spec.fields[index].name: show_field(entry.spec.fields[index].type, value)
                for index, value in entry.values.items()
            },
        }
        for entry in frame.entries[:_MAX_ENTRIES]
    ]
