"""What is left of a stuck process's stack."""

from __future__ import annotations

import pytest

import playhall
import playhall_roomhost
from playhall_roomhost.stack import room_stack

HOST = playhall_roomhost.__path__[0]
ENGINE = f"{playhall.__path__[0]}/engine"


def dump(*frames: str) -> str:
    """As faulthandler writes it: outermost frames come here first, and there last."""
    lines = [f'  File "{frame}", line {n} in f{n}' for n, frame in enumerate(frames)]
    other = 'Thread 0x01 (most recent call first):\n  File "/game/own_thread.py", line 3 in run'
    return "\n".join([other, "", "Current thread 0x02 (most recent call first):", *reversed(lines)])


@pytest.mark.parametrize(
    "inner",
    [
        ["/game/room.py"],
        ["/game/room.py", "/usr/lib/python3.11/json/decoder.py"],
        ["/game/room.py", f"{ENGINE}/room.py", "/game/room.py"],
    ],
)
@pytest.mark.parametrize(
    "outer",
    [
        [f"{HOST}/process.py", "/lib/asyncio/runners.py", f"{HOST}/room.py", f"{ENGINE}/core.py"],
        [f"{HOST}/process.py", "/lib/asyncio/runners.py", f"{ENGINE}/steps.py"],
    ],
)
def test_it_begins_with_the_rooms_first_line(outer: list[str], inner: list[str]) -> None:
    first, *shown = room_stack(dump(*outer, *inner)).splitlines()
    assert first == "Stack (most recent call last):"
    assert shown == [
        f'  File "{file}", line {n}, in f{n}' for n, file in enumerate([*outer, *inner]) if n >= len(outer)
    ]


@pytest.mark.parametrize("text", ["", "nonsense\n\n", dump(f"{HOST}/process.py", "/lib/asyncio/runners.py")])
def test_what_shows_no_room_stays_as_it_is(text: str) -> None:
    assert room_stack(text) == text
