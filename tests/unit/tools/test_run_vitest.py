"""tools/run_vitest.py: what counts as skipped."""

from __future__ import annotations

from tools import run_vitest


def test_whatever_neither_passed_nor_failed_was_skipped() -> None:
    tests = [
        {"fullName": status, "status": status}
        for status in ("passed", "failed", "skipped", "pending", "todo")
    ]
    report = {"testResults": [{"assertionResults": tests[:2]}, {"assertionResults": tests[2:]}]}
    assert run_vitest.skipped_titles(report) == ["skipped", "pending", "todo"]
