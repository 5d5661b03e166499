"""Which epoch a shard serves under: real volume and objects, and a database that says what it is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_statestore.objects import DirectoryObjects
from playhall_statestore.registration import MAX_EPOCH, Registration, RegistrationError
from playhall_statestore.snapshot import epoch_marker
from playhall_statestore.volume import Identity, Volume

AWAY = ApiError(ErrorCode.UNAVAILABLE)


class Setting:
    """A shard about to start. `answers` are the database's, one for each call; the last stays."""

    def __init__(self, folder: Path) -> None:
        self.volume = Volume(folder / "state.db")
        self.objects = DirectoryObjects(folder / "objects")
        self.asked: list[tuple[int, int]] = []
        self.answers: list[int | ApiError] = []

    async def register(self, volume_epoch: int, min_epoch: int) -> int:
        self.asked.append((volume_epoch, min_epoch))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, ApiError):
            raise answer
        return answer

    def registration(self, *, replace: bool = False) -> Registration:
        return Registration(
            self.volume, self.objects, self.register, cluster="c", shard_id="shard-0", replace=replace
        )

    async def identify(
        self, *answers: int | ApiError, wait_s: float = 5.0, replace: bool = False
    ) -> tuple[Identity, bool]:
        self.answers = list(answers)
        return await self.registration(replace=replace).identify(wait_s)


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


@pytest.mark.asyncio
async def test_an_empty_volume_gets_an_epoch_and_both_remember_it(setting: Setting) -> None:
    identity, confirmed = await setting.identify(4)
    assert (identity, confirmed) == (Identity("c", "shard-0", 4), True)
    assert setting.volume.identity() == identity
    assert setting.objects.get(epoch_marker("c", 4)) is not None


@pytest.mark.asyncio
async def test_a_start_again_keeps_epoch_and_counter(setting: Setting) -> None:
    first, _ = await setting.identify(4)
    assert await setting.identify(4) == (first, True)
    assert setting.asked == [(0, 0), (4, 0)]


@pytest.mark.asyncio
async def test_an_empty_volume_waits_for_the_database(setting: Setting) -> None:
    identity, _ = await setting.identify(AWAY, AWAY, 4)
    assert identity.epoch == 4


@pytest.mark.asyncio
async def test_an_empty_volume_does_not_wait_for_ever(setting: Setting) -> None:
    with pytest.raises(RegistrationError):
        await setting.identify(AWAY, wait_s=0.05)
    assert setting.volume.identity() is None


@pytest.mark.asyncio
async def test_a_volume_starts_without_the_database(setting: Setting) -> None:
    first, _ = await setting.identify(4)
    assert await setting.identify(AWAY) == (first, False)


@pytest.mark.asyncio
@pytest.mark.parametrize("code", [ErrorCode.STALE_VOLUME, ErrorCode.EMPTY_VOLUME])
async def test_what_the_database_refuses_ends_the_start(setting: Setting, code: ErrorCode) -> None:
    with pytest.raises(ApiError) as refused:
        await setting.identify(ApiError(code))
    assert refused.value.code is code


@pytest.mark.asyncio
async def test_no_epoch_is_served_that_the_object_store_remembers(setting: Setting) -> None:
    setting.objects.put(epoch_marker("c", 7), b"shard-9")
    with pytest.raises(RegistrationError):
        await setting.identify(7)  # from a database that was restored from a backup
    assert setting.asked == [(0, 7)]
    assert (await setting.identify(8))[0].epoch == 8


@pytest.mark.asyncio
async def test_epochs_stay_below_20_bits(setting: Setting) -> None:
    with pytest.raises(RegistrationError):
        await setting.identify(MAX_EPOCH)


@pytest.mark.asyncio
async def test_a_replaced_volume_looks_for_objects(setting: Setting) -> None:
    assert (await setting.identify(4, replace=True))[0].recovering
    assert (await setting.identify(4))[0].recovering  # as long as it lives


@pytest.mark.asyncio
async def test_a_start_without_the_database_is_confirmed_or_ended_later(setting: Setting) -> None:
    identity, _ = await setting.identify(4)
    setting.answers = [AWAY, 4]
    async with asyncio.timeout(10):  # real time: it asks once a second
        await setting.registration().confirm(identity)
    setting.answers = [ApiError(ErrorCode.STALE_VOLUME)]
    with pytest.raises(RegistrationError):
        await setting.registration().confirm(identity)
