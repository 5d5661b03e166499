"""What goes to many links: the twins of links, views and sync, chosen as `backend` chooses the others.

Apart from `backend`, because these stand on what that exports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhall.engine.backend import native

if TYPE_CHECKING or not native:
    from playhall.engine.links import Link, Outbox
    from playhall.engine.sync import Sync
    from playhall.engine.views import Sight, View
else:
    from playhall.engine.native.fanout import Link, Outbox, Sight, Sync, View

__all__ = ["Link", "Outbox", "Sight", "Sync", "View"]
