"""tools/find_chromium.py, on a PATH made here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools import find_chromium


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PLAYHALL_CHROMIUM", raising=False)
    return tmp_path


def command(path: Path, script: str = "#!/bin/sh\n") -> str:
    path.write_text(script)
    path.chmod(0o755)
    return str(path)


def test_debians_chromium_comes_before_chrome(path: Path) -> None:
    command(path / "google-chrome")
    chromium = command(path / "chromium")
    assert find_chromium.find() == chromium


def test_the_environment_wins(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(path / "chromium")
    own = command(path / "own")
    monkeypatch.setenv("PLAYHALL_CHROMIUM", own)
    assert find_chromium.find() == own


def test_nothing_there_is_none(path: Path) -> None:
    assert find_chromium.find() is None


def test_someone_else_than_root_is_told_how(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(path / "apt-get", "#!/bin/sh\nexit 99\n")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(find_chromium.ChromiumMissingError, match="sudo apt-get install chromium"):
        find_chromium.find_or_install()


def test_root_gets_it_from_apt(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = path / "chromium"
    script = f'[ "$1" = install ] || exit 0\necho "#!/bin/sh" > {made}\n/bin/chmod +x {made}\n'
    command(path / "apt-get", f"#!/bin/sh\n{script}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert find_chromium.find_or_install() == str(made)


def test_an_apt_that_fails_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(path / "apt-get", "#!/bin/sh\nexit 100\n")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(find_chromium.ChromiumMissingError, match="apt-get update -qq failed"):
        find_chromium.find_or_install()
