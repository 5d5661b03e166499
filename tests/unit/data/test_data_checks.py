"""What the data service takes, and what it refuses with E_INVALID and the field's name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from playhall.engine.codes import ErrorCode
from playhall_common.errors import ApiError
from playhall_data import checks
from playhall_data.builds import Bundle, RoomType
from playhall_data.projects import Settings
from playhall_data.registry import NewRoom
from playhall_data.shards import Registration


def refused(make: Callable[[], object], field: str) -> None:
    with pytest.raises(ApiError) as caught:
        make()
    assert caught.value.code is ErrorCode.INVALID
    assert caught.value.details["field"] == field


@pytest.mark.parametrize("text", ["none", "forever", "1h", "1d", "365d", "8760h", "36h"])
def test_a_retention(text: str) -> None:
    assert checks.retention("retention", text) == text


@pytest.mark.parametrize(
    "text",
    ["", "0h", "0d", "366d", "8761h", "9999d", "01d", "1", "d", "1w", "-1d", "1.5d", "None", "1d\n", "٣d"],
)
def test_no_retention(text: str) -> None:
    refused(lambda: checks.retention("retention", text), "retention")


def test_settings_say_nothing_allow_nothing_and_keep_seven_days() -> None:
    settings = Settings()
    assert (settings.guests, settings.create_rooms, settings.list_public) == (False, False, False)
    assert (settings.retention, settings.build_update) == ("7d", "hibernate")


def test_settings_that_cannot_be() -> None:
    refused(lambda: Settings(retention="1y"), "settings.retention")
    refused(lambda: Settings(build_update="later"), "settings.build_update")


@pytest.mark.parametrize("origin", ["https://example.com", "http://localhost:7350", "http://[::1]:80"])
def test_an_origin(origin: str) -> None:
    assert Settings(allowed_origins=(origin,)).allowed_origins == (origin,)


@pytest.mark.parametrize(
    "origin", ["", "*", "example.com", "https://example.com/", "https://a b", "HTTPS://A"]
)
def test_no_origin(origin: str) -> None:
    refused(lambda: Settings(allowed_origins=(origin,)), "settings.allowed_origins")


def room_type(**changes: object) -> RoomType:
    values = {"name": "default", "entry": "room:Dots", "schema_hash": b"h" * 16, "state_version": 0}
    return RoomType(**({"max_players": 64} | values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a b"),
        ("entry", "room"),
        ("entry", "room:"),
        ("entry", "a-b:C"),
        ("entry", "room:Dots()"),
        ("schema_hash", b"short"),
        ("max_players", 0),
        ("max_players", 1025),
    ],
)
def test_no_room_type(field: str, value: object) -> None:
    refused(lambda: room_type(**{field: value}), f"room_types.{field}")


def test_no_bundle() -> None:
    refused(lambda: Bundle("", "/x", "", (room_type(),)), "bundle_hash")
    refused(lambda: Bundle("h", "", "", (room_type(),)), "location")
    refused(lambda: Bundle("h", "/x", "", ()), "room_types")
    refused(lambda: Bundle("h", "/x", "", (room_type(), room_type())), "room_types")


def test_an_unnamed_type_is_default() -> None:
    assert NewRoom("dots").room_type == "default"
    assert NewRoom("dots", room_type="duel").room_type == "duel"


@pytest.mark.ledger("TERM-08")
def test_no_room() -> None:
    refused(lambda: NewRoom("dots", room_id="a b"), "room_id")
    refused(lambda: NewRoom("dots", room_type="a b"), "room_type")
    refused(lambda: NewRoom("dots", retention="8d1h"), "retention")


def test_no_shard() -> None:
    refused(lambda: Registration("", "a:1", 0, False), "shard_id")
    refused(lambda: Registration("s", "", 0, False), "address")
    refused(lambda: Registration("s", "a:1", 1 << 20, False), "volume_epoch")
