"""Reading and writing the WebSockets of many clients, below the event loop: Linux, and a server's side.

A loop and a protocol object cost more for a small frame than the frame does. `Poller` reads the sockets that
have something, one after the other, into one buffer; `Port` writes a message to its socket at once. Both
leave to the transport whatever does not go smoothly. Two twins, as in the engine: `native.pyx`, and `plain`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from playhall.engine import backend
from playhall.sockets.plain import CAN_POLL

__all__ = ["CAN_POLL", "Poller", "Port"]


def _native_is_there() -> bool:
    if not backend.native:
        return False
    try:
        import_module("playhall.sockets.native")
    except ModuleNotFoundError:
        return False
    return True


if TYPE_CHECKING or not _native_is_there():
    from playhall.sockets.plain import Poller, Port
else:
    from playhall.sockets.native import Poller, Port
