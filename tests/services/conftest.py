"""What tests of real services share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import Processes


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Starts services; kills them after the test and gives a failed one their logs."""
    with Processes(tmp_path) as started:
        yield started
        started.print_logs()  # pytest shows it for failed tests only
