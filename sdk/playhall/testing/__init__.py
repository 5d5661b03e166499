"""The test harness: rooms in process, with real clients and a clock that only the test moves."""

from playhall.client.net import Net
from playhall.client.outputs import Updated
from playhall.testing.backend import RoomStoppedError
from playhall.testing.client import TestClient
from playhall.testing.host import RoomHost
from playhall.testing.loop import Deadlock, StillLoop
from playhall.testing.room import TestRoom
from playhall.testing.store import RoomData, StoredBot, StoredEntity

__all__ = [
    "Deadlock",
    "Net",
    "RoomData",
    "RoomHost",
    "RoomStoppedError",
    "StillLoop",
    "StoredBot",
    "StoredEntity",
    "TestClient",
    "TestRoom",
    "Updated",
]
