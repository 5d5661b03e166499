"""What holds for every test of the repository, those of the examples too.

- A test's category is its folder under tests/; a module elsewhere in tests/ fails collection.
- Hypothesis draws the same examples in every run of CI; `HYPOTHESIS_PROFILE=explore` looks for new ones.
- Under PLAYHALL_CI=1 a skipped test is a failure: a run that could not check something has not passed.
"""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from tools import find_chromium

TESTS = Path(__file__).parent / "tests"
CATEGORIES = ("unit", "protocol", "services", "browser", "e2e", "chaos", "charts")


hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_configure(config: pytest.Config) -> None:
    for category in CATEGORIES:
        config.addinivalue_line("markers", f"{category}: set by the folder, tests/{category}")
    if os.environ.get("PLAYHALL_CI") == "1":
        config.pluginmanager.register(SkipsFail(), "playhall-skips-fail")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(TESTS):
            category = item.path.relative_to(TESTS).parts[0]
            if category not in CATEGORIES:
                categories = ", ".join(CATEGORIES)
                raise pytest.UsageError(f"{item.path}: tests stand in tests/<category>, one of {categories}")
            item.add_marker(category)


class SkipsFail:
    """Collects skips, and turns a run that has any into a failed one."""

    def __init__(self) -> None:
        self._skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self._skipped.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._skipped.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._skipped and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._skipped:
            terminalreporter.section("skipped, which fails under PLAYHALL_CI=1", red=True)
            for nodeid in self._skipped:
                terminalreporter.line(nodeid)


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The path of a Chromium to hand to Playwright as `executable_path`."""
    return find_chromium.find() or pytest.fail(find_chromium.HOW_TO_INSTALL)
