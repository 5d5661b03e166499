"""Which pages a project lets in."""

from __future__ import annotations

import pytest

from playhall_router.origins import is_allowed

ALLOWED = frozenset({"https://game.example", "localhost:7350"})


@pytest.mark.parametrize(
    "origin", ["https://game.example", "http://localhost:7350", "https://localhost:7350"]
)
def test_origins_are_named_whole_or_by_host(origin: str) -> None:
    assert is_allowed(origin, ALLOWED)


@pytest.mark.parametrize(
    "origin",
    ["", "null", "http://game.example", "https://game.example.evil.example", "http://[", "http://[::1",
     "\xff", "https://localhost:7350.evil.example"],
)  # fmt: skip
def test_other_origins_and_nonsense_are_not_let_in(origin: str) -> None:
    assert not is_allowed(origin, ALLOWED)
