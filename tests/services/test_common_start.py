"""What a service imports at start. Eight start on two cores, so what few need comes later."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LATER = ("alembic", "livekit", "rich", "pygments", "pydantic", "numpy", "aiohttp", "jwt")


@pytest.mark.parametrize(
    "module", ["playhall_common.server", "playhall_data.__main__", "playhall_voice.__main__"]
)
def test_costly_packages_are_imported_when_they_are_needed(module: str) -> None:
    code = f"import sys, json, {module}; print(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert set(json.loads(done.stdout)).isdisjoint(LATER)
