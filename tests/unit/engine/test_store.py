"""The room's entities: ids, kinds, owners; what room code may and may not do with them."""

from __future__ import annotations

from typing import Any

import pytest

from playhall.engine.backend import Tracker
from playhall.engine.entities import Entities
from playhall.engine.errors import DeadEntityError
from playhall.engine.schema import FIRST_PRESENCE_ID, SHARED_ID
from playhall.engine.store import EntityStore, check_player
from playhall.room import Entity, Schema, u8


class Living(Entity, abstract=True):
    hp: u8 = 10


class Cat(Living):
    name: str = ""


class Dog(Living, max=2):
    pass


class Trap(Entity, hidden=True):
    armed: bool = False


class Board(Entity):
    moves: u8 = 0


class Stranger(Entity):
    pass


SCHEMA = Schema(state=Board, entities=[Cat, Dog, Trap])


@pytest.fixture
def entities() -> Entities:
    return Entities(EntityStore(SCHEMA, Tracker()))


def test_entities_come_by_id_whatever_came_first_and_to_whom(entities: Entities) -> None:
    ids = (40, 7, 90, 8)
    cats = {id: entities.add(Cat(), owner="ann" if id > 8 else "bob", id=id) for id in ids}
    entities.set_owner(cats[7], "ann")
    entities.delete(cats[90])
    cats[9] = entities.add(Cat(), owner="ann", id=9)
    for again in range(2):
        assert [cat.id for cat in entities.all(Cat)] == [7, 8, 9, 40], again
        assert [cat.id for cat in entities.all(Cat, owner="ann")] == [7, 9, 40]
        assert [cat.id for cat in entities.all(Living)] == [cat.id for cat in entities] == [7, 8, 9, 40]
        assert entities.first(Cat, owner="ann") is entities.first(Cat) is cats[7]
    entities.set_owner(cats[7], None)
    assert entities.first(Cat, owner="ann") is cats[9]


@pytest.mark.ledger("ENT-01", "OWN-01", "OWN-04")
def test_add_get_all_count_and_owners(entities: Entities) -> None:
    tom = entities.add(Cat(name="tom"), owner="ann")
    kit = entities.add(Cat(name="kit"), id=40)
    rex = entities.add(Dog())
    assert [e.id for e in entities] == [tom.id, kit.id, rex.id] == [2, 40, 41]
    assert (tom.owner, kit.owner) == ("ann", None)
    assert entities.get(40) is kit
    assert entities.get(Cat, 40) is kit
    assert entities.get(Dog, 40) is None
    assert entities.get(7) is None
    assert entities.all(Cat) == [tom, kit]
    assert entities.all(Cat, owner="ann") == [tom]
    assert entities.first(Cat) is tom
    assert entities.first(Cat, owner="bob") is None
    assert (entities.count(Cat), entities.count(Dog), len(entities)) == (2, 1, 3)
    entities.set_owner(kit, "bob")
    entities.set_owner(tom, None)
    assert entities.all(Cat, owner="bob") == [kit]
    assert entities.all(Cat, owner="ann") == []
    assert tom.owner is None
    entities.delete(kit)
    assert kit not in entities
    assert entities.all(Cat, owner="bob") == []


@pytest.mark.ledger("ENT-02")
def test_ids_start_at_2_and_shared_state_is_0(entities: Entities) -> None:
    assert SHARED_ID == 0
    assert entities.add(Cat()).id == 2
    store = EntityStore(SCHEMA, Tracker())
    store.make_state()
    assert store.state is not None
    assert store.state.id == 0
    assert len(store) == 0


@pytest.mark.ledger("ENT-03")
@pytest.mark.parametrize("id", [0, 1, -5, FIRST_PRESENCE_ID])
def test_an_explicit_id_is_from_2_up(entities: Entities, id: int) -> None:
    with pytest.raises(ValueError, match="an id is from 2"):
        entities.add(Cat(), id=id)
    assert len(entities) == 0


@pytest.mark.ledger("ENT-03")
def test_an_explicit_id_that_is_taken_names_the_holder(entities: Entities) -> None:
    entities.add(Cat(name="tom"), id=9)
    with pytest.raises(ValueError, match=r"id 9 is taken by Cat.*tom"):
        entities.add(Dog(), id=9)
    with pytest.raises(TypeError):
        entities.add(Dog(), id=True)
    assert len(entities) == 1


