"""Has wheels built with the native engine in them. An editable install has it built by `make` instead."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the modules into a folder of their own, and adds them to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, unless the install is editable or there is no compiler: then the engine is the pure one."""
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, self.root)
        from build_native import build

        lib = Path(self.root, "build", "lib")
        try:
            files = build(lib)
        except Exception as error:
            self.app.display_warning(f"no native engine in this wheel, it will be slower: {error}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for file in files:
            path = Path(self.root, file)
            build_data["force_include"][str(path)] = str(path.relative_to(lib))
