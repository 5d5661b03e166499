"""The network of one test client: every connection it makes goes over it, and tests cut it."""

from __future__ import annotations

import asyncio
import random

from playhall.client.net import Net, Pipe

__all__ = ["Network"]

# As of the WebSocket: how long opening a connection may take.
DIAL_S = 10.0


class Network:
    """Makes the pipes of a client's connections. What they draw depends on the seed alone."""

    def __init__(self, net: Net, player: str, seed: str) -> None:
        self._net = net
        self._seed = seed
        self.player = player
        self._made = 0
        self._pipes: set[Pipe] = set()
        self._mended = asyncio.Event()
        self._mended.set()

    @property
    def net(self) -> Net:
        """What the network is like; may be changed, for what is sent from then on."""
        return self._net

    @net.setter
    def net(self, net: Net) -> None:
        self._net = net
        for pipe in self._pipes:
            pipe.net = net

    @property
    def is_cut(self) -> bool:
        return not self._mended.is_set()

    def cut(self) -> None:
        """Let nothing through, and tell nobody."""
        self._mended.clear()
        for pipe in self._pipes:
            pipe.cut()

    def mend(self) -> None:
        """Let through again."""
        self._mended.set()
        for pipe in self._pipes:
            pipe.mend()

    async def handshake(self) -> None:
        """Take the time that opening a connection takes. Raises TimeoutError while the network is cut."""
        async with asyncio.timeout(DIAL_S):
            await self._mended.wait()
        if self._net.rtt:
            await asyncio.sleep(self._net.rtt)

    def pipe(self) -> Pipe:
        """Make a direction of a new connection."""
        self._made += 1
        pipe = Pipe(self._net, random.Random(f"{self._seed} {self._made}"))
        if self.is_cut:
            pipe.cut()
        self._pipes.add(pipe)
        return pipe

    def forget(self, pipe: Pipe) -> None:
        """A connection is over: lose what is still in this direction of it."""
        pipe.close()
        self._pipes.discard(pipe)
