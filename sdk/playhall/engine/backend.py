"""Which engine runs: the native one where it was built, else the pure one. PLAYHALL_PURE=1 asks for the pure.

What exists twice is imported from here, under one name; type checkers see the pure twin. Both behave the same
to the byte, so nothing else asks which one it is.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Final

__all__ = [
    "Downlink",
    "Flush",
    "Gate",
    "Guard",
    "Handle",
    "HeaderScanner",
    "Intake",
    "Lane",
    "Rules",
    "Tracked",
    "Tracker",
    "UpQueue",
    "UpRun",
    "adopt",
    "bury",
    "by_room",
    "equip",
    "is_dead",
    "native",
    "put",
    "record_of",
    "reliable_only",
    "restore",
    "route",
    "rows_of",
    "set_owner",
    "stored_values",
]


def _native_is_wanted() -> bool:
    if os.environ.get("PLAYHALL_PURE", "") not in ("", "0"):
        return False
    try:
        import_module("playhall.engine.native.gate")
        import_module("playhall.engine.native.packing")
        import_module("playhall.engine.native.tables")
        import_module("playhall.engine.native.columns")
        import_module("playhall.engine.native.records")
    except ModuleNotFoundError:
        return False
    return True


native: Final[bool] = _native_is_wanted()
"""Whether the native engine runs."""

if TYPE_CHECKING or not native:
    from playhall.engine.gate import Gate, Rules
    from playhall.engine.handles import (
        Handle,
        adopt,
        bury,
        equip,
        is_dead,
        put,
        restore,
        set_owner,
        stored_values,
    )
    from playhall.engine.lanes import Downlink, Lane
    from playhall.engine.packing import UpQueue, UpRun, by_room, reliable_only, route
    from playhall.engine.records import record_of, rows_of
    from playhall.engine.tracking import Flush, Tracked, Tracker
    from playhall.engine.wsheaders import Guard, HeaderScanner, Intake
else:
    from playhall.engine.native.gate import Gate, Guard, HeaderScanner, Intake, Rules
    from playhall.engine.native.packing import (
        Downlink,
        Lane,
        UpQueue,
        UpRun,
        by_room,
        reliable_only,
        route,
    )
    from playhall.engine.native.records import record_of, rows_of
    from playhall.engine.native.tables import (
        Flush,
        Handle,
        Tracked,
        Tracker,
        adopt,
        bury,
        equip,
        is_dead,
        put,
        restore,
        set_owner,
        stored_values,
    )
