"""Coroutines that were made and never awaited: a `t.tick()` without its `await` does nothing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["forgotten_awaits"]

_NEVER_AWAITED = "was never awaited"


@contextmanager
def forgotten_awaits() -> Iterator[list[str]]:
    """Collect what Python warns of in the block, and where: a line for each. It is shown as ever, too."""
    found: list[str] = []
    with warnings.catch_warnings():
        show = warnings.showwarning

        def note(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, RuntimeWarning) and _NEVER_AWAITED in str(message):
                found.append(f"{message} ({os.path.basename(filename)}, line {lineno})")
            show(message, category, filename, lineno, file, line)

        warnings.showwarning = note
        warnings.filterwarnings("always", f".*{_NEVER_AWAITED}", RuntimeWarning)
        yield found
