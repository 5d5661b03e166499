"""The code in the docs, as files: what the guides show is what runs.

A Python block whose first line is `# game/file.py` is that file. Each guide is a package of its own, so that
guides may use the same names. A folder that is named as an example, like `dots`, has the example's files too,
where the guide does not show others. The TypeScript blocks of a guide are one module beside its `shared.py`:
what the first one imports and declares is there in the others.

`dead_links` looks at the links between all pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playhall.cli.gen import generate

__all__ = ["ROOT", "Guide", "dead_links", "first_block", "write_guides"]

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
_BLOCK = re.compile(r"^```(python|ts)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([a-z_]+/[a-z_/]+\.py)\b")
_ANY_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_IMPORT = re.compile(r"^import [^;]*;.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Guide:
    """One page: its files by path, `{"dots/room.py": ...}`, and its TypeScript blocks."""

    name: str
    files: dict[str, str]
    scripts: tuple[str, ...]

    @property
    def package(self) -> str:
        return f"guide_{self.name.replace('-', '_')}"

    @property
    def modules(self) -> list[str]:
        return [f"{self.package}.{file.removesuffix('.py').replace('/', '.')}" for file in self.files]


def read_guide(page: Path) -> Guide:
    """Read a page. Raises ValueError where it shows one file twice."""
    files: dict[str, str] = {}
    scripts: list[str] = []
    for language, code in _BLOCK.findall(page.read_text()):
        if language == "ts":
            scripts.append(code)
        elif named := _FILE.match(code):
            if named[1] in files:
                raise ValueError(f"{page.name} shows {named[1]} twice")
            files[named[1]] = code
    return Guide(page.stem, files, tuple(scripts))


def first_block(name: str, language: str) -> str:
    """Return the first block of a language in a guide. Raises ValueError where there is none."""
    found = re.search(rf"^```{language}\n(.*?)^```$", (GUIDES / f"{name}.md").read_text(), re.M | re.S)
    if found is None:
        raise ValueError(f"{name}.md has no {language}")
    return found[1]


def write_guides(into: Path) -> list[Guide]:
    """Write every guide's code into a folder, and return those that have any."""
    guides = [guide for page in sorted(GUIDES.glob("*.md")) if (guide := read_guide(page)).files]
    for guide in guides:
        _write(guide, into / guide.package)
    return guides


def _write(guide: Guide, package: Path) -> None:
    for file, code in _all_files(guide):
        path = package / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    for folder in {package, *(path.parent for path in package.rglob("*.py"))}:
        (folder / "__init__.py").touch()
    if guide.scripts:
        [shared] = package.glob("*/shared.py")
        (package / "shared.gen.ts").write_text(generate(shared))
        (package / "page.ts").write_text(_one_module(guide.scripts))


def _all_files(guide: Guide) -> Iterator[tuple[str, str]]:
    for folder in {file.partition("/")[0] for file in guide.files}:
        for source in sorted((ROOT / "examples" / folder).glob("*.py")):
            if not source.name.startswith(("test_", "conftest")):
                yield f"{folder}/{source.name}", source.read_text()
    yield from guide.files.items()


def _one_module(scripts: tuple[str, ...]) -> str:
    heads = "".join(line for script in scripts for line in _IMPORT.findall(script))
    first, *others = (_IMPORT.sub("", script) for script in scripts)
    return heads + first + "".join(f"{{\n{script}}}\n" for script in others) + "export {};\n"


def dead_links() -> list[str]:
    """Return the links between the repository's pages that lead to no file, or to no heading of it."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "clients" / "web" / "README.md"]
    anchors = {page: _anchors(page) for page in pages}
    dead: list[str] = []
    for page in pages:
        for file, anchor in _LINK.findall(_prose(page)):
            target = (page.parent / file).resolve() if file else page
            if not target.exists() or (anchor and anchor not in anchors.get(target, ())):
                dead.append(f"{page.relative_to(ROOT)}: {file}#{anchor}")
    return dead


def _anchors(page: Path) -> set[str]:
    """Return a page's headings as links name them: lower case, spaces as dashes, no punctuation."""
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(_prose(page))
    }


def _prose(page: Path) -> str:
    return _ANY_BLOCK.sub("", page.read_text())
