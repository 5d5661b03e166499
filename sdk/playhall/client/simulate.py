"""`simulate=`: a slow or lossy network in front of a real one, for trying a game against a local router."""

from __future__ import annotations

import asyncio
import ipaddress
import random
from functools import partial
from urllib.parse import urlsplit

from playhall.client.net import Net, Pipe
from playhall.client.transport import Dial, Receiver, Transport
from playhall.engine.frames import UNRELIABLE

__all__ = ["SimulatedDial", "check_local"]


def check_local(url: str) -> None:
    """Raise ValueError unless the origin is on this machine, where a network is missing to begin with."""
    host = urlsplit(url).hostname or ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
    if not local:
        raise ValueError(f"simulate= is for a router on this machine, and {url!r} is not: leave it off")


class SimulatedDial:
    """Connects as another dial does, and lets what goes over the connection take the way of a `Net`."""

    def __init__(self, dial: Dial, net: Net) -> None:
        self._dial = dial
        self._net = net
        self._rng = random.Random(net.seed)

    async def __call__(self, receiver: Receiver) -> Transport:
        down = _Down(receiver, Pipe(self._net, self._rng))
        await asyncio.sleep(self._net.rtt)
        return _Up(await self._dial(down), Pipe(self._net, self._rng))


class _Up:
    """The transport as the client uses it."""

    def __init__(self, transport: Transport, pipe: Pipe) -> None:
        self._transport = transport
        self._pipe = pipe

    @property
    def unsent(self) -> int:
        return self._pipe.waiting + self._transport.unsent

    def send(self, frame: bytes, unreliable: bool) -> None:
        self._pipe.send(len(frame), unreliable, partial(self._transport.send, frame, unreliable))

    def close(self, code: int, reason: str) -> None:
        self._pipe.send(0, False, partial(self._transport.close, code, reason))


class _Down:
    """What hears of the transport, for the client."""

    def __init__(self, receiver: Receiver, pipe: Pipe) -> None:
        self._receiver = receiver
        self._pipe = pipe

    def received(self, frame: bytes) -> None:
        unreliable = frame[:1] == bytes([UNRELIABLE])
        self._pipe.send(len(frame), unreliable, partial(self._receiver.received, frame))

    def violated(self, problem: str) -> None:
        self._pipe.send(0, False, partial(self._receiver.violated, problem))

    def closed(self, code: int, reason: str) -> None:
        self._pipe.send(0, False, partial(self._receiver.closed, code, reason))
