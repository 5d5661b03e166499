"""Tasks that belong to somebody: none is forgotten, none fails unseen, and all end with their owner."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from playhall_common import logs

__all__ = ["Tasks"]

log = logs.get_logger()


class Tasks:
    """Tasks started one by one, where a TaskGroup has no place: their owner is called, and never waits.

    A task that raises is logged; the others go on.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run it."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def close(self) -> None:
        """Cancel what still runs, and wait for its end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task_failed", task=task.get_name(), exc_info=error)
