"""A folder of static files over HTTP: what a path names, and what may be said of it. No sockets here."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

__all__ = ["SiteFile", "find_file"]

# Said here where systems differ or know nothing.
_TYPES = {
    ".css": "text/css", ".html": "text/html", ".ico": "image/x-icon", ".js": "text/javascript",
    ".json": "application/json", ".map": "application/json", ".mjs": "text/javascript", ".png": "image/png",
    ".svg": "image/svg+xml", ".txt": "text/plain", ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json", ".woff2": "font/woff2",
}  # fmt: skip
_INDEX = "index.html"
_TEXT = ("text/", "application/json", "application/manifest+json", "image/svg+xml")


@dataclass(frozen=True, slots=True)
class SiteFile:
    """A file to be served."""

    path: Path
    content_type: str
    etag: str
    size: int


def find_file(root: Path, url_path: str) -> SiteFile | None:
    """The file that a URL's path names; a folder's is its index.html. None: there is none, or it is not to be
    seen.

    Nothing outside of `root` is ever found, also not by a link that leads there, and nothing whose name, or
    whose folder's, begins with a dot.
    """
    parts = [part for part in unquote(url_path).split("/") if part]
    if any(part.startswith(".") or "\\" in part or "\0" in part for part in parts):
        return None
    try:
        home = root.resolve(strict=True)
        path = home.joinpath(*parts).resolve(strict=True)
        if path.is_dir():
            path = (path / _INDEX).resolve(strict=True)
        if not path.is_relative_to(home) or not path.is_file():
            return None
        stat = path.stat()
    except (OSError, ValueError, RuntimeError):
        return None
    return SiteFile(path, _content_type(path), f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"', stat.st_size)


def _content_type(path: Path) -> str:
    kind = _TYPES.get(path.suffix.lower()) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith(_TEXT) else kind
