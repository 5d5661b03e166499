"""What `playhall dev` prints: its own steps, and of the services' logs what a game's author wants to see."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

__all__ = ["DevConsole", "wants_colour"]

_COLOURS = {"bold": "1", "dim": "2", "red": "31", "yellow": "33", "cyan": "36"}
_LEVELS = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "red"}
_SEVERE = frozenset({"warning", "error", "critical"})
_NOT_SHOWN = frozenset({"event", "level", "timestamp", "service", "exception", "traceback", "logger"})
_ROOM_FIELDS = frozenset({"project", "room", "room_uid", "generation"})
# Log lines may hold what players sent; that must not move the cursor or worse.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ROOM_LOG = "room.log"


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether the stream is a terminal whose user has not asked for no colours."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


class DevConsole:
    """Lines on a terminal or in a file, never broken: a terminal does that itself, and links stay whole."""

    def __init__(self, stream: TextIO, *, colour: bool) -> None:
        self._stream, self._colour = stream, colour
        self._gone = False
        self.translate: Callable[[str], str] = str
        """Turns paths in what room code says into those its author knows."""
        self.only_errors = False
        """Services' warnings are for their logs: while they start and end, they miss each other."""
        self.on_gone: Callable[[], None] = lambda: None
        """Called when nobody can read on: the terminal was closed, or `| head` has enough."""

    def title(self, project: str) -> None:
        """Say what runs."""
        self._print(f"\n{self._paint('Playhall', 'bold')}  {project}")

    def step(self, text: str) -> None:
        """Say what is being done."""
        self._print(self._paint(f"  {text}", "dim"))

    def warn(self, text: str) -> None:
        """Say what went wrong and is being dealt with."""
        self._print(self._paint(text, "yellow"))

    def problem(self, title: str, text: str) -> None:
        """Print an error and what to do about it."""
        self._print(f"\n{self._paint(title, 'red', 'bold')}\n{_clean(text)}\n")

    def links(self, url: str, guest_url: str, inspector_url: str | None = None) -> None:
        """Print where to play."""
        self._print(f"\n  {self._paint('Play', 'bold')}              {url}")
        if guest_url != url:
            self._print(f"  As another guest  {guest_url}")
        self._inspector(inspector_url)
        self._print("")
        self.step("Save a file and the game changes under its players. Ctrl-C stops everything.")
        self._print("")

    def address(self, url: str, project: str, inspector_url: str | None = None) -> None:
        """Print where clients of a game without a site connect."""
        self._print(f"\n  {self._paint('For clients', 'bold')}       {url}  project {project}")
        self._inspector(inspector_url)
        self.step("There is no page to open: playhall.toml has no [site].")
        self._print("")

    def _inspector(self, url: str | None) -> None:
        if url is not None:
            self._print(f"  Look inside       {url}")

    def log_line(self, child: str, line: str) -> None:
        """Print a line of a service: room code's own, and what is wrong anywhere."""
        entry = _entry(line)
        if entry is None:
            # What room code prints comes out at its room host. Valkey's lines are in no form and for its log.
            if line.strip() and child != "valkey":
                self._print(f"{self._paint(child, 'cyan')}  {_clean(self.translate(line))}")
            return
        level = str(entry.get("level", "info"))
        if entry.get("event") != _ROOM_LOG and not self._is_severe(level):
            return
        where = _clean(str(entry.get("room", child)))
        self._print(f"{self._paint(where, 'cyan')}  {self._paint(self._text(entry), _LEVELS.get(level))}")
        if trace := self._trace(entry):
            self._print(self._paint(trace, "red"))

    def last_lines(self, lines: Sequence[str]) -> str:
        """The last lines of a log as text to read."""
        shown = []
        for line in lines:
            entry = _entry(line)
            shown += [line] if entry is None else [self._text(entry), self._trace(entry)]
        return "\n".join(line for line in shown if line) or "It wrote nothing."

    def _is_severe(self, level: str) -> bool:
        return level in _SEVERE and not (self.only_errors and level == "warning")

    def _text(self, entry: Mapping[str, Any]) -> str:
        if entry.get("event") == _ROOM_LOG:
            return _clean(self.translate(str(entry.get("message", ""))))
        hidden = _NOT_SHOWN | _ROOM_FIELDS if "room" in entry else _NOT_SHOWN
        fields = " ".join(f"{key}={value}" for key, value in entry.items() if key not in hidden)
        return _clean(self.translate(f"{entry.get('event', '')} {fields}".rstrip()))

    def _trace(self, entry: Mapping[str, Any]) -> str:
        trace = entry.get("traceback") or entry.get("exception") or ""
        return _clean(self.translate(str(trace).rstrip()))

    def _paint(self, text: str, *styles: str | None) -> str:
        codes = ";".join(_COLOURS[style] for style in styles if style)
        return f"\x1b[{codes}m{text}\x1b[0m" if self._colour and codes else text

    def _print(self, text: str) -> None:
        if self._gone:
            return
        encoding = self._stream.encoding or "utf-8"
        try:
            print(text.encode(encoding, "replace").decode(encoding), file=self._stream, flush=True)
        except OSError:
            self._gone = True
            # Python flushes it again at its end, which would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            self.on_gone()


def _entry(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and "event" in entry else None


def _clean(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
