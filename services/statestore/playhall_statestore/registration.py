"""Which epoch a shard serves under: its volume's word and the database's, compared (protocols, Shard start).

the volume is older than the database knows     E_STALE_VOLUME: the process ends
the volume is empty and the shard known         E_EMPTY_VOLUME: the process ends, unless `replace`
a new epoch                                     a marker in the object store, then on the volume, then serve
the database is out of reach                    start on the volume, ask on; an empty one waits for it
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from playhall.engine.codes import ErrorCode
from playhall_common import logs
from playhall_common.errors import ApiError
from playhall_statestore.objects import ObjectStore
from playhall_statestore.snapshot import epoch_marker, epoch_of
from playhall_statestore.volume import Identity, Volume

__all__ = ["MAX_EPOCH", "Registration", "RegistrationError"]

# Generations stay exact in JavaScript.
MAX_EPOCH = 1 << 20
RETRY_S = 0.25
LATER_S = 1.0

# (volume_epoch, min_epoch) to the epoch; raises ApiError.
Register = Callable[[int, int], Awaitable[int]]

log = logs.get_logger()


class RegistrationError(Exception):
    """The shard may not serve on this volume."""


class Registration:
    """Gets a shard its epoch."""

    def __init__(
        self,
        volume: Volume,
        objects: ObjectStore,
        register: Register,
        *,
        cluster: str,
        shard_id: str,
        replace: bool,
    ) -> None:
        self._volume = volume
        self._objects = objects
        self._register = register
        self._cluster = cluster
        self._shard_id = shard_id
        self._replace = replace

    async def identify(self, empty_wait_s: float) -> tuple[Identity, bool]:
        """The identity to serve under, durable, and whether the database confirmed it.

        Raises RegistrationError, WrongVolumeError, or ApiError where the database refuses.
        """
        known = self._volume.check(self._cluster, self._shard_id)
        epoch = await self._ask(known, empty_wait_s)
        if epoch is None:
            assert known is not None, "an empty volume waits for an epoch"
            return known, False
        if known is not None and known.epoch == epoch:
            return known, True
        return await self._begin(epoch, known), True

    async def confirm(self, identity: Identity) -> None:
        """Ask on after a start without the database. Raises RegistrationError if the epoch is another's."""
        wait_s = RETRY_S
        while True:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LATER_S)
            try:
                epoch = await self._register(identity.epoch, 0)
            except ApiError as error:
                if error.code is ErrorCode.UNAVAILABLE:
                    continue
                raise RegistrationError(f"the database refuses this volume: {error}") from error
            if epoch != identity.epoch:
                raise RegistrationError(f"the database gives epoch {epoch}; this runs under {identity.epoch}")
            return

    async def _ask(self, known: Identity | None, empty_wait_s: float) -> int | None:
        """The database's word; None: it cannot be reached, and the volume has one."""
        min_epoch = 0 if known is not None else await asyncio.to_thread(self._highest_marker)
        try:
            async with asyncio.timeout(empty_wait_s):
                while True:
                    try:
                        return await self._register(known.epoch if known is not None else 0, min_epoch)
                    except ApiError as error:
                        if error.code is not ErrorCode.UNAVAILABLE:
                            raise
                    if known is not None:
                        log.warning("registry_away", serving_on="volume", epoch=known.epoch)
                        return None
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            raise RegistrationError("the volume is empty and the data service does not answer") from None

    async def _begin(self, epoch: int, known: Identity | None) -> Identity:
        """The marker first: an epoch without a volume is harmless, one without a marker is not."""
        floor = max(known.epoch if known is not None else 0, await asyncio.to_thread(self._highest_marker))
        if not floor < epoch < MAX_EPOCH:
            raise RegistrationError(
                f"the database gives epoch {epoch}, but {floor} was used: it is older than the object store"
            )
        await asyncio.to_thread(
            self._objects.put, epoch_marker(self._cluster, epoch), self._shard_id.encode()
        )
        identity = Identity(self._cluster, self._shard_id, epoch, recovering=known is None and self._replace)
        self._volume.set_identity(identity)
        return identity

    def _highest_marker(self) -> int:
        markers = self._objects.list(f"{self._cluster}/epochs/")
        return max((epoch_of(marker) for marker in markers), default=0)