@pytest.mark.ledger("ENT-04")
def test_the_id_of_a_deleted_entity_may_be_used_again_at_once(entities: Entities) -> None:
    cat = entities.add(Cat(), id=9)
    entities.delete(cat)
    dog = entities.add(Dog(), id=9)
    assert entities.get(9) is dog


@pytest.mark.ledger("ENT-05")
def test_automatic_ids_move_past_every_id_used(entities: Entities) -> None:
    entities.delete(entities.add(Cat(), id=100))
    assert entities.add(Cat()).id == 101
    entities.add(Cat(), id=50)
    assert entities.add(Cat()).id == 102
    with pytest.raises(ValueError, match="102 is taken"):
        entities.add(Cat(), id=102)


def test_ids_end_before_those_of_presence(entities: Entities) -> None:
    entities.add(Cat(), id=FIRST_PRESENCE_ID - 1)
    with pytest.raises(ValueError, match="no ids left"):
        entities.add(Cat())
    assert entities.add(Cat(), id=5).id == 5


@pytest.mark.ledger("ENT-15")
def test_a_deleted_entity_raises_when_touched(entities: Entities) -> None:
    cat = entities.add(Cat())
    entities.delete(cat)
    for touch in (
        lambda: cat.name,
        lambda: setattr(cat, "hp", 3),
        lambda: entities.delete(cat),
        lambda: entities.set_owner(cat, "ann"),
    ):
        with pytest.raises(DeadEntityError):
            touch()


def test_an_entity_that_was_never_added_is_not_in_the_room(entities: Entities) -> None:
    with pytest.raises(DeadEntityError):
        entities.delete(Cat())
    assert Cat() not in entities
    assert "cat" not in entities


def test_an_entity_is_added_once_and_only_of_the_schemas_kinds(entities: Entities) -> None:
    cat = entities.add(Cat())
    with pytest.raises(ValueError, match="added before"):
        entities.add(cat)
    with pytest.raises(TypeError, match="Stranger"):
        entities.add(Stranger())
    with pytest.raises(TypeError, match="Stranger"):
        entities.all(Stranger)
    with pytest.raises(TypeError, match="Stranger"):
        entities.all(Stranger, owner="ann")
    assert list(entities) == [cat]
    assert entities.add(Cat()).id == cat.id + 1


def test_once_gives_the_owners_existing_one(entities: Entities) -> None:
    first = entities.add(Cat(name="a"), owner="ann", once=True)
    assert entities.add(Cat(name="b"), owner="ann", once=True) is first
    assert entities.add(Cat(name="c"), owner="bob", once=True) is not first
    unowned = entities.add(Cat(name="d"), once=True)
    assert unowned not in (first,)
    assert entities.add(Cat(name="e"), once=True) is unowned


def test_a_kind_has_its_max(entities: Entities) -> None:
    entities.add(Dog())
    dog = entities.add(Dog())
    with pytest.raises(ValueError, match="2 dog"):
        entities.add(Dog())
    entities.delete(dog)
    entities.add(Dog())


def test_an_abstract_base_finds_every_kind_under_it(entities: Entities) -> None:
    cat, dog = entities.add(Cat(), owner="ann"), entities.add(Dog())
    assert set(entities.all(Living)) == {cat, dog}
    assert entities.all(Living, owner="ann") == [cat]
    assert entities.count(Living) == 2


@pytest.mark.ledger("ENT-07")
def test_all_gives_a_new_list_each_time(entities: Entities) -> None:
    for _ in range(3):
        entities.add(Cat())
    for cat in entities.all(Cat):
        entities.delete(cat)
    assert len(entities) == 0


@pytest.mark.ledger("STATE-12")
def test_a_hidden_entity_has_no_owner(entities: Entities) -> None:
    with pytest.raises(TypeError, match="hidden"):
        entities.add(Trap(), owner="ann")
    trap = entities.add(Trap())
    with pytest.raises(TypeError, match="hidden"):
        entities.set_owner(trap, "ann")
    assert entities.all(Trap) == [trap]


@pytest.mark.parametrize("player", ["", "x" * 129, "é" * 65, "a\0", "a\nb", "\x7f", "\x9f"])
def test_a_players_id_has_1_to_128_bytes_and_no_control_characters(entities: Entities, player: str) -> None:
    with pytest.raises(ValueError, match=r"a player.s id has"):
        entities.add(Cat(), owner=player)
    assert check_player("é" * 64) == "é" * 64


def test_a_player_is_text(entities: Entities) -> None:
    bad: Any = 7
    with pytest.raises(TypeError):
        entities.set_owner(entities.add(Cat()), bad)
