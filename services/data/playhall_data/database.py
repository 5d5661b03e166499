"""The database: transactions that read, transactions that write, and what may wait for them.

A write is durable when its block ends. On SQLite that is WAL with synchronous FULL, and a write takes the
write lock when it begins: a transaction that reads first and writes later could otherwise fail in the middle.
On other databases two writes may run at once and meet at a constraint; `retry_conflicts` runs the loser
again, which then sees what the winner wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from playhall.engine.codes import ErrorCode
from playhall_common import logs
from playhall_common.errors import ApiError
from playhall_data import migrations

__all__ = ["Database", "retry_conflicts"]

T = TypeVar("T")

_WRITES = "playhall_writes"
_ATTEMPTS = 5

log = logs.get_logger()


class Database:
    """A pool of connections. Make one with `open`, end it with `close`."""

    def __init__(self, engine: AsyncEngine, *, timeout_s: float, max_pending: int) -> None:
        self._engine = engine
        self._writer = engine.execution_options(**{_WRITES: True})
        self._timeout_s = timeout_s
        self._max_pending = max_pending
        self._pending = 0
        # SQLite has one writer. Waiting here is fair and costs nothing; waiting in SQLite is polling.
        one_writer = engine.dialect.name == "sqlite"
        self._write_lock: contextlib.AbstractAsyncContextManager[Any] = (
            asyncio.Lock() if one_writer else contextlib.nullcontext()
        )

    @classmethod
    async def open(cls, url: str, *, timeout_s: float, max_pending: int) -> Database:
        """Connect and migrate."""
        engine = _create_engine(url, timeout_s)
        database = cls(engine, timeout_s=timeout_s, max_pending=max_pending)
        try:
            async with database._writer.begin() as connection:
                if await connection.run_sync(migrations.upgrade):
                    log.info("database_migrated", revision=migrations.HEAD)
        except BaseException:
            await engine.dispose()
            raise
        return database

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that sees one moment. Raises E_UNAVAILABLE, and E_LIMIT where too many wait."""
        async with self._bounded(), self._engine.connect() as connection:
            yield connection

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that is durable when the block ends, and undone where the block raises."""
        async with self._bounded(), self._write_lock, self._writer.begin() as connection:
            yield connection

    @contextlib.asynccontextmanager
    async def _bounded(self) -> AsyncIterator[None]:
        if self._pending >= self._max_pending:
            raise ApiError(ErrorCode.LIMIT, "too many requests wait for the database")
        self._pending += 1
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError as error:
            raise ApiError(ErrorCode.UNAVAILABLE, "the database did not answer in time") from error
        except (OperationalError, PoolTimeoutError) as error:
            log.error("database_unavailable", error=str(error))
            raise ApiError(ErrorCode.UNAVAILABLE, "the database is out of reach") from error
        except DBAPIError as error:
            if error.connection_invalidated:
                raise ApiError(ErrorCode.UNAVAILABLE, "the database is out of reach") from error
            raise
        finally:
            self._pending -= 1


async def retry_conflicts(write: Callable[[], Awaitable[T]]) -> T:
    """Run `write`, a whole transaction, again while it loses to another at a constraint; 5 times at most."""
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(IntegrityError):
            return await write()
    return await write()


def _create_engine(url: str, timeout_s: float) -> AsyncEngine:
    parsed = make_url(url)
    options: dict[str, Any] = {"pool_timeout": timeout_s}
    sqlite = parsed.get_backend_name() == "sqlite"
    if sqlite:
        if not parsed.database or parsed.database == ":memory:":
            raise ValueError("PLAYHALL_DATA_DATABASE_URL names no file")
        path = Path(parsed.database)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)  # it holds keys; SQLite gives its other files the mode of this one
        options["connect_args"] = {"timeout": timeout_s}
    engine = create_async_engine(parsed, **options)
    if sqlite:
        event.listen(engine.sync_engine, "connect", _set_up_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    # The driver begins transactions at the first write; None leaves that to `_begin_sqlite`.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
