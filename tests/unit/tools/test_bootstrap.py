"""tools/bootstrap.sh: which Python and uv it takes, and what it says when there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "tools" / "bootstrap.sh"


def command(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def bootstrap(folder: Path, python: object) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "PYTHON": str(python)}
    return subprocess.run(["sh", SCRIPT], cwd=folder, env=environment, capture_output=True, text=True)


def test_no_suitable_python(tmp_path: Path) -> None:
    result = bootstrap(tmp_path, command(tmp_path / "old-python", "exit 1"))
    assert result.returncode == 1
    assert "Python 3.11, 3.12 or 3.13 is needed" in result.stderr


def test_python_without_venv_and_pip(tmp_path: Path) -> None:
    command(tmp_path / "uv", "exit 2")
    result = bootstrap(tmp_path, command(tmp_path / "python", '[ "$1" = -c ]'))
    assert result.returncode == 1
    assert "apt-get install python3-venv" in result.stderr


def test_a_uv_on_path_is_used_with_the_python_that_was_found(tmp_path: Path) -> None:
    command(tmp_path / "uv", 'echo "$UV_PYTHON_DOWNLOADS: $*"')
    python = command(tmp_path / "python", "exit 0")
    result = bootstrap(tmp_path, python)
    assert result.returncode == 0
    assert result.stdout.startswith("never: sync")
    assert "--frozen" in result.stdout
    assert f"--python {python}" in result.stdout
    assert not (tmp_path / ".tools").exists()
