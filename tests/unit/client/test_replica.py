"""The replica, against the simplest model there is: a dictionary, changed operation by operation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhall.client.replica import Replica
from playhall.engine.errors import ReadOnlyError
from playhall.engine.kinds import Entity, spec_of, stored_values
from playhall.engine.updates import Change, Correct, Enter, Leave, Operation, Owner, Patch, Update
from tests.support.scripted_server import BALL, SCHEMA, Ball, Dot

ME, OTHER = "me", "other"
DOT, BALL_NUMBER, BOARD, MINE = 0, 1, 2, 3
X, VOLUME, SECRET, DATA = 0, 1, 2, 3
IDS = st.sampled_from([2, 3, 4])


@dataclass
class Model:
    """What a client holds: (number of kind, owner, values) by id; and whose values it takes."""

    held: dict[int, tuple[int, str | None, dict[int, Any]]] = field(default_factory=dict)

    def apply(self, update: Update) -> None:
        owned_before = {id for id, (_, owner, _) in self.held.items() if owner == ME}
        if update.full:
            self.held.clear()
            owned_before.clear()
        for operation in update.operations:
            id = operation.id
            number, _, values = self.held.get(id, (0, None, {}))
            match operation:
                case Leave():
                    self.held.pop(id, None)
                    owned_before.discard(id)
                case Enter(number=number):
                    self.held[id] = (number, None, dict(enumerate(operation.values)))
                    owned_before.discard(id)
                case Change():
                    kept = {VOLUME} if id in owned_before and number == DOT else set()
                    values.update({i: v for i, v in operation.values.items() if i not in kept})
                case Correct():
                    values.update(operation.values)
                case Patch(offset=offset, data=data):
                    old = values[DATA]
                    values[DATA] = old[:offset].ljust(offset, b"\0") + data + old[offset + len(data) :]
                case Owner():
                    self.held[id] = (number, operation.owner, values)


def held_by(replica: Replica) -> dict[int, tuple[int, str | None, dict[int, Any]]]:
    found = {}
    for entity in replica.of_kind(Entity):
        values = dict(enumerate(stored_values(entity)))
        found[entity.id] = (SCHEMA.kinds.index(spec_of(entity)), entity.owner, values)
    return found


VALUES: dict[int, st.SearchStrategy[Any]] = {
    X: st.sampled_from([0.0, -0.0, 1.0, float("inf")]),
    VOLUME: st.integers(0, 255),
    SECRET: st.sampled_from(["", "s"]),
    DATA: st.binary(max_size=4),
}


@st.composite
def updates(draw: st.DrawFn) -> list[Update]:
    """Updates a server may send: what is said of an entity is said while it is held."""
    kinds: dict[int, int] = {}
    made = []
    for version in range(1, draw(st.integers(1, 6)) + 1):
        full = draw(st.booleans()) and draw(st.booleans())
        if full:
            kinds.clear()
        operations = [draw(operation(kinds)) for _ in range(draw(st.integers(0, 8)))]
        made.append(Update(version, version, full, operations))
    return made


@st.composite
def operation(draw: st.DrawFn, kinds: dict[int, int]) -> Operation:
    id = draw(IDS)
    if id not in kinds or draw(st.integers(0, 9)) == 0:
        kinds[id] = draw(st.sampled_from([DOT, BALL_NUMBER]))
        if kinds[id] == DOT:
            entity: Entity = Dot(x=draw(st.floats(0, 9, width=16)), volume=draw(VALUES[VOLUME]))
        else:
            entity = Ball(x=1)
        return Enter(id, kinds[id], list(stored_values(entity)), owner_only=False)
    indices = [X, VOLUME, SECRET, DATA] if kinds[id] == DOT else [X]
    some = {i: draw(VALUES[i]) for i in draw(st.lists(st.sampled_from(indices), min_size=1, unique=True))}
    choices: list[Operation] = [
        Change(id, some),
        Correct(id, some),
        Owner(id, draw(st.sampled_from([None, ME, OTHER]))),
        Leave(id),
    ]
    if kinds[id] == DOT:
        choices.append(Patch(id, DATA, draw(st.integers(0, 6)), draw(st.binary(min_size=1, max_size=3))))
    chosen = draw(st.sampled_from(choices))
    if isinstance(chosen, Leave):
        del kinds[id]
    return chosen


@pytest.mark.ledger("CENT-05")
@settings(max_examples=40)
@given(updates())
def test_it_holds_what_the_model_holds_and_its_changes_tell_the_difference(made: list[Update]) -> None:
    model, replica = Model(), Replica(SCHEMA)
    for update in made:
        before, objects = held_by(replica), {entity.id: entity for entity in replica.of_kind(Entity)}
        model.apply(replace(update, operations=[copied(each) for each in update.operations]))
        changes = replica.apply(update, ME)
        now = held_by(replica)
        assert repr(sorted(now.items())) == repr(sorted(model.held.items()))

        current = {entity.id: entity for entity in replica.of_kind(Entity)}
        assert {id(e) for e in changes.left} == {id(e) for i, e in objects.items() if current.get(i) is not e}
        assert {id(e) for e in changes.entered} == {
            id(e) for i, e in current.items() if objects.get(i) is not e
        }
        stayed = {i for i, e in current.items() if objects.get(i) is e}
        differ = {
            i: {
                spec_of(current[i]).fields[n].name
                for n, v in now[i][2].items()
                if repr(v) != repr(before[i][2][n])
            }
            for i in stayed
        }
        assert {e.id: set(names) for e, names in changes.changed} == {i: n for i, n in differ.items() if n}
        assert {e.id for e in changes.owned} == {i for i in stayed if now[i][1] != before[i][1]}


def copied(operation: Operation) -> Operation:
    return replace(operation, values=list(operation.values)) if isinstance(operation, Enter) else operation


def enter(id: int, entity: Entity, number: int | None = None) -> Enter:
    number = SCHEMA.kinds.index(spec_of(entity)) if number is None else number
    return Enter(id, number, list(stored_values(entity)), owner_only=True)


def applied(*operations: Operation, player: str = ME) -> Replica:
    replica = Replica(SCHEMA)
    replica.apply(Update(1, 1, True, list(operations)), player)
    return replica


def test_entities_are_read_only() -> None:
    dot = applied(enter(2, Dot(x=1, data=b"abc"))).get(2)
    assert isinstance(dot, Dot)
    with pytest.raises(ReadOnlyError, match=r"dot 2: x .* not writable"):
        dot.x = 5
    with pytest.raises(ReadOnlyError, match=r"dot 2: data .* not writable"):
        dot.patch("data", 0, b"x")
    assert (dot.x, dot.data) == (1, b"abc")


def test_private_state_is_the_players_from_the_start() -> None:
    replica = applied(enter(1, SCHEMA.classes[MINE](), MINE))
    mine = replica.get(1)
    assert mine is not None
    assert mine.owner == ME
    assert replica.apply(Update(2, 2, False, [Change(1, {1: 9})]), ME).changed == []
    assert replica.apply(Update(3, 3, False, [Correct(1, {1: 9})]), ME).changed == [
        (mine, frozenset({"volume"}))
    ]


@pytest.mark.parametrize("given", [True, False], ids=["just given", "just lost"])
def test_who_is_given_or_loses_an_entity_takes_the_rooms_values_where_it_was_not_the_owner_before(
    given: bool,
) -> None:
    before, after = (OTHER, ME) if given else (ME, OTHER)
    replica = applied(enter(2, Dot(x=1)), Owner(2, before))
    replica.apply(Update(2, 2, False, [Change(2, {VOLUME: 77}), Owner(2, after)]), ME)
    dot = replica.get(2)
    assert isinstance(dot, Dot)
    assert dot.volume == (77 if given else 5)


@pytest.mark.parametrize("owner", [ME, OTHER, None])
def test_a_correction_is_told_where_it_overrules_the_player(owner: str | None) -> None:
    replica = applied(enter(2, Dot(x=1)), Owner(2, owner))
    assert replica.apply(Update(2, 2, False, [Correct(2, {VOLUME: 5})]), ME).corrected == []
    changes = replica.apply(Update(3, 3, False, [Correct(2, {VOLUME: 6, X: 1.0}), Owner(2, OTHER)]), ME)
    told = [(replica.get(2), frozenset({"volume"}))]
    assert changes.changed == told
    assert changes.corrected == (told if owner == ME else [])


def test_one_that_has_left_keeps_its_last_values() -> None:
    replica = applied(enter(2, Dot(x=1)))
    dot = replica.get(2)
    assert isinstance(dot, Dot)
    replica.apply(Update(2, 2, False, [Change(2, {X: 8.0}), Leave(2)]), ME)
    assert (replica.get(2), dot.x) == (None, 8.0)


def test_ids_of_a_resume_are_ascending_without_shared_and_private_state() -> None:
    replica = applied(enter(9, BALL), enter(0, SCHEMA.classes[BOARD](), BOARD), enter(2, BALL))
    assert replica.ids() == [2, 9]
