"""What the sanitizer run runs, and in what surroundings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import run_sanitized


def test_all_that_it_runs_is_there() -> None:
    assert [test for test in run_sanitized.TESTS if not (run_sanitized.ROOT / test).exists()] == []


@pytest.mark.parametrize("arguments", [[], ["-x"], ["-k", "columns"], ["-m", "not slow"]])
def test_options_alone_leave_all_tests_in(arguments: list[str]) -> None:
    assert run_sanitized.tests_of(arguments) == run_sanitized.TESTS


@pytest.mark.parametrize("named", ["tests/protocol", "tests/unit/engine/test_fields.py::test_zero"])
def test_tests_that_are_named_are_the_only_ones(named: str) -> None:
    assert run_sanitized.tests_of(["-x", named]) == ()


def test_the_native_engine_runs_there_whatever_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHALL_PURE", "1")
    env = run_sanitized.environment("/lib/libasan.so", Path("/built"))
    assert "PLAYHALL_PURE" not in env
    assert (env["LD_PRELOAD"], env["PLAYHALL_SANITIZED"]) == ("/lib/libasan.so", "/built")
