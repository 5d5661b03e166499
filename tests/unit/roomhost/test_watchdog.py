"""When a process counts as stuck."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from playhall_roomhost.config import RoomHostConfig
from playhall_roomhost.pulse import Culprit, PulseReader, PulseWriter, create_page, culprit_bytes
from playhall_roomhost.watchdog import Watchdog


def test_a_loop_that_does_not_turn_is_stuck_once() -> None:
    dog = Watchdog(5.0)
    dog.watch("a", 3, 0.0)
    dog.watch("b", 0, 0.0)
    found = []
    for tenth in range(1, 120):
        found += dog.look({"a": 3, "b": tenth, "c": 0}, tenth / 10)
    assert found == ["a"]


@pytest.mark.ledger("HOOK-24")
def test_the_wait_is_5_s_and_starts_at_the_last_beat() -> None:
    dog = Watchdog(RoomHostConfig.stuck_s)
    dog.watch("a", 0, 0.0)
    assert not any(dog.look({"a": 1}, second) for second in (1.0, 2.0, 3.0, 4.0, 5.0, 5.9))
    assert dog.look({"a": 1}, 6.0) == ["a"]


def test_a_gap_of_the_supervisors_own_blames_nobody() -> None:
    dog = Watchdog(5.0)
    dog.watch("a", 1, 0.0)
    dog.look({"a": 1}, 1.0)
    assert dog.look({"a": 1}, 100.0) == []
    assert dog.look({"a": 1}, 101.0) == []


def test_who_is_forgotten_is_not_watched() -> None:
    dog = Watchdog(1.0)
    dog.watch("a", 1, 0.0)
    dog.forget("a")
    assert dog.look({"a": 1}, 1.2) == []


def test_the_page_tells_beats_and_whose_code_runs() -> None:
    page = create_page()
    writer, reader = PulseWriter(page), PulseReader(page)
    os.close(page)
    before = reader.beats()
    writer.beat()
    assert reader.beats() != before
    assert reader.culprit() is None
    writer.enter(12.5, culprit_bytes("01M8PKXT20EYZK751SZAHMR6GM", 7, "tick", "unix:/run/shard.sock"))
    expected = Culprit("01M8PKXT20EYZK751SZAHMR6GM", 7, "tick", "unix:/run/shard.sock", "", 12.5)
    assert (reader.culprit(), expected.what) == (expected, "tick")
    writer.hook("call dig")
    named = replace(expected, hook="call dig")
    assert (reader.culprit(), named.what) == (named, "call dig")
    writer.hook("a name that is longer than what fits on the page, which is cut to that")
    writer.hook_page[0] = 0
    assert reader.culprit() == expected
    writer.leave()
    assert reader.culprit() is None
    reader.close()
