"""Who is heard: stream open, or closed under 250 ms ago, and a heartbeat within 6 s."""

from __future__ import annotations

import math

from playhall_statestore.holders import Holders, Timing
from playhall_statestore.model import Now


def at(mono: float) -> Now:
    return Now(mono, int(mono * 1000))


def connected(now: float = 100.0) -> Holders:
    holders = Holders(Timing())
    holders.opened("h1", 1, at(now))
    return holders


def test_heard_for_six_seconds_after_each_heartbeat() -> None:
    holders = connected()
    assert holders.host_heard_until("h1") == 106.0
    holders.beat("h1", 1, at(103.0))
    assert holders.host_heard_until("h1") == 109.0


def test_a_closed_stream_ends_it_after_250_ms() -> None:
    holders = connected()
    holders.closed("h1", 1, at(102.0))
    assert holders.host_heard_until("h1") == 102.25


def test_a_stream_that_closes_late_does_not_lengthen_it() -> None:
    holders = connected()
    holders.closed("h1", 1, at(105.9))
    assert holders.host_heard_until("h1") == 106.0


def test_an_older_stream_has_no_say() -> None:
    holders = connected()
    assert holders.opened("h1", 2, at(101.0)) == 1
    holders.closed("h1", 1, at(101.5))
    holders.beat("h1", 1, at(104.0))
    assert holders.host_heard_until("h1") == 107.0


def test_a_host_never_seen_is_not_heard() -> None:
    assert Holders(Timing()).host_heard_until("h1") == -math.inf


def test_a_grant_without_a_stream_has_a_grace() -> None:
    holders = Holders(Timing())
    holders.granted("room", "h1", at(100.0))
    assert holders.heard_until("room", "h1") == 106.0
    holders.settled("room")
    assert holders.heard_until("room", "h1") == -math.inf


def test_a_grant_with_a_stream_has_none() -> None:
    holders = connected()
    holders.granted("room", "h1", at(101.0))
    holders.closed("h1", 1, at(101.0))
    assert holders.heard_until("room", "h1") == 101.25


def test_a_grace_is_its_grants_alone() -> None:
    holders = Holders(Timing())
    holders.granted("room", "h2", at(99.0))
    holders.opened("h1", 1, at(100.0))
    holders.granted("room", "h1", at(100.0))
    holders.closed("h1", 1, at(100.0))
    assert holders.heard_until("room", "h1") == 100.25


def test_silence_while_the_shard_does_not_read_means_nothing() -> None:
    holders = connected()
    holders.reading("h1", 1, False, at(101.0))
    assert holders.host_heard_until("h1") == math.inf
    holders.reading("h1", 1, True, at(120.0))
    assert holders.host_heard_until("h1") == 126.0


def test_a_pause_of_the_shard_itself_makes_nobody_silent() -> None:
    holders = connected()
    holders.granted("room", "h2", at(100.0))
    holders.passed(at(101.0))
    holders.passed(at(131.0))
    assert holders.host_heard_until("h1") == 137.0
    assert holders.heard_until("room", "h2") == 136.0


def test_a_pause_does_not_bring_back_who_was_silent_before() -> None:
    holders = connected()
    for mono in range(101, 109):
        holders.passed(at(mono))
    holders.passed(at(140.0))
    assert holders.host_heard_until("h1") == 106.0
