"""A plugin of pytest: native modules come from the folder in PLAYHALL_SANITIZED.

`tools.run_sanitized` loads it, before anything imports the engine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from types import ModuleType

BUILT = os.environ["PLAYHALL_SANITIZED"]


class Finder:
    """Finds what was built there, before anything else is looked for."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec, if it is a native one of ours."""
        folder, _, _ = name.rpartition(".")
        if not folder.startswith("playhall."):
            return None
        found = PathFinder.find_spec(name, [os.path.join(BUILT, *folder.split("."))], target)
        return found if found is not None and isinstance(found.loader, ExtensionFileLoader) else None


sys.meta_path.insert(0, Finder)
