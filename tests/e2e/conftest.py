"""One `playhall dev` for each module of stories, with a copy of the game that the module names in GAME.

A module may name settings of the services in SETTINGS. When a story fails, the ends of all logs are shown
with it. There are two routers, as a deployment has several.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.support.dev import DevServer, copy_game, logs, serve

GAMES = Path(__file__).parent / "games"


@pytest.fixture
def game_folder(tmp_path: Path) -> Path:
    """A copy of the stand, for a story that starts and stops `playhall dev` by itself."""
    return copy_game(GAMES / "stand", tmp_path)


@pytest.fixture(scope="module")
def dev(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    directory = tmp_path_factory.mktemp("dev")
    folder = copy_game(GAMES / getattr(request.module, "GAME", "stand"), directory)
    with serve(folder, directory / "dev.log", getattr(request.module, "SETTINGS", {}), routers=2) as server:
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    server = getattr(item, "funcargs", {}).get("dev")
    if report.failed and isinstance(server, DevServer):
        report.sections.append(("logs of playhall dev", logs(server.folder, server.log_path)))
    return report
