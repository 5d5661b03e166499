"""The differential machine with room code that meddles: while the engine looks at a value it was given, goes
over entities or asks room code what it thinks, that code deletes, adds, writes or asks for columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from playhall.room import Entity
from tests.support.meddling import SORTS, meddling
from tests.support.twins_machine import World, deed, kinds, owners, picks, read_world, whos
from tests.support.twins_room import HOOKS, KINDS

__all__ = ["Meddled", "read_world"]

deeds = st.sampled_from(
    ["delete", "delete", "delete other", "delete all", "add", "columns", "write", "give", "raise", "replace"]
)
sorts = st.sampled_from(sorted(SORTS))
fields = st.sampled_from(
    [
        "x",
        "y",
        "b1",
        "s4",
        "far",
        "hue",
        "flag",
        "name",
        "blocks",
        "tags",
        "hand",
        "pose",
        "note",
        "hp",
        "dial",
    ]
)


class Meddled(World):
    """World, with room code that does more than it was asked for."""

    def doing(self, what: str, entity: Any, pick: int) -> Callable[[], None]:
        """Return what does one deed: to this entity, or to another."""

        def do() -> None:
            entities = self.room.entities
            match what:
                case "delete":
                    entities.delete(entity)
                case "delete other":
                    entities.delete(self.handle(pick))
                case "delete all":
                    for each in list(entities):
                        entities.delete(each)
                case "add":
                    self.handles.append(entities.add(KINDS[("thing", "npc")[pick % 2]]()))
                case "columns":
                    entities.columns(KINDS[("thing", "npc")[pick % 2]])
                case "write":
                    entity.x = pick
                case "give":
                    entities.set_owner(entity, None)
                case "replace":
                    entities.delete(entity)
                    self.handles.append(entities.add(type(entity)(), id=entity.id))
                case _:
                    raise LookupError("a value that does not want to be looked at")

        return do

    def odd(self, sort: str, what: str, entity: Any, pick: int) -> Any:
        return meddling(sort, self.doing(what, entity, pick))

    @deed(pick=picks, name=fields, sort=sorts, what=deeds, other=picks)
    def write_meddling(self, pick: int, name: str, sort: str, what: str, other: int) -> None:
        entity = self.handle(pick)
        self.note(lambda: setattr(entity, name, self.odd(sort, what, entity, other)))

    @deed(pick=picks, offset=st.sampled_from(["int", "number"]), data=st.sampled_from(["bytes"]), what=deeds)
    def patch_meddling(self, pick: int, offset: str, data: str, what: str) -> None:
        entity = self.handle(pick)
        if pick % 2:
            self.note(lambda: entity.patch("blocks", self.odd(offset, what, entity, pick), b"xy"))
        else:
            self.note(lambda: entity.patch("blocks", 3, self.odd(data, what, entity, pick)))

    @deed(kind=st.sampled_from(["thing", "npc"]), name=fields, sort=sorts, what=deeds, pick=picks)
    def make_meddling(self, kind: str, name: str, sort: str, what: str, pick: int) -> None:
        entity = self.handle(pick)
        self.keep_handle(lambda: KINDS[kind](**{name: self.odd(sort, what, entity, pick)}))

    @deed(pick=picks, sort=sorts, what=deeds, as_id=st.booleans())
    def add_meddling(self, pick: int, sort: str, what: str, as_id: bool) -> None:
        entity = self.handle(pick)
        odd = self.odd(sort, what, entity, pick)
        given = {"id": odd} if as_id else {"owner": odd}
        self.keep_handle(lambda: self.room.entities.add(KINDS["thing"](), **given))

    @deed(pick=picks, sort=sorts, what=deeds)
    def give_meddling(self, pick: int, sort: str, what: str) -> None:
        entity = self.handle(pick)
        self.note(lambda: self.room.entities.set_owner(entity, self.odd(sort, what, entity, pick)))

    @deed(
        pick=picks,
        name=st.sampled_from(["x", "hp", "dial", "awake"]),
        sort=sorts,
        what=deeds,
        size=st.sampled_from([None, None, 1, 3, 12]),
    )
    def assign_meddling(self, pick: int, name: str, sort: str, what: str, size: int | None) -> None:
        entity = self.handle(pick)

        def write() -> None:
            npcs = self.room.entities.columns(KINDS["npc"])
            odd = self.odd(sort, what, entity, pick)
            if pick % 2:
                setattr(npcs, name, odd if size is None else [odd] * size)
            else:
                getattr(npcs, name)[:size] = odd

        self.note(write)

    @deed(pick=picks, who=whos, sort=sorts, what=deeds)
    def presence_meddling(self, pick: int, who: str, sort: str, what: str) -> None:
        odd = self.odd(sort, what, self.handle(pick), pick)
        given = {"name": odd} if pick % 2 else {"status": odd}
        self.note(lambda: self.room.presence.set(who, **given))

    @deed(
        over=st.sampled_from(["all", "kind", "owner", "presence", "columns"]),
        kind=kinds,
        owner=owners,
        at=st.integers(0, 5),
        what=deeds,
        pick=picks,
    )
    def go_over(self, over: str, kind: str, owner: Any, at: int, what: str, pick: int) -> None:
        """Change what is gone over, while it is."""
        room = self.room

        def go() -> list[Any]:
            found: list[Any] = []
            match over:
                case "all":
                    things: Any = room.entities
                case "kind":
                    things = room.entities.all(KINDS[kind])
                case "owner":
                    things = room.entities.all(KINDS[kind], owner=owner)
                case "presence":
                    things = room.presence.values()
                case _:
                    things = room.entities.columns(KINDS["npc"]).id
            for number, each in enumerate(things):
                if number == at:
                    self.doing(what, each if isinstance(each, Entity) else self.handle(pick), pick)()
                found.append(repr(each))
            return found

        self.note(go)

    @deed(hook=st.sampled_from(HOOKS), what=deeds, pick=picks, after=st.integers(0, 5))
    def meddle_in_hook(self, hook: str, what: str, pick: int, after: int) -> None:
        """Have a hook of the room do it, at the call after so many. What interest asks ends the room so."""
        self.wake_if_over()
        self.room.trick = [hook, after, self.doing(what, self.handle(pick), pick)]
