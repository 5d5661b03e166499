"""The shared page by which a supervisor sees whether a process's loop turns, and whose code runs in it.

The process writes; the supervisor reads. Nothing locks: the supervisor believes what it reads only once the
loop has not turned for seconds, and then nobody writes. Times are CLOCK_MONOTONIC, which all processes of a
machine share.

    beats u64 | since f64 | inside u8 | room_uid 26 | generation u64 | call 16 | shard address 128 | hook 64
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

__all__ = ["CULPRIT_BYTES", "Culprit", "PulseReader", "PulseWriter", "create_page", "culprit_bytes"]

_SIZE = mmap.PAGESIZE
_HEAD = struct.Struct("<Qd")
_CULPRIT = struct.Struct("<B26sQ16s128s64s")
_HOOK_BYTES = 64
_MAX_HOOKS = 10_000
_INSIDE_AT = _HEAD.size
_BEATS = struct.Struct("<Q")
_SINCE = struct.Struct("<d")
_SINCE_AT = _BEATS.size
CULPRIT_BYTES = _CULPRIT.size
_ENTER = struct.Struct(f"<d{CULPRIT_BYTES}s")
_HOOK_END = _INSIDE_AT + CULPRIT_BYTES
_HOOK_AT = _HOOK_END - _HOOK_BYTES


@dataclass(frozen=True, slots=True)
class Culprit:
    """Whose code a loop is in: a room, the call into its core, the hook in that, and since when."""

    room_uid: str
    generation: int
    call: str
    shard_address: str
    hook: str
    """Empty: none runs; it is the engine at work."""
    since: float

    @property
    def what(self) -> str:
        """The name to tell the room's author."""
        return self.hook or self.call


def create_page() -> int:
    """A new page as a file descriptor, which a child process may inherit. The caller closes it."""
    with tempfile.TemporaryFile() as file:
        file.truncate(_SIZE)
        return os.dup(file.fileno())


def culprit_bytes(room_uid: str, generation: int, call: str, shard_address: str) -> bytes:
    """What `enter` writes, made once for each room and call."""
    return _CULPRIT.pack(1, room_uid.encode(), generation, call.encode(), shard_address.encode(), b"")


class PulseWriter:
    """The process's side. Cheap enough to be called around every call into a room."""

    __slots__ = ("_beats", "_hooks", "_page", "enter", "hook_page", "leave")

    def __init__(self, fd: int) -> None:
        self._page = mmap.mmap(fd, _SIZE)
        self._beats = 0
        self._hooks: dict[str, bytes] = {}
        self.hook_page = memoryview(self._page)[_HOOK_AT:_HOOK_END]
        """Where the name of the hook that runs stands, for the engine's watch."""
        # Called around everything that rooms do: so nothing of them is Python's.
        self.enter: Callable[[float, bytes], None] = partial(_ENTER.pack_into, self._page, _SINCE_AT)
        """Room code is about to run: since when (mono), and whose."""
        self.leave: Callable[[], None] = partial(self._page.__setitem__, _INSIDE_AT, 0)
        """Room code has returned."""

    def beat(self) -> None:
        """The loop turns."""
        self._beats += 1
        _BEATS.pack_into(self._page, 0, self._beats)

    def hook(self, name: str) -> None:
        """A hook or call of this name begins to run."""
        marks = self._hooks.get(name)
        if marks is None:
            marks = name.encode(errors="replace")[:_HOOK_BYTES].ljust(_HOOK_BYTES, b"\0")
            if len(self._hooks) < _MAX_HOOKS:
                self._hooks[name] = marks
        self._page[_HOOK_AT:_HOOK_END] = marks


class PulseReader:
    """The supervisor's side."""

    def __init__(self, fd: int) -> None:
        self._page = mmap.mmap(fd, _SIZE, prot=mmap.PROT_READ)

    def close(self) -> None:
        self._page.close()

    def beats(self) -> int:
        """A number that grows while the loop turns."""
        (beats,) = _BEATS.unpack_from(self._page, 0)
        return int(beats)

    def culprit(self) -> Culprit | None:
        """Whose code runs, or ran when the process died; None where it is nobody's."""
        inside, uid, generation, call, shard, hook = _CULPRIT.unpack_from(self._page, _INSIDE_AT)
        if not inside:
            return None
        (since,) = _SINCE.unpack_from(self._page, _SINCE_AT)
        return Culprit(_text(uid), generation, _text(call), _text(shard), _text(hook), since)


def _text(padded: bytes) -> str:
    # The page is written by a process that runs tenant code: it may hold anything.
    return padded.partition(b"\0")[0].decode(errors="replace")
