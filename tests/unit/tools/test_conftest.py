"""The repository's conftest.py: categories by folder, and skips that fail where PLAYHALL_CI=1."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[3]
SKIPPED = "import pytest\ndef test_ok(): ...\n@pytest.mark.skip\ndef test_skipped(): ...\n"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    (pytester.path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    pytester.makepyprojecttoml(
        f'[tool.pytest.ini_options]\npythonpath = ["{ROOT}"]\naddopts = ["--strict-markers"]'
    )
    monkeypatch.delenv("PLAYHALL_CI", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


def module(pytester: pytest.Pytester, path: str, text: str) -> None:
    (pytester.path / path).parent.mkdir(parents=True, exist_ok=True)
    (pytester.path / path).write_text(text)


def test_the_folder_is_the_category(run: pytest.Pytester) -> None:
    module(run, "tests/unit/test_it.py", "def test_it(): ...")
    module(run, "tests/e2e/test_that.py", "def test_that(): ...")
    run.runpytest_inprocess("-m", "e2e").assert_outcomes(passed=1, deselected=1)


def test_a_module_without_a_category_fails_collection(run: pytest.Pytester) -> None:
    module(run, "tests/misc/test_it.py", "def test_it(): ...")
    result = run.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*tests stand in tests/<category>*"])


def test_a_skip_passes_at_home(run: pytest.Pytester) -> None:
    module(run, "tests/unit/test_it.py", SKIPPED)
    assert run.runpytest_inprocess().ret == pytest.ExitCode.OK


@pytest.mark.parametrize("text", [SKIPPED, "import pytest\npytest.importorskip('nowhere')\n"])
def test_a_skip_fails_in_ci_and_is_named(
    run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("PLAYHALL_CI", "1")
    module(run, "tests/unit/test_it.py", text)
    result = run.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*skipped, which fails under PLAYHALL_CI=1*", "*tests/unit/test_it.py*"])
