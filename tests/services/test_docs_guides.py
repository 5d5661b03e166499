"""What the guides show works: both type checkers (strict) and tsc pass it, it imports, and its tests pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from playhall.cli.project import load
from tests.support.docs_blocks import ROOT, Guide, dead_links, first_block, write_guides

WEB = ROOT / "clients" / "web"
FIRST_GAME = {"toml": "playhall.toml", "js": "build.mjs", "html": "web/index.html", "ts": "web/src/main.ts"}
"""Where first-game.md has its first block of each language."""
TIMEOUT_S = 110


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guides")


@pytest.fixture(scope="module")
def guides(folder: Path) -> list[Guide]:
    return write_guides(folder)


def run(command: Sequence[str | Path], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_guide_of_the_engine_shows_code(guides: list[Guide]) -> None:
    shown = {guide.name for guide in guides}
    assert shown >= {"bots", "calls", "interest", "ownership", "presence", "room", "state-sync", "testing"}


def test_modules_import(guides: list[Guide], folder: Path) -> None:
    modules = [module for guide in guides for module in guide.modules]
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    run([sys.executable, "-W", "error", "-c", code, *modules], folder)


def test_tests_pass(guides: list[Guide], folder: Path) -> None:
    run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder], folder)


def test_mypy_agrees(guides: list[Guide], folder: Path) -> None:
    packages = [argument for guide in guides for argument in ("-p", guide.package)]
    config = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    run([sys.executable, "-m", "mypy", *config, *packages], folder)


def test_pyright_agrees(guides: list[Guide], folder: Path) -> None:
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "venvPath": str(ROOT), "venv": ".venv"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    run([ROOT / ".venv" / "bin" / "pyright", "-p", folder], folder)


def test_typescript_compiles(guides: list[Guide], folder: Path) -> None:
    settings = {
        "extends": str(WEB / "tsconfig.json"),
        "compilerOptions": {
            "noUnusedLocals": False,
            "paths": {"@playhall/client": [str(WEB / "src" / "index.ts")]},
            "typeRoots": [str(WEB / "node_modules" / "@types")],
        },
        "include": ["*/page.ts"],
    }
    (folder / "tsconfig.json").write_text(json.dumps(settings))
    run([WEB / "node_modules" / ".bin" / "tsc", "-p", folder], folder)


def test_the_first_game_has_a_page(guides: list[Guide], folder: Path) -> None:
    game = folder / "guide_first_game" / "pebbles"
    (game / "web" / "src").mkdir(parents=True)
    for language, file in FIRST_GAME.items():
        (game / file).write_text(first_block("first-game", language))
    modules = game / "node_modules"
    client = modules / "@playhall" / "client"
    (client / "dist").mkdir(parents=True)
    (modules / "esbuild").symlink_to(WEB / "node_modules" / "esbuild")
    (client / "package.json").write_bytes((WEB / "package.json").read_bytes())
    (client / "dist" / "index.js").write_text(f"export * from {json.dumps(str(WEB / 'src' / 'index.ts'))};")
    project = load(game / "playhall.toml")
    assert project.site is not None
    assert project.site.build is not None
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run(["env", f"PATH={path}", "sh", "-c", project.site.build], game)
    site = {file.name for file in (game / project.site.dir).iterdir()}
    assert site == {"index.html", "main.js"}


def test_links_of_all_pages_lead_somewhere() -> None:
    assert dead_links() == []
