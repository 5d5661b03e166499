"""`room.log`: what a line may be, and how many there may be."""

from __future__ import annotations

import pytest

from playhall.engine.outputs import LogOut, Output
from playhall.engine.roomlog import MAX_LINE, MAX_WAITING, RoomLog


@pytest.fixture
def outputs() -> list[Output]:
    return []


@pytest.fixture
def log(outputs: list[Output]) -> RoomLog:
    return RoomLog(outputs.append)


def messages(outputs: list[Output]) -> list[object]:
    return [output.fields.get("message") for output in outputs if isinstance(output, LogOut)]


def test_a_line_is_formatted_and_a_slip_in_it_costs_only_its_looks(
    log: RoomLog, outputs: list[Output]
) -> None:
    log.info("%s has %d", "ann", 3)
    log.info("%d", "three")
    assert messages(outputs) == ["ann has 3", "%d ('three',)"]


def test_a_long_line_is_cut(log: RoomLog, outputs: list[Output]) -> None:
    log.warning("x" * (MAX_LINE + 1))
    assert messages(outputs) == ["x" * MAX_LINE]


def test_one_call_writes_so_many_lines_and_the_rest_are_counted(log: RoomLog, outputs: list[Output]) -> None:
    for number in range(MAX_WAITING + 5):
        log.info("%d", number)
    assert len(outputs) == MAX_WAITING
    log.taken()
    dropped = outputs.pop()
    assert isinstance(dropped, LogOut)
    assert (dropped.level, dropped.event, dropped.fields) == ("warning", "room.log_dropped", {"lines": 5})
    outputs.clear()
    log.info("again")
    log.taken()
    assert messages(outputs) == ["again"]


def test_an_exception_brings_its_traceback(log: RoomLog, outputs: list[Output]) -> None:
    try:
        raise ValueError("the stand fell")
    except ValueError:
        log.exception("oh no")
    [line] = outputs
    assert isinstance(line, LogOut)
    assert line.traceback is not None
    assert "the stand fell" in line.traceback
