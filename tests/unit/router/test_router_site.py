"""Static files."""

from __future__ import annotations

from pathlib import Path

import pytest

from playhall_router.site import SiteFile, find_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    (root / "assets").mkdir(parents=True)
    (root / "index.html").write_text("<h1>home</h1>")
    (root / "assets" / "app ü.js").write_text("1")
    (root / "assets" / "index.html").write_text("in")
    (root / ".env").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    return root


def found(root: Path, path: str) -> SiteFile:
    file = find_file(root, path)
    assert file is not None
    return file


@pytest.mark.ledger("RTR-14")
def test_files_and_indexes_are_found_with_their_types(root: Path) -> None:
    assert found(root, "/").path.name == "index.html"
    assert found(root, "/").content_type == "text/html; charset=utf-8"
    assert found(root, "/assets").path == root.resolve() / "assets" / "index.html"
    assert found(root, "/assets/app%20%C3%BC.js").content_type == "text/javascript; charset=utf-8"
    assert found(root, "//index.html").size == 13


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.txt",
        "/assets/../../outside.txt",
        "/%2e%2e/outside.txt",
        "/..%2foutside.txt",
        "/assets/..%5c..%5coutside.txt",
        "/link.txt",
        "/.env",
        "/%2eenv",
        "/nothing.js",
        "/index.html/more",
        "/a%00b",
        "/" + "x" * 5000,
    ],
)
def test_nothing_else_is(root: Path, path: str) -> None:
    assert find_file(root, path) is None


def test_a_site_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert find_file(tmp_path / "missing", "/") is None


def test_the_etag_changes_with_the_file(root: Path) -> None:
    before = found(root, "/index.html").etag
    assert before == found(root, "/").etag
    (root / "index.html").write_text("<h1>changed</h1>")
    assert found(root, "/").etag != before
