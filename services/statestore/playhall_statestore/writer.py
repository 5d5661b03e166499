"""The threads of the volume: one that writes, one that reads and checkpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from playhall_statestore import meters
from playhall_statestore.model import Change, Item, Mark
from playhall_statestore.volume import Volume, VolumeReader

__all__ = ["Reader", "Writer"]

T = TypeVar("T")

# Passive checkpoints keep the WAL far below this, unless a reader holds an old end of it.
WAL_RESTART_BYTES = 64 << 20


class _Thread:
    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def end(self) -> None:
        self._executor.shutdown(wait=False)


class Writer:
    """The one that writes."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume
        self._thread = _Thread("volume-writer")

    async def commit(self, changes: list[Change]) -> None:
        await self._thread.run(lambda: self._volume.commit(changes))

    async def unfiled(self, uid: str) -> list[Item]:
        """What a reader may not find of the room. See Volume."""
        return await self._thread.run(lambda: self._volume.unfiled(uid))

    async def sweep(self) -> bool:
        """Delete a slice of garbage, file one of records; whether there is more."""
        return await self._thread.run(self._volume.sweep)

    async def restart_wal(self) -> None:
        """Hold up commits until the WAL can begin anew: the bound of its size."""
        await self._thread.run(lambda: self._volume.checkpoint("RESTART"))

    async def close(self) -> None:
        await self._thread.run(lambda: self._volume.checkpoint("TRUNCATE"))
        await self._thread.run(self._volume.close)
        self._thread.end()


class Reader:
    """The one that reads what was committed. Opens its connection on first use."""

    def __init__(self, path: Path, writer: Writer) -> None:
        self._path = path
        self._writer = writer
        self._wal = path.with_name(path.name + "-wal")
        self._reader: VolumeReader | None = None
        self._thread = _Thread("volume-reader")
        self._checkpointer = _Thread("volume-checkpoint")
        self._checkpoint: VolumeReader | None = None

    async def read_items(self, uid: str, base: Mark, upto: Mark) -> list[Item]:
        """See VolumeReader."""
        unfiled = await self._writer.unfiled(uid)

        def read() -> list[Item]:
            if self._reader is None:
                self._reader = VolumeReader(self._path)
            return self._reader.read_items(uid, base, upto, unfiled)

        return await self._thread.run(read)

    async def checkpoint(self) -> bool:
        """A passive checkpoint. Whether the WAL is so long that the writer has to help."""

        def checkpoint() -> int:
            if self._checkpoint is None:
                self._checkpoint = VolumeReader(self._path)
            self._checkpoint.checkpoint()
            return self._wal.stat().st_size if self._wal.exists() else 0

        size = await self._checkpointer.run(checkpoint)
        meters.WAL_BYTES.set(size)
        return size > WAL_RESTART_BYTES

    async def close(self) -> None:
        for thread, reader in ((self._thread, self._reader), (self._checkpointer, self._checkpoint)):
            if reader is not None:
                await thread.run(reader.close)
            thread.end()
