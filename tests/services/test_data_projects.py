"""Projects, keys and who may call what, at a real data service."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from playhall.api.data.v1 import data_pb2 as pb
from playhall.engine.codes import ErrorCode
from playhall_common.auth import HostClaims, verify_host_token
from playhall_common.errors import ApiError
from tests.support.data_client import DataClient
from tests.support.processes import SERVICE_SECRET, Processes

ADMIN_KEY = "an admin key for tests"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def address(directory: Path) -> Iterator[str]:
    with Processes(directory) as processes:
        url = f"sqlite+aiosqlite:///{directory}/new/folder/data.db"
        yield processes.start("data", database_url=url, admin_key=ADMIN_KEY).grpc
        processes.print_logs()


async def code_of(client: DataClient, method: str, **fields: object) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        await client.call(method, **fields)
    return caught.value.code


@pytest.mark.asyncio
async def test_a_slug_is_taken_once_and_for_all(address: str) -> None:
    async with DataClient(address) as data:
        outcomes = await asyncio.gather(
            *(data.call("Projects.CreateProject", slug="taken") for _ in range(10)), return_exceptions=True
        )
        errors = [outcome for outcome in outcomes if isinstance(outcome, ApiError)]
        assert [error.code for error in errors] == [ErrorCode.EXISTS] * 9
        for slug in ("ab", "a" * 41, "1ab", "a--b", "ab-", "Taken", ""):
            assert await code_of(data, "Projects.CreateProject", slug=slug) is ErrorCode.INVALID
        huge = "\N{GRINNING FACE}" * 100_000
        assert await code_of(data, "Projects.CreateProject", slug=huge) is ErrorCode.INVALID
        assert await code_of(data, "Projects.GetProject", slug=huge) is ErrorCode.UNKNOWN
        for slug in ("a" * 40, "a-b"):
            assert (await data.create_project(slug)).slug == slug


@pytest.mark.asyncio
async def test_settings_have_safe_defaults_and_are_replaced_whole(address: str) -> None:
    async with DataClient(address) as data:
        project = await data.create_project("settled")
        assert project.settings == pb.Settings(retention="7d", build_update="hibernate")
        changed = pb.Settings(
            guests=True,
            create_rooms=True,
            list_public=True,
            retention="36h",
            allowed_origins=["https://game.example"],
            build_update="restart",
        )
        await data.call("Projects.UpdateSettings", slug="settled", settings=changed)
        answer = await data.call("Projects.GetProject", slug="settled")
        assert answer.project.settings == changed
        assert answer.project.created_at_ms == project.created_at_ms
        access = await data.call("Registry.GetProjectAccess", project="settled")
        assert access.settings == changed

        bad = pb.Settings(retention="400d")
        update = "Projects.UpdateSettings"
        assert await code_of(data, update, slug="settled", settings=bad) is ErrorCode.INVALID
        assert await code_of(data, update, slug="settled") is ErrorCode.INVALID
        assert await code_of(data, update, slug="nowhere", settings=changed) is ErrorCode.UNKNOWN
        assert (await data.call("Projects.GetProject", slug="settled")).project.settings == changed


@pytest.mark.asyncio
async def test_an_api_key_is_shown_once_and_stored_as_a_hash(address: str, directory: Path) -> None:
    async with DataClient(address) as data:
        await data.create_project("keyed")
        created = await data.call("Keys.CreateKey", project="keyed", kind=pb.KEY_KIND_API, name="backend")
        checked = await data.call("Registry.CheckKey", secret=created.secret)
        assert (checked.project, checked.key_id, checked.admin) == ("keyed", created.key.key_id, False)
        listed = await data.call("Keys.ListKeys", project="keyed")
        assert list(listed.keys) == [created.key]
        assert (created.key.name, created.key.kind, created.key.revoked) == (
            "backend",
            pb.KEY_KIND_API,
            False,
        )

        stored = b"".join(path.read_bytes() for path in (directory / "new" / "folder").iterdir())
        assert created.key.key_id.encode() in stored
        assert created.secret.encode() not in stored

        for _ in range(2):
            await data.call("Keys.RevokeKey", project="keyed", key_id=created.key.key_id)
        assert await code_of(data, "Registry.CheckKey", secret=created.secret) is ErrorCode.UNAUTHENTICATED
        assert (await data.call("Keys.ListKeys", project="keyed")).keys[0].revoked


@pytest.mark.asyncio
async def test_routers_read_the_active_token_keys(address: str) -> None:
    async with DataClient(address) as data:
        await data.create_project("tokens")
        made = [
            await data.call("Keys.CreateKey", project="tokens", kind=pb.KEY_KIND_PLAYER_TOKEN, name=name)
            for name in ("old", "new", "gone")
        ]
        await data.call("Keys.CreateKey", project="tokens", kind=pb.KEY_KIND_API, name="backend")
        await data.call("Keys.RevokeKey", project="tokens", key_id=made[2].key.key_id)
        access = await data.call("Registry.GetProjectAccess", project="tokens")
        assert {(key.key_id, key.secret) for key in access.token_keys} == {
            (each.key.key_id, each.secret) for each in made[:2]
        }
        token = jwt.encode({"sub": "ann"}, access.token_keys[0].secret, algorithm="HS256")
        assert jwt.decode(token, made[0].secret, algorithms=["HS256"]) == {"sub": "ann"}
        # A token key signs; it opens no API.
        assert await code_of(data, "Registry.CheckKey", secret=made[0].secret) is ErrorCode.UNAUTHENTICATED


@pytest.mark.asyncio
async def test_keys_that_cannot_be(address: str) -> None:
    async with DataClient(address) as data:
        await data.create_project("nokeys")
        create, revoke = "Keys.CreateKey", "Keys.RevokeKey"
        assert await code_of(data, create, project="nokeys", name="x") is ErrorCode.INVALID
        assert await code_of(data, create, project="nokeys", kind=1, name="x" * 129) is ErrorCode.INVALID
        assert await code_of(data, create, project="nowhere", kind=1) is ErrorCode.UNKNOWN
        assert await code_of(data, revoke, project="nokeys", key_id="none") is ErrorCode.UNKNOWN
        assert await code_of(data, "Keys.ListKeys", project="nowhere") is ErrorCode.UNKNOWN


@pytest.mark.asyncio
async def test_who_may_call_what(address: str) -> None:
    async with DataClient(address) as service:
        await service.live_project("mine")
        await service.live_project("theirs")
        mine = (await service.call("Keys.CreateKey", project="mine", kind=pb.KEY_KIND_API)).secret
        assert (await service.call("Registry.CheckKey", secret=ADMIN_KEY)).admin

    async with DataClient(address, ADMIN_KEY) as admin:
        await admin.call("Projects.GetProject", slug="mine")
        await admin.call("Builds.GetLiveBuild", project="theirs")
        assert await code_of(admin, "Registry.GetShardMap") is ErrorCode.FORBIDDEN

    async with DataClient(address, mine) as key:
        await key.call("Builds.GetLiveBuild", project="mine")
        build = await key.register_build("mine", "second")
        await key.go_live("mine", build.build_id)
        assert await code_of(key, "Builds.GetLiveBuild", project="theirs") is ErrorCode.FORBIDDEN
        theirs = {"project": "theirs", "build_id": build.build_id}
        assert await code_of(key, "Builds.GoLive", **theirs) is ErrorCode.FORBIDDEN
        assert await code_of(key, "Projects.GetProject", slug="mine") is ErrorCode.FORBIDDEN
        assert await code_of(key, "Keys.ListKeys", project="mine") is ErrorCode.FORBIDDEN
        assert await code_of(key, "Registry.LookupRoom", project="mine") is ErrorCode.FORBIDDEN

    for nobody in (None, "", "pk_guessed", SERVICE_SECRET.upper()):
        async with DataClient(address, nobody) as stranger:
            for method in ("Projects.GetProject", "Builds.GetLiveBuild", "Registry.GetShardMap"):
                assert await code_of(stranger, method) is ErrorCode.UNAUTHENTICATED


@pytest.mark.asyncio
async def test_a_host_token_is_for_a_project_and_a_build(address: str) -> None:
    async with DataClient(address) as data:
        build = await data.live_project("hosted")
        await data.create_project("unhosted")
        request = {"project": "hosted", "build_id": build.build_id, "host_id": "host-1"}
        issued = await data.call("Registry.IssueHostToken", **request)
        expires_s = issued.expires_at_ms // 1000
        for audience in ("statestore", "data"):
            claims = verify_host_token(issued.token, SERVICE_SECRET, audience=audience, now_s=expires_s)
            assert claims == HostClaims("hosted", build.build_id, "host-1", expires_s)
        issue = "Registry.IssueHostToken"
        assert await code_of(data, issue, **request | {"project": "unhosted"}) is ErrorCode.UNKNOWN
        assert await code_of(data, issue, **request | {"build_id": "none"}) is ErrorCode.UNKNOWN
        assert await code_of(data, issue, **request | {"host_id": ""}) is ErrorCode.INVALID


def test_what_was_answered_is_in_the_database_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "data.db"

    async def create(at: str) -> None:
        async with DataClient(at) as data:
            await data.create_project("kept")

    with Processes(tmp_path) as processes:
        service = processes.start("data", database_url=f"sqlite+aiosqlite:///{path}")
        asyncio.run(create(service.grpc))
        service.kill()
    assert path.stat().st_mode & 0o777 == 0o600  # it holds what signs players' tokens
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT slug FROM projects").fetchall() == [("kept",)]
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
