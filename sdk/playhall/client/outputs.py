"""What comes out of a `ClientCore`: orders to the transport, and events in the order they took place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from playhall.client.replica import Changes
from playhall.engine.connection import Message
from playhall.engine.errors import PlayhallError

__all__ = [
    "CallAnswered",
    "CallFailed",
    "CloseTransport",
    "Closed",
    "Disconnected",
    "Event",
    "FellAsleep",
    "Joined",
    "MessageReceived",
    "OpenTransport",
    "Output",
    "Restored",
    "SendFrame",
    "Updated",
    "Waking",
    "Woke",
]


@dataclass(frozen=True, slots=True)
class OpenTransport:
    """Connect, then say `opened`; or `closed` with 1006 where that fails."""


@dataclass(frozen=True, slots=True)
class SendFrame:
    """Send a frame on the open transport."""

    data: bytes
    unreliable: bool = False


@dataclass(frozen=True, slots=True)
class CloseTransport:
    """Close the transport, or give up connecting. The core wants to hear nothing more of that one."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Waking:
    """The room is being started."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The first state is in: connecting is done."""


@dataclass(frozen=True, slots=True)
class Updated:
    """An update was applied, as a whole."""

    tick: int
    changes: Changes


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """The room sent a message."""

    content: Message


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A call got its reply."""

    call: int
    content: Message


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A call was refused, or gets no answer any more (code 0)."""

    call: int
    error: PlayhallError


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The room is gone, for now. The client is coming back by itself."""

    code: int


@dataclass(frozen=True, slots=True)
class Restored:
    """The client is back, and its state is the room's."""


@dataclass(frozen=True, slots=True)
class FellAsleep:
    """The room sleeps, with its players connected."""


@dataclass(frozen=True, slots=True)
class Woke:
    """The room is awake again, and its state is here."""


@dataclass(frozen=True, slots=True)
class Closed:
    """It is over, and the client does not come back; also the end of a first connect that failed."""

    error: PlayhallError


Event: TypeAlias = (
    Waking
    | Joined
    | Updated
    | MessageReceived
    | CallAnswered
    | CallFailed
    | Disconnected
    | Restored
    | FellAsleep
    | Woke
    | Closed
)
Output: TypeAlias = OpenTransport | SendFrame | CloseTransport | Event
