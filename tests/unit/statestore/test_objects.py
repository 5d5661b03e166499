"""The contract of object stores, run on each implementation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from playhall_statestore.objects import DirectoryObjects, ObjectStore

IMPLEMENTATIONS: list[Callable[[Path], ObjectStore]] = [DirectoryObjects]


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda make: make.__name__)
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    store: ObjectStore = request.param(tmp_path / "objects")
    return store


def test_what_is_put_can_be_got(objects: ObjectStore) -> None:
    objects.put("a/1/x", b"data")
    objects.put("a/1/empty", b"")
    assert (objects.get("a/1/x"), objects.get("a/1/empty")) == (b"data", b"")


def test_what_was_not_put_is_none(objects: ObjectStore) -> None:
    assert objects.get("a/1/x") is None


def test_a_name_put_again_has_the_new_content(objects: ObjectStore) -> None:
    objects.put("a/x", b"one")
    objects.put("a/x", b"two, longer")
    assert objects.get("a/x") == b"two, longer"


def test_a_list_has_the_names_under_a_folder_in_order(objects: ObjectStore) -> None:
    for name in ("a/1/y", "a/1/x", "a/10/x", "b/1/x"):
        objects.put(name, b"")
    assert objects.list("a/1/") == ["a/1/x", "a/1/y"]
    assert objects.list("a/") == ["a/1/x", "a/1/y", "a/10/x"]
    assert objects.list("c/") == []


def test_a_delete_may_come_again(objects: ObjectStore) -> None:
    objects.put("a/x", b"")
    objects.delete("a/x")
    objects.delete("a/x")
    assert objects.get("a/x") is None
    assert objects.list("a/") == []


@pytest.mark.parametrize("name", ["../x", "a/../x", "/x", "a//x", ".hidden", ""])
def test_a_name_cannot_leave_the_store(objects: ObjectStore, name: str) -> None:
    with pytest.raises(ValueError):
        objects.put(name, b"")


def test_a_put_that_did_not_finish_is_not_there(tmp_path: Path) -> None:
    objects = DirectoryObjects(tmp_path)
    objects.put("a/x", b"whole")
    (tmp_path / "a" / ".put-1234").write_bytes(b"ha")
    assert objects.list("a/") == ["a/x"]
