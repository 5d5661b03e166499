"""The reference pages are as the docstrings have it. (The browser's: clients/web/test/reference.test.ts.)"""

from __future__ import annotations

from tools import gen_reference


def test_the_pages_are_fresh_and_nothing_public_lacks_a_docstring() -> None:
    pages, missing = gen_reference.pages()
    assert missing == []
    stale = [path.name for path, text in pages.items() if path.read_text() != text]
    assert stale == [], "run `make gen`"
