"""Ballast, and when a disk takes no new rooms."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from playhall_statestore.disk import Disk

GIB = 1 << 30
Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    ("total", "free", "full"),
    [
        (10 * GIB, 1.1 * GIB, False),
        (10 * GIB, 0.9 * GIB, True),
        (1_000 * GIB, 50 * GIB, False),  # more than ample
        (1_000 * GIB, 1 * GIB, True),
    ],
)
def test_nearly_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: float, free: float, full: bool
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(total, total - free, free))
    assert Disk(tmp_path, 0).nearly_full() is full


def test_ballast_is_real_space_and_can_be_freed(tmp_path: Path) -> None:
    disk = Disk(tmp_path, 1 << 16)
    assert disk.take_ballast()
    assert (tmp_path / "ballast").stat().st_blocks * 512 >= 1 << 16
    disk.free_ballast()
    assert not (tmp_path / "ballast").exists()
    disk.free_ballast()


def test_ballast_waits_for_twice_its_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(100, 0, (2 << 16) - 1))
    assert not Disk(tmp_path, 1 << 16).take_ballast()
