"""What is said of an exception, whatever it is made of."""

from __future__ import annotations

import pytest

from playhall.engine.faults import MAX_ERROR, MAX_TRACEBACK, error_text, traceback_text


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
