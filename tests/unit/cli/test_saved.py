"""Builds that could not read what rooms have saved are refused, with what is missing and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from playhall.cli.build import Build, RoomType
from playhall.cli.errors import BuildError
from playhall.cli.saved import SavedKinds, losses

DOT = {"dot": {"x": "u8", "hue": "u16"}, "board": {"moves": "u32"}}


def build(kinds: dict[str, dict[str, str]], name: str = "default") -> Build:
    return Build(Path("code"), None, (RoomType(name, "game.room:Dots", "00" * 16, 1, 64, kinds),), {})


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (DOT, []),
        (DOT | {"ball": {"x": "f32"}}, []),
        (DOT | {"dot": {"hue": "u16", "x": "u8", "y": "u8"}}, []),
        (DOT | {"dot": {"x": "u8"}}, ["dot.hue was u16 and is gone"]),
        (DOT | {"dot": {"x": "i8", "hue": "u16"}}, ["dot.x was u8 and is i8 now"]),
        ({"board": {}}, ["kind dot is gone", "board.moves was u32 and is gone"]),
    ],
)
def test_what_is_gone_or_retyped_is_named(now: dict[str, dict[str, str]], said: list[str]) -> None:
    assert list(losses(DOT, now)) == said


def test_a_build_that_loses_a_field_is_refused_until_the_state_is_deleted(tmp_path: Path) -> None:
    path = tmp_path / "data" / "kinds.json"
    SavedKinds(path).check(build(DOT))
    SavedKinds(path).add(build(DOT))
    smaller = build({"dot": {"x": "u8"}})
    with pytest.raises(BuildError) as caught:
        SavedKinds(path).check(smaller)
    assert "dot.hue was u16 and is gone" in str(caught.value)
    assert "kind board is gone" in str(caught.value)
    assert f"stop playhall dev and delete {tmp_path / 'data'}" in str(caught.value)
    SavedKinds(path).check(build(DOT))
    path.unlink()
    SavedKinds(path).check(smaller)


def test_a_room_type_that_is_away_for_a_while_is_not_forgotten(tmp_path: Path) -> None:
    saved = SavedKinds(tmp_path / "kinds.json")
    saved.add(build(DOT, "arena"))
    saved.add(build({"ball": {}}, "lobby"))
    saved.check(build({}, "other"))
    with pytest.raises(BuildError, match="kind dot is gone"):
        saved.check(build({}, "arena"))
