"""Print how much of docs/ledger.md has tests, and fail where nothing answers for a row.

Every row either has a test (`@pytest.mark.ledger("ENT-01")` in Python, `[ENT-01]` in a vitest title) or
stands in docs/ledger-later.toml under the work that brings it; never both. `--prune` takes the rows that
have tests by now out of that file. Marks are read from the source, so the answer does not depend on what
can be imported here.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON_TESTS = ("tests", "examples")
WEB = "clients/web"
INSTALLED = frozenset({"node_modules", ".venv", ".playhall"})

ROW = re.compile(r"^\| ([A-Z]+-\d+) \|", re.MULTILINE)
TITLE = re.compile(
    r"""\b(?:it|test|describe)(?:\.[\w.]+)?(?:\([^()]*\))?\(\s*(["'`])(.*?)(?<!\\)\1""", re.DOTALL
)
ID_IN_TITLE = re.compile(r"\[([A-Z]+-\d+)\]")


@dataclass(frozen=True)
class Mark:
    """A test's claim to check a row."""

    row: str
    path: Path
    line: int


@dataclass(frozen=True)
class Work:
    """A later work, and the rows it brings."""

    name: str
    brings: str
    rows: tuple[str, ...]


def area(row: str) -> str:
    """The part before the number."""
    return row.rpartition("-")[0]


def read_rows(ledger: str) -> list[str]:
    """Return the ids of the ledger's rows, in order."""
    return ROW.findall(ledger)


def read_later(text: str) -> list[Work]:
    """Read ledger-later.toml."""
    return [Work(work["name"], work["brings"], tuple(work["rows"])) for work in tomllib.loads(text)["work"]]


def render_later(works: Sequence[Work]) -> str:
    """Return ledger-later.toml, a line of rows per area."""
    text = (
        "# The rows of ledger.md that no test checks yet, by the work that brings them. `make ledger` fails\n"
        "# when a row is neither here nor on a test, and when it is both; to remove what has tests by now:\n"
        "# `.venv/bin/python -m tools.ledger --prune`\n"
    )
    for work in works:
        lines = [
            "  " + " ".join(f'"{row}",' for row in rows) + "\n"
            for _, group in groupby(work.rows, key=area)
            for rows in _batches(list(group), 10)
        ]
        text += f'\n[[work]]\nname = "{work.name}"\nbrings = "{work.brings}"\nrows = [\n{"".join(lines)}]\n'
    return text


def _batches(rows: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (rows[at : at + size] for at in range(0, len(rows), size))


def marks_in_python(source: str, path: Path) -> Iterator[Mark]:
    """Yield the rows named by `pytest.mark.ledger(...)` in a module, wherever it stands."""
    for node in ast.walk(ast.parse(source, str(path))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.ledger":
            for argument in node.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise ValueError(f"{path}:{node.lineno}: the ids of a ledger mark are literal strings")
                yield Mark(argument.value, path, node.lineno)


def marks_in_typescript(source: str, path: Path) -> Iterator[Mark]:
    """Yield the rows named in brackets in the titles of a vitest module."""
    for title in TITLE.finditer(source):
        for row in ID_IN_TITLE.findall(title.group(2)):
            yield Mark(row, path, source.count("\n", 0, title.start()) + 1)


def find_marks(root: Path) -> list[Mark]:
    """Return every mark of the repository's tests."""
    marks: list[Mark] = []
    for folder in PYTHON_TESTS:
        for path in _files(root / folder, "*.py"):
            marks += marks_in_python(path.read_text(), path.relative_to(root))
    for path in _files(root / WEB, "*.test.ts"):
        marks += marks_in_typescript(path.read_text(), path.relative_to(root))
    return marks


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.rglob(pattern) if not INSTALLED.intersection(path.parts))


def complaints(rows: Sequence[str], marks: Sequence[Mark], works: Sequence[Work]) -> list[str]:
    """Return what keeps the ledger from being answered for, one complaint a string."""
    known = set(rows)
    tested = {mark.row for mark in marks}
    later = [row for work in works for row in work.rows]
    found = [f"{mark.path}:{mark.line}: no row {mark.row}" for mark in marks if mark.row not in known]
    found += [f"ledger-later.toml: no row {row}" for row in later if row not in known]
    found += [f"ledger-later.toml: {row} stands there twice" for row in sorted(known) if later.count(row) > 1]
    for row in rows:
        if row in tested and row in later:
            found.append(f"{row} has a test and stands in ledger-later.toml; prune it")
        elif row not in tested and row not in later:
            found.append(f"{row} has no test and no place in ledger-later.toml")
    return found


def table(rows: Sequence[str], marks: Sequence[Mark], works: Sequence[Work]) -> list[str]:
    """Return a line an area, `AREA covered/total later n`, and a last one with the totals."""
    tested = {mark.row for mark in marks}
    later = {row for work in works for row in work.rows}
    areas = [(name, list(group)) for name, group in groupby(rows, key=area)]
    return [
        f"{name} {len(tested.intersection(those))}/{len(those)} later {len(later.intersection(those))}"
        for name, those in [*areas, ("TOTAL", list(rows))]
    ]


def prune(works: Sequence[Work], marks: Sequence[Mark]) -> list[Work]:
    """Return the works without the rows that have tests, and only those that still bring any."""
    tested = {mark.row for mark in marks}
    left = [replace(work, rows=tuple(row for row in work.rows if row not in tested)) for work in works]
    return [work for work in left if work.rows]


def main() -> int:
    """Print the table, then what is wrong."""
    parser = argparse.ArgumentParser(description="Print how much of docs/ledger.md has tests.")
    parser.add_argument("--prune", action="store_true", help="take tested rows out of ledger-later.toml")
    options = parser.parse_args()
    later = ROOT / "docs" / "ledger-later.toml"
    rows = read_rows((ROOT / "docs" / "ledger.md").read_text())
    works, marks = read_later(later.read_text()), find_marks(ROOT)
    if options.prune:
        works = prune(works, marks)
        later.write_text(render_later(works))
    print(*table(rows, marks, works), sep="\n")
    wrong = complaints(rows, marks, works)
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
