"""What is said of an exception, whatever it is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from playhall.engine.faults import MAX_ERROR, MAX_TRACEBACK, error_text, traceback_text
from playhall.engine.hooks import Hooks
from playhall.engine.kinds import spec_of
from playhall.room import Entity, u8


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError("nothing to say")


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_an_error_is_told_by_type_and_text() -> None:
    assert error_text(KeyError("x")) == "KeyError: 'x'"
    told = traceback_text(raised(KeyError("x")))
    assert "in raised" in told
    assert told.endswith("KeyError: 'x'\n")


def test_an_error_that_cannot_be_told_is_told_so() -> None:
    assert error_text(MuteError()) == "MuteError: (its __str__ raised ValueError)"
    assert "MuteError" in traceback_text(raised(MuteError()))


class LeavingError(Exception):
    """Leaves by whatever is asked of it."""

    def __str__(self) -> str:
        raise SystemExit(3)

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise SystemExit(3)


def test_no_error_ends_the_process_by_being_told() -> None:
    assert error_text(LeavingError()) == "LeavingError: (its __str__ raised SystemExit)"
    told = traceback_text(raised(LeavingError()))
    assert told.startswith("LeavingError: (its __str__ raised SystemExit)\n")


@pytest.mark.parametrize("notes", [5, [5, object()], ["\ud800"], "text"], ids=repr)
def test_notes_of_any_sort_are_told(notes: object) -> None:
    error = raised(ValueError("no"))
    error.__notes__ = notes  # type: ignore[assignment]
    assert "ValueError: no" in traceback_text(error)


def test_a_long_chain_of_causes_is_cut() -> None:
    error = ValueError(0)
    for n in range(1, 5_000):
        error, cause = ValueError(n), error
        error.__cause__ = cause
    assert len(traceback_text(raised(error))) <= MAX_TRACEBACK


def test_text_that_is_no_unicode_is_escaped() -> None:
    assert error_text(ValueError("a \ud800 b")) == "ValueError: a \\ud800 b"
    assert traceback_text(raised(ValueError("a \ud800 b"))).endswith("ValueError: a \\ud800 b\n")


@pytest.mark.parametrize("length", [10_000, 1_000_000])
def test_a_long_text_is_cut(length: int) -> None:
    error = raised(ValueError("x" * length + " the end"))
    assert len(error_text(error)) <= MAX_ERROR
    told = traceback_text(error)
    assert len(told) <= MAX_TRACEBACK
    assert told.startswith("Traceback")
    assert told.endswith("the end\n")


class Npc(Entity):
    hp: u8


def write(npc: Npc, value: Any) -> None:
    npc.hp = value


def told_of(call: Callable[[], None]) -> list[str]:
    """Return the code lines of the traceback of what a hook raised."""
    errors: list[str] = []
    hooks = Hooks(lambda output: None)
    hooks.run(
        "on_tick",
        call,
        lambda error: errors.append(traceback_text(error or RuntimeError())),
        mono=0.0,
        timeout_s=1.0,
    )
    return re.findall(r"line \d+, in (.*)", errors[0])


def test_a_traceback_goes_from_room_code_to_the_line_that_did_it() -> None:
    npc = Npc(hp=1)

    def on_tick() -> None:
        write(npc, 256)

    assert told_of(on_tick) == ["on_tick", "write"]


def test_frames_of_other_code_that_room_code_calls_are_told() -> None:
    def on_tick() -> None:
        json.loads("{")

    assert told_of(on_tick)[:2] == ["on_tick", "loads"]


def test_a_fault_within_the_sdk_is_told_with_its_frames() -> None:
    def on_tick() -> None:
        Npc(hp=1).patch("hp", 0, b"")

    def on_join() -> None:
        spec_of(3)  # type: ignore[arg-type]  # no way in for room code: what fails is not a raise

    assert told_of(on_tick) == ["on_tick"]
    assert told_of(on_join) == ["on_join", "spec_of"]
