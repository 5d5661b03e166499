"""tools/ledger.py: what it reads as a mark, and what it complains about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import ledger
from tools.ledger import Mark, Work

HERE = Path("tests/unit/test_it.py")


def mark(row: str) -> Mark:
    return Mark(row, HERE, 1)


def work(*rows: str) -> Work:
    return Work("engine", "the room engine", rows)


def test_rows_are_the_first_column_of_tables() -> None:
    assert ledger.read_rows("| id | x |\n|---|---|\n| ENT-01 | see ENT-09 |\n| ENT-02 | y |\n") == [
        "ENT-01",
        "ENT-02",
    ]


def test_python_marks_count_on_functions_classes_modules_and_params() -> None:
    source = """
import pytest
pytestmark = [pytest.mark.ledger("A-1")]
@pytest.mark.ledger("A-2", "A-3")
class TestIt:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.ledger("A-4"))])
    def test_it(self, x): ...
@pytest.mark.other("A-5")
async def test_other(): "pytest.mark.ledger('A-6')"
"""
    assert {found.row for found in ledger.marks_in_python(source, HERE)} == {"A-1", "A-2", "A-3", "A-4"}


def test_a_computed_id_is_refused() -> None:
    with pytest.raises(ValueError, match="literal"):
        list(ledger.marks_in_python("x = pytest.mark.ledger(ID)", HERE))


def test_vitest_marks_stand_in_titles_only() -> None:
    source = """
describe("entities [A-1]", () => {
  it('leave [A-2] and [A-3]', () => { expect(rows["[A-9]"]) })
  test.each([1, 2])(`says %s [A-4]`, () => {})
})
"""
    found = list(ledger.marks_in_typescript(source, HERE))
    assert [(each.row, each.line) for each in found] == [("A-1", 2), ("A-2", 3), ("A-3", 3), ("A-4", 4)]


def test_marks_are_found_in_tests_examples_and_web_but_not_in_what_is_installed(tmp_path: Path) -> None:
    for path, text in {
        "tests/unit/test_a.py": "x = pytest.mark.ledger('A-1')",
        "examples/dots/test_b.py": "x = pytest.mark.ledger('A-2')",
        "clients/web/src/c.test.ts": "it('[A-3]')",
        "clients/web/node_modules/d.test.ts": "it('[A-4]')",
        "sdk/e.py": "x = pytest.mark.ledger('A-5')",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert [found.row for found in ledger.find_marks(tmp_path)] == ["A-1", "A-2", "A-3"]


def test_every_row_must_be_answered_for_once() -> None:
    assert ledger.complaints(["A-1", "A-2"], [mark("A-1")], [work("A-2")]) == []


@pytest.mark.parametrize(
    ("marks", "rows", "complaint"),
    [
        ([], ["A-1"], "A-2 has no test and no place in ledger-later.toml"),
        ([mark("A-1")], ["A-1", "A-2"], "A-1 has a test and stands in ledger-later.toml; prune it"),
        ([mark("A-9")], ["A-1", "A-2"], "tests/unit/test_it.py:1: no row A-9"),
        ([], ["A-1", "A-2", "A-9"], "ledger-later.toml: no row A-9"),
        ([], ["A-1", "A-2", "A-1"], "ledger-later.toml: A-1 stands there twice"),
    ],
)
def test_it_complains(marks: list[Mark], rows: list[str], complaint: str) -> None:
    assert ledger.complaints(["A-1", "A-2"], marks, [work(*rows)]) == [complaint]


def test_the_table_has_a_line_an_area_and_a_total() -> None:
    table = ledger.table(["A-1", "A-2", "B-1"], [mark("A-1"), mark("A-1")], [work("A-2", "B-1")])
    assert table == ["A 1/2 later 1", "B 0/1 later 1", "TOTAL 1/3 later 2"]


def test_pruning_drops_tested_rows_and_works_without_any() -> None:
    assert ledger.prune([work("A-1", "A-2"), work("A-3")], [mark("A-2"), mark("A-3")]) == [work("A-1")]


def test_the_later_file_reads_as_it_was_written() -> None:
    works = [work(*(f"A-{number}" for number in range(25)), "B-1"), Work("other", "else", ("C-1",))]
    assert ledger.read_later(ledger.render_later(works)) == works


def test_this_repository_has_every_row_of_its_ledger() -> None:
    rows = ledger.read_rows((ledger.ROOT / "docs" / "ledger.md").read_text())
    assert (len(rows), len(set(rows))) == (632, 632)
