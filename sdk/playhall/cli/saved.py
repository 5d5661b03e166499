"""What rooms may have saved, and so what a build must still be able to read.

Rooms save all fields of all kinds of their schema. A build without one of them, or with one of another type,
would go live and no room would wake on it; so it is refused before. What was live is kept beside the rooms'
state, and goes when that is deleted.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from playhall.cli.build import Build
from playhall.cli.errors import BuildError

__all__ = ["SavedKinds", "losses"]

Kinds = Mapping[str, Mapping[str, str]]
"""Types of fields, by kind and name."""


class SavedKinds:
    """The kinds of every room type that was live, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self, build: Build) -> None:
        """Raises BuildError where rooms could not read what they have saved."""
        saved = self._load()
        lost = [line for found in build.room_types for line in losses(saved.get(found.name, {}), found.kinds)]
        if lost:
            lines = "\n".join(f"  {line}" for line in dict.fromkeys(lost))
            raise BuildError(
                f"Rooms have state that this schema cannot read (migrations come later):\n\n{lines}\n\n"
                f"Put it back; or stop playhall dev and delete {self._path.parent} to start afresh."
            )

    def add(self, build: Build) -> None:
        """The build is live: from now on rooms save what it declares."""
        before = self._load()
        now = before | {found.name: found.kinds for found in build.room_types}
        if now == before:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        staging = self._path.with_name(f".{self._path.name}.{uuid.uuid4().hex[:8]}")
        staging.write_text(json.dumps(now))
        os.replace(staging, self._path)

    def _load(self) -> dict[str, Kinds]:
        try:
            found: dict[str, Kinds] = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        return found


def losses(saved: Kinds, now: Kinds) -> Iterator[str]:
    """What of the saved kinds is gone or of another type, in words."""
    for kind, fields in saved.items():
        if kind not in now:
            yield f"kind {kind} is gone"
            continue
        for name, was in fields.items():
            is_now = now[kind].get(name)
            if is_now is None:
                yield f"{kind}.{name} was {was} and is gone"
            elif is_now != was:
                yield f"{kind}.{name} was {was} and is {is_now} now"
