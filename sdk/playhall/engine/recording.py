"""What went between a room and its clients lately, and what the room logged: for the inspector.

Frames are kept as they are, which costs next to nothing; they are read when somebody looks, once each. What
is kept is bounded: MAX_LINES lines, and of each sort (messages, calls with their replies, owner writes, the
rest) the last MAX_MESSAGES, of MAX_BYTES together. So what clients send all the time pushes out no calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from playhall.engine.codes import ERRORS
from playhall.engine.errors import ProtocolError
from playhall.engine.framelog import MAX_BYTES, MAX_MESSAGES
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
from playhall.engine.running import FrameLog, KeptFrames
from playhall.engine.schema import Schema
from playhall.engine.showing import cut, show_content, show_field, show_json, show_sized
from playhall.engine.wire import Reader

__all__ = ["MAX_BYTES", "MAX_LINES", "MAX_MESSAGES", "Recorder"]

MAX_LINES = 100
_MAX_TRACEBACK = 4_000
_MAX_ENTRIES = 8
"""Entities of a write, and inputs of a frame, that are shown."""
_BACKEND = ""
"""Who asks in requests: no player has this id."""


@dataclass(slots=True)
class _Entry:
    """A call, request or reply."""

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


class _Calls:
    """The last calls and requests, oldest first."""

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


class Recorder(FrameLog):
    """The last messages and log lines of one room. `clock` (seconds) measures how long calls took."""

    def __init__(self, schema: Schema[Any, Any], clock: Callable[[], float]) -> None:
        super().__init__()
        self._schema = schema
        self._clock = clock
        self._calls = _Calls()
        self._sorts: dict[int, KeptFrames] = {
            MESSAGE: self.kept_messages,
            UNRELIABLE: self.kept_messages,
            WRITE: self.kept_writes,
        }
        # What was read of frames that are kept, by their number.
        self._shown: dict[int, dict[str, Any]] = {}
        # Calls that are kept and have no reply yet, by who asked and number.
        self._asked: dict[tuple[str, int], _Entry] = {}
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
        if data[0] == CALL:
            self._ask(self._entry(True, [player], data, wall, tick, len(data)), _call_of(data))
        else:
            self._kept(data).add(self.number(), wall, tick, True, player, 0, data)

    def sent(self, players: Sequence[str], data: bytes, wall: float, tick: int) -> None:
        """A message or reply to players."""
        if not players:
            return
        if data[0] == REPLY:
            self._reply(self._entry(False, players, data, wall, tick, len(data)), _call_of(data))
        else:
            self._kept(data).add(self.number(), wall, tick, False, players[0], len(players) - 1, data)

    def messages(self) -> list[dict[str, Any]]:
        """Return the last messages of all sorts, oldest first, as JSON: a call has its `reply` in it."""
        frames = [
            frame for kept in (self.kept_messages, self.kept_writes, self.kept_others) for frame in kept
        ]
        before = self._shown
        self._shown = {
            number: before[number] if number in before else _read(from_client, data, self._schema)
            for number, _, _, from_client, _, _, data in frames
        }
        shown = [{**_head(*frame[:6], len(frame[6])), **self._shown[frame[0]]} for frame in frames]
        shown += [self._show(entry) for entry in self._calls.entries]
        return sorted(shown, key=itemgetter("number"))

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
        others = len(players) - 1
        return _Entry(self.number(), wall, tick, from_client, players[0], others, size, data, self._clock())

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
        head = _head(
            entry.number, entry.wall, entry.tick, entry.from_client, entry.player, entry.others, entry.size
        )
        shown = {**head, **self._read(entry)}
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
            entry.shown = _read(entry.from_client, data, self._schema)
        return entry.shown

    def _kept(self, data: bytes) -> KeptFrames:
        return self._sorts.get(data[0], self.kept_others)


def _read(from_client: bool, data: bytes, schema: Schema[Any, Any]) -> dict[str, Any]:
    """Return what a frame says."""
    try:
        return _show_frame(decode_client(data, schema) if from_client else decode_server(data))
    except ProtocolError as error:
        return {"kind": "unread", "error": {"code": 0, "text": str(error)}}


def _call_of(data: bytes) -> int:
    """The number of a call, or of the call that a reply is to: it comes first in both frames."""
    return Reader(data, 1).varint32()


def _head(
    number: int, wall: float, tick: int, from_client: bool, player: str, others: int, size: int
) -> dict[str, Any]:
    return {
        "number": number,
        "at": wall,
        "tick": tick,
        "direction": "in" if from_client else "out",
        "player": player,
        "others": others,
        "bytes": size,
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
