"""What goes to many links: the twins of links, views and sync, chosen as `backend` chooses the others.

Apart from `backend`, because these stand on what that exports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from playhall.engine.backend import Flush, Tracker, native
from playhall.engine.grids import DeclaredGrid

if TYPE_CHECKING or not native:
    from playhall.engine.links import Link, Outbox
    from playhall.engine.sync import Sync
    from playhall.engine.views import Sight, View
else:
    from playhall.engine.native.links import Link, Outbox
    from playhall.engine.native.sync import Sync
    from playhall.engine.native.views import Sight, View

__all__ = ["Link", "Look", "Outbox", "Sight", "Sync", "View", "grid_look"]


class Look(Protocol):
    """Finds what connections see, as `Visibility.look` does."""

    def look(self, links: list[Link], flush: Flush | None, *, tick: bool) -> bool: ...


def grid_look(
    tracker: Tracker,
    grids: Sequence[DeclaredGrid],
    state_number: int | None,
    most: int,
    too_many: Callable[[Link], object],
) -> Look | None:
    """Return what finds that without asking for keys, where interest is these grids. None: this engine asks.

    `most` is how much a connection can see; `too_many` hears of those that would see more.
    """
    if not native:
        return None
    gridlook: Any = import_module("playhall.engine.native.gridlook")
    look: Look = gridlook.GridLook(tracker, grids, state_number, most, too_many)
    return look
