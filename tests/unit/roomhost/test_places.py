"""Nobody is sent away without somewhere to go: protocols, Drain and move, D1."""

from __future__ import annotations

from playhall_roomhost.places import HOLD_S, Places


def test_each_place_is_used_once_and_by_rooms_of_the_router_that_found_it() -> None:
    places = Places()
    assert not places.take({1, 2}, 0.0)
    places.offer(1, 2, 0.0)
    assert not places.take({2}, 0.0)
    assert [places.take({1, 2}, 0.0) for _ in range(3)] == [True, True, False]


def test_a_newer_word_takes_the_place_of_the_older() -> None:
    places = Places()
    places.offer(1, 9, 0.0)
    places.offer(1, 1, 1.0)
    assert [places.take([1], 1.0) for _ in range(2)] == [True, False]


def test_what_was_not_named_again_is_gone() -> None:
    places = Places()
    places.offer(1, 5, 0.0)
    assert places.take([1], HOLD_S - 0.01)
    assert not places.take([1], HOLD_S)
    places.offer(1, 5, 10.0)
    places.forget(1)
    places.forget(1)
    assert not places.take([1], 10.0)
