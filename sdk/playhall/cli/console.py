"""What `playhall dev` prints: its own steps, and of the services' logs what a game's author wants to see."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.markup import escape

__all__ = ["DevConsole"]

_STYLES = {"debug": "dim", "info": "", "warning": "yellow", "error": "red", "critical": "red"}
_HIDDEN = frozenset({"event", "level", "timestamp", "service", "exception", "traceback", "source", "logger"})
_SEVERE = frozenset({"warning", "error", "critical"})


class DevConsole:
    """A thin layer over rich."""

    def __init__(self) -> None:
        self._rich = Console(highlight=False, stderr=False)

    def step(self, text: str) -> None:
        """Say what is being done."""
        self._rich.print(f"  [dim]{escape(text)}[/dim]")

    def say(self, text: str) -> None:
        """Print rich markup."""
        self._rich.print(text)

    def problem(self, title: str, text: str) -> None:
        """Print an error and what to do about it."""
        self._rich.print(f"\n[red bold]{escape(title)}[/red bold]\n{escape(text)}\n")

    def log_line(self, child: str, line: str) -> None:
        """Print a line of a service's log: room code's own, and what is wrong anywhere."""
        try:
            entry: dict[str, Any] = json.loads(line)
        except ValueError:
            if line.strip() and child != "valkey":
                self._rich.print(f"[yellow]{escape(child)}[/yellow] {escape(line)}")
            return
        level = str(entry.get("level", "info"))
        of_room = entry.get("source") == "room"
        if not of_room and level not in _SEVERE:
            return
        where = str(entry.get("room", child)) if of_room else child
        fields = " ".join(f"{k}={v}" for k, v in entry.items() if k not in _HIDDEN and not of_room)
        style = _STYLES.get(level, "")
        text = escape(f"{entry.get('event', '')} {fields}".rstrip())
        self._rich.print(f"[cyan]{escape(where)}[/cyan] " + (f"[{style}]{text}[/{style}]" if style else text))
        trace = entry.get("traceback") or entry.get("exception")
        if trace:
            self._rich.print(escape(str(trace).rstrip()), style="red")
