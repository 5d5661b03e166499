"""Another process may have taken this shard's place: callers say which epoch the map names (protocols, M18).

A higher one is not believed, because room hosts are not trusted: the database is asked, and if it says so
too, this process ends at once. Nothing it would still acknowledge could be found again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

from playhall.engine.codes import ErrorCode
from playhall_common import logs
from playhall_common.errors import ApiError

__all__ = ["EXIT_SUPERSEDED", "Epochs"]

EXIT_SUPERSEDED = 71

log = logs.get_logger()


class Epochs:
    """This shard's epoch against the map's. `ask` gives the epoch that the database has for this shard."""

    def __init__(self, epoch: int, ask: Callable[[], Awaitable[int]]) -> None:
        self._epoch = epoch
        self._ask = ask
        self._asking = asyncio.Lock()

    async def check(self, map_epoch: int) -> None:
        """Refuse a caller who knows another epoch: E_WRONG_SHARD; its detail `epoch` is this shard's. 0: it
        knows none.
        """
        if map_epoch in (0, self._epoch):
            return
        if map_epoch > self._epoch and not self._asking.locked():
            async with self._asking:
                await self._verify(map_epoch)
        text = f"this shard serves under epoch {self._epoch}"
        raise ApiError(ErrorCode.WRONG_SHARD, text, epoch=self._epoch)

    async def _verify(self, map_epoch: int) -> None:
        try:
            current = await self._ask()
        except ApiError as error:
            log.warning("epoch_unverified", map_epoch=map_epoch, error=repr(error))
            return
        if current > self._epoch:
            log.critical("superseded", epoch=self._epoch, current=current)
            os._exit(EXIT_SUPERSEDED)
        log.warning("epoch_invented", map_epoch=map_epoch, epoch=current)
