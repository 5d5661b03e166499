"""The database behind the data service: migrations, durability, bounds. In process, on files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_data import migrations, tables
from playhall_data.database import Database, retry_conflicts


@asynccontextmanager
async def opened(path: Path, *, timeout_s: float = 10.0, max_pending: int = 64) -> AsyncIterator[Database]:
    url = f"sqlite+aiosqlite:///{path}/data.db"
    database = await Database.open(url, timeout_s=timeout_s, max_pending=max_pending)
    try:
        yield database
    finally:
        await database.close()


@pytest.mark.asyncio
async def test_migrations_make_the_tables_that_the_code_uses(tmp_path: Path) -> None:
    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), tables.metadata))

    async with opened(tmp_path) as database, database.read() as connection:
        assert await connection.run_sync(differences) == []


def test_head_is_the_newest_revision() -> None:
    script = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert script.get_current_head() == migrations.HEAD


@pytest.mark.asyncio
async def test_a_migrated_database_is_left_alone(tmp_path: Path) -> None:
    async with opened(tmp_path), opened(tmp_path) as database, database.write() as connection:
        assert await connection.run_sync(migrations.upgrade) is False


@pytest.mark.asyncio
async def test_services_that_start_at_once_migrate_once(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/data.db"
    databases = await asyncio.gather(*(Database.open(url, timeout_s=10, max_pending=8) for _ in range(4)))
    async with databases[0].read() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM sequences")) == 2
    for database in databases:
        await database.close()


@pytest.mark.asyncio
async def test_commits_reach_the_disk(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:
        for transaction in (database.read, database.write):
            async with transaction() as connection:
                assert await connection.scalar(text("PRAGMA journal_mode")) == "wal"
                assert await connection.scalar(text("PRAGMA synchronous")) == 2
                assert await connection.scalar(text("PRAGMA foreign_keys")) == 1


@pytest.mark.asyncio
async def test_a_write_that_raises_leaves_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as database:

        async def write_and_raise() -> None:
            async with database.write() as connection:
                await connection.execute(text("UPDATE sequences SET value = 7"))
                raise RuntimeError

        with pytest.raises(RuntimeError):
            await write_and_raise()
        async with database.read() as connection:
            assert await connection.scalar(text("SELECT max(value) FROM sequences")) == 0


@pytest.mark.asyncio
async def test_two_processes_worth_of_writers_lose_no_update(tmp_path: Path) -> None:
    async def count_up(database: Database) -> None:
        async with database.write() as connection:
            value = await connection.scalar(text("SELECT value FROM sequences WHERE name = 'map_version'"))
            await connection.execute(
                text("UPDATE sequences SET value = :value WHERE name = 'map_version'"), {"value": value + 1}
            )

    async with opened(tmp_path) as one, opened(tmp_path) as other:
        await asyncio.gather(*(count_up(each) for each in [one, other] * 20))
        async with one.read() as connection:
            query = text("SELECT value FROM sequences WHERE name = 'map_version'")
            assert await connection.scalar(query) == 40


@pytest.mark.asyncio
async def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    async with opened(tmp_path) as database, database.write() as writing:
        await writing.execute(text("UPDATE sequences SET value = 7"))
        async with database.read() as reading:
            assert await reading.scalar(text("SELECT max(value) FROM sequences")) == 0


@pytest.mark.asyncio
async def test_a_wait_for_the_database_has_a_deadline(tmp_path: Path) -> None:
    async with opened(tmp_path) as holder, opened(tmp_path, timeout_s=0.1) as database:
        async with holder.write():
            with pytest.raises(ApiError) as caught:
                async with database.write():
                    pytest.fail("two hold the write lock")
            assert caught.value.code is ErrorCode.UNAVAILABLE
        async with database.write():
            pass


@pytest.mark.asyncio
async def test_what_waits_for_the_database_is_bounded(tmp_path: Path) -> None:
    async with opened(tmp_path, max_pending=2) as database, database.write(), database.read():
        with pytest.raises(ApiError) as caught:
            async with database.read():
                pytest.fail("a third is let in")
        assert caught.value.code is ErrorCode.LIMIT


@pytest.mark.asyncio
async def test_a_lost_race_is_run_again_and_a_lost_cause_is_not() -> None:
    outcomes = [IntegrityError("insert", None, Exception()), IntegrityError("insert", None, Exception())]

    async def write() -> str:
        if outcomes:
            raise outcomes.pop()
        return "written"

    async def never() -> None:
        raise IntegrityError("insert", None, Exception("always"))

    assert await retry_conflicts(write) == "written"
    with pytest.raises(IntegrityError):
        await retry_conflicts(never)


@pytest.mark.asyncio
async def test_a_database_in_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="names no file"):
        await Database.open("sqlite+aiosqlite://", timeout_s=1, max_pending=1)
