"""Who waits at a room's door: everybody while it starts, newcomers while its people come back."""

from __future__ import annotations

import pytest

from playhall.engine.frames import Resume
from playhall.engine.outputs import JoinRequest, WakeInfo
from playhall_roomhost.arrivals import MAX_ARRIVALS, Arrivals, brings_people


def arrival(player: str, *, was_joined: bool = False) -> JoinRequest:
    resume = Resume(0, 0, 0, False, ())
    return JoinRequest(player, None, bytes(16), bytes(16), 0, 0, was_joined, resume, "c", "default", 1 << 20)


NEW = arrival("new")
BACK = arrival("back", was_joined=True)


def test_all_wait_for_the_start_and_who_was_in_before_comes_first() -> None:
    arrivals = Arrivals()
    assert not arrivals.may_enter(NEW)
    assert not arrivals.may_enter(BACK)
    assert arrivals.wait(1, NEW)
    assert arrivals.wait(2, BACK)
    assert arrivals.wait(3, NEW)
    assert not arrivals.is_open
    assert arrivals.open(to_all=True) == [(2, BACK), (1, NEW), (3, NEW)]
    assert arrivals.is_open
    assert arrivals.may_enter(NEW)
    assert arrivals.open(to_all=True) == []


def test_newcomers_wait_longer_where_people_come_back() -> None:
    arrivals = Arrivals()
    arrivals.wait(1, NEW)
    arrivals.wait(2, BACK)
    assert arrivals.open(to_all=False) == [(2, BACK)]
    assert arrivals.may_enter(BACK)
    assert not arrivals.may_enter(NEW)
    arrivals.wait(3, NEW)
    arrivals.forget(1)
    assert arrivals.open(to_all=True) == [(3, NEW)]


def test_so_many_may_wait() -> None:
    arrivals = Arrivals()
    assert all(arrivals.wait(link, NEW) for link in range(MAX_ARRIVALS))
    assert not arrivals.wait(MAX_ARRIVALS, NEW)
    arrivals.clear()
    assert arrivals.open(to_all=True) == []


@pytest.mark.parametrize(
    ("wake", "expected"),
    [
        (WakeInfo("crash", 2.0), True),
        (WakeInfo("deploy", 0.1), True),
        (WakeInfo("crash", 60.0), False),
        (WakeInfo("connect", 0.1), False),
    ],
)
def test_people_come_back_soon_after_a_failover(wake: WakeInfo, expected: bool) -> None:
    assert brings_people(wake) is expected
