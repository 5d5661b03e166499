"""Errors that are raised again and again are written once in ten seconds."""

from __future__ import annotations

import math

from playhall_roomhost.repeats import FOLD_S, MAX_FOLDED, Repeats


def test_what_comes_again_is_counted_and_told_once_in_ten_seconds() -> None:
    repeats: Repeats[int] = Repeats()
    written: list[object] = []
    for n in range(500):
        now = n / 20
        if (due := repeats.next_due) is not None and due <= now:
            written += repeats.due(now)
        if repeats.is_new("error", n, now):
            written.append(n)
    assert written == [0, (199, 199), (399, 200)]
    assert repeats.due(math.inf) == [(499, 100)]


def test_what_comes_once_or_differs_is_written_as_it_is() -> None:
    repeats: Repeats[str] = Repeats()
    assert repeats.next_due is None
    assert repeats.is_new("a", "a", 0.0)
    assert repeats.is_new("b", "b", 1.0)
    assert repeats.next_due == FOLD_S
    assert repeats.due(FOLD_S) == []
    assert repeats.is_new("a", "a", FOLD_S + 0.5)
    assert not repeats.is_new("b", "b again", FOLD_S + 0.5)
    assert repeats.due(FOLD_S + 1) == [("b again", 1)]


def test_only_so_many_are_remembered() -> None:
    repeats: Repeats[int] = Repeats()
    for _ in range(2):
        assert sum(repeats.is_new(n, n, 0.0) for n in range(MAX_FOLDED + 5)) in (MAX_FOLDED + 5, 5)
    assert sum(count for _, count in repeats.due(FOLD_S)) == MAX_FOLDED
