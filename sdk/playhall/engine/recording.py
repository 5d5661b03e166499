"""What went between a room and its clients lately, and what the room logged: for the inspector.

Frames are kept as they are, which costs next to nothing; they are read when somebody looks, once each. What
is kept is bounded: MAX_MESSAGES frames of MAX_BYTES together, and MAX_LINES lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from playhall.engine.codes import ERRORS
from playhall.engine.errors import ProtocolError
from playhall.engine.frames import (
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

__all__ = ["MAX_BYTES", "MAX_LINES", "MAX_MESSAGES", "Recorder"]

MAX_MESSAGES = 200
MAX_BYTES = 1024 * 1024
MAX_LINES = 100
_MAX_TRACEBACK = 4_000
_MAX_ENTRIES = 8
"""Entities of a write, and inputs of a frame, that are shown."""


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
    # What was read of it; from then on `data` is of no use.
    shown: dict[str, Any] | None = None


class Recorder:
    """The last messages and log lines of one room."""

    def __init__(self, schema: Schema[Any, Any]) -> None:
        self._schema = schema
        self._entries: deque[_Entry] = deque()
        self._bytes = 0
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
        shown = {"kind": "request", "call": token, "name": "request", "content": content}
        self._add(True, [""], b"", wall, tick, size, shown)

    def received(self, player: str, data: bytes, wall: float, tick: int) -> None:
        """A frame of a player's client, which could be read."""
        self._add(True, [player], data, wall, tick, len(data))

    def sent(self, players: Sequence[str], data: bytes, wall: float, tick: int) -> None:
        """A message or reply to players."""
        if players:
            self._add(False, players, data, wall, tick, len(data))

    def messages(self) -> list[dict[str, Any]]:
        """Return the last messages, oldest first, as JSON."""
        names: dict[tuple[str, int], str] = {}
        return [self._show(entry, names) for entry in self._entries]

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
        shown: dict[str, Any] = {"kind": "reply", "call": answer.token, "name": "request"}
        if answer.error is None:
            shown["content"] = show_json(answer.json)
        else:
            shown["error"] = {"code": ERRORS[answer.error].http, "text": cut(answer.text)}
        self._add(False, [""], b"", wall, tick, len(answer.json), shown)

    def _add(
        self,
        from_client: bool,
        players: Sequence[str],
        data: bytes,
        wall: float,
        tick: int,
        size: int,
        shown: dict[str, Any] | None = None,
    ) -> None:
        self._count += 1
        entry = _Entry(self._count, wall, tick, from_client, players[0], len(players) - 1, size, data)
        if shown is not None:
            entry.shown = {**_head(entry), **shown}
        self._entries.append(entry)
        self._bytes += entry.size
        while len(self._entries) > MAX_MESSAGES or self._bytes > MAX_BYTES:
            self._bytes -= self._entries.popleft().size

    def _show(self, entry: _Entry, names: dict[tuple[str, int], str]) -> dict[str, Any]:
        if entry.shown is None:
            entry.shown = self._read(entry)
            entry.data = b""
        call = entry.shown.get("call")
        if call is None:
            return entry.shown
        if entry.from_client:
            names[entry.player, call] = entry.shown["name"]
        elif entry.shown["name"] is None:
            entry.shown["name"] = names.get((entry.player, call))
        return entry.shown

    def _read(self, entry: _Entry) -> dict[str, Any]:
        shown = _head(entry)
        try:
            data = entry.data
            frame = decode_client(data, self._schema) if entry.from_client else decode_server(data)
        except ProtocolError as error:
            return {**shown, "kind": "unread", "error": {"code": 0, "text": str(error)}}
        return {**shown, **_show_frame(frame)}


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
