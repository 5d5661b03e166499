"""Class bodies that declare fields: what is read of them, and what is refused with a sentence."""

# ruff: noqa: RUF012 (a default is copied for each entity, whatever it is)

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Optional

import pytest
from typing_extensions import TypeAliasType, TypeVar

from playhall.engine.declaring import snake_case
from playhall.engine.errors import FieldError
from playhall.engine.fields import Json, f32, owner_only, q8, q16, u8, writable
from playhall.engine.kinds import Entity, local, spec_of

if TYPE_CHECKING:
    from somewhere import Card  # type: ignore[import-not-found]


JSON: Any = Json  # as a value, which checkers have no word for


def declare(annotations: dict[str, Any], values: dict[str, Any] | None = None) -> type[Entity]:
    """Make a kind as a module without the future import would."""
    body: dict[str, Any] = {"__annotations__": annotations, "__module__": __name__, **(values or {})}
    make: Any = type(Entity)
    made: type[Entity] = make("Thing", (Entity,), body)
    return made


def types_of(kind: type[Entity]) -> dict[str, str]:
    return {field.name: field.type.name for field in spec_of(kind).fields}


def test_annotations_are_read_as_text_and_as_values() -> None:
    class Written(Entity):
        a: bool
        b: u8 = 3
        c: "f32"  # noqa: UP037 (text within text)
        d: str
        e: bytes
        f: Json[dict[str, int]] = {}
        g: Annotated[float, q16(0, 100)]

    given = declare(
        {
            "a": bool,
            "b": u8,
            "c": f32,
            "d": str,
            "e": bytes,
            "f": JSON[Any],
            "g": Annotated[float, q16(0, 100)],
        }
    )
    assert types_of(Written) == types_of(given)
    assert list(types_of(Written).values()) == ["bool", "u8", "f32", "str", "bytes", "json", "q16"]
    assert [field.index for field in spec_of(Written).fields] == list(range(7))
    assert [field.name for field in spec_of(Written).fields if field.required] == ["a", "c", "d", "e", "g"]


def test_flags_nest_in_either_order() -> None:
    class Flagged(Entity):
        a: writable[u8]
        b: owner_only[u8]
        c: writable[owner_only[u8]]
        d: owner_only[writable[Json[list[int]]]] = []

    found = {f.name: (f.type.name, f.writable, f.owner_only) for f in spec_of(Flagged).fields}
    assert found == {
        "a": ("u8", True, False),
        "b": ("u8", False, True),
        "c": ("u8", True, True),
        "d": ("json", True, True),
    }
    assert spec_of(Flagged).writable_mask == 0b1101
    assert spec_of(Flagged).owner_only_mask == 0b1110
    assert [field.name for field in spec_of(Flagged).public] == ["a"]


def test_the_type_in_a_json_need_not_exist() -> None:
    class Deck(Entity):
        cards: Json[list[Card]] = []
        top: Json[Card | None]
        odd: writable[Json[Optional[Card]]]  # noqa: UP045
        any: Json[Any]

    assert set(types_of(Deck).values()) == {"json"}
    deck = Deck(top=None, odd=None, any=3)
    assert (deck.cards, deck.top, deck.odd) == ([], None, None)


def test_a_json_that_is_never_none_needs_a_default() -> None:
    for annotation in (
        "Json[Card]",
        "Json[list[None]]",
        "Json[int | str]",
        "Json[dict[str, int]]",
        Json[int],
    ):
        with pytest.raises(TypeError, match=r"Thing\.x: a Json field whose type has no None needs a default"):
            declare({"x": annotation})
    for annotation in (
        "Json[None | int]",
        "Json[object]",
        "Json[Literal['a', None]]",
        JSON[Literal["a", None]],
    ):
        assert types_of(declare({"x": annotation})) == {"x": "json"}


def test_names_of_the_function_a_class_stands_in_are_found() -> None:
    Percent = Annotated[float, q16(0, 100)]  # noqa: N806

    class Inner(Entity):
        x: Percent
        y: writable[Percent] = 50

    assert types_of(Inner) == {"x": "q16", "y": "q16"}


def test_aliases_by_the_type_statement_are_unwrapped() -> None:
    T = TypeVar("T")
    Coord = TypeAliasType("Coord", f32)  # noqa: N806
    Table = TypeAliasType("Table", Json[T], type_params=(T,))  # noqa: N806

    class Aliased(Entity):
        x: Coord
        y: writable[Coord]
        table: Table[list[int]] = []

    assert types_of(Aliased) == {"x": "f32", "y": "f32", "table": "json"}
    assert spec_of(Aliased).by_name["y"].writable


@pytest.mark.parametrize(
    "annotation",
    [
        int,
        float,
        list[int],
        "list[int]",
        dict,
        None,
        Any,
        "Optional[u8]",
        Annotated[int, "x"],
        object,
        Annotated[int, u8, f32],
    ],
)
def test_any_other_annotation_is_refused(annotation: Any) -> None:
    with pytest.raises(TypeError, match=r"Thing\.x: .*is no field type; use bool, str, bytes, u8"):
        declare({"x": annotation})


@pytest.mark.parametrize("annotation", [q8(0, 360), "q8(0, 360)"])
def test_a_quantised_type_as_it_is_never_written_says_how_it_is(annotation: Any) -> None:
    with pytest.raises(TypeError, match=r"^Thing\.x: write `x: Annotated\[float, q8\(0, 360\)\]`$"):
        declare({"x": annotation})


def test_a_type_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Thing\.x: Missing: .*must exist when the class is made"):
        declare({"x": "Missing"})
    with pytest.raises(TypeError, match=r"Thing\.x: writable\[Missing\]"):
        declare({"x": "writable[Missing]"})
    with pytest.raises(TypeError, match=r"Thing\.x: u8\[: "):
        declare({"x": "u8["})


@pytest.mark.ledger("SCHM-02")
@pytest.mark.parametrize("name", ["id", "kind", "owner", "patch"])
def test_reserved_names_are_refused_as_fields_and_as_members(name: str) -> None:
    with pytest.raises(TypeError, match=rf"Thing\.{name}: this name is reserved"):
        declare({name: u8})
    with pytest.raises(TypeError, match=rf"Thing\.{name}: this name is reserved"):
        declare({}, {name: lambda self: None})
    with pytest.raises(TypeError, match=rf"Thing\.{name}: this name is reserved"):
        declare({name: u8}, {name: 3})


@pytest.mark.parametrize("name", ["bytes", "str", "bool", "u8", "f64", "Json", "writable"])
def test_a_field_cannot_hide_a_type(name: str) -> None:
    with pytest.raises(TypeError, match="a type's name"):
        declare({name: "u8"}, {name: 0})


def test_odd_names_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Thing\._x: .*use local\(\)"):
        declare({"_x": u8})
    with pytest.raises(TypeError, match="ASCII"):
        declare({"größe": u8})


@pytest.mark.ledger("SCHM-01")
def test_a_kind_has_at_most_255_fields() -> None:
    assert len(spec_of(declare({f"field{n}": u8 for n in range(255)})).fields) == 255
    with pytest.raises(TypeError, match="256 fields, and at most 255"):
        declare({f"field{n}": u8 for n in range(256)})


@pytest.mark.ledger("SCHM-01")
def test_a_kind_is_named_after_its_class_or_by_keyword() -> None:
    class HTTPDoor2(Entity):
        pass

    class Other(Entity, kind="a" * 64):
        pass

    assert (HTTPDoor2.kind, Other.kind) == ("http_door2", "a" * 64)
    for name in ("", "a" * 65, "1a", "a-b", "ä"):
        with pytest.raises(TypeError, match="cannot be a kind's name"):

            class Bad(Entity, kind=name):
                pass


@pytest.mark.ledger("SCHM-03")
def test_playhalls_own_kind_names_are_reserved() -> None:
    with pytest.raises(TypeError, match="playhall_ are reserved"):

        class Bad(Entity, kind="playhall_thing"):
            pass


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("Dot", "dot"),
        ("BigDot", "big_dot"),
        ("HTTPRoom2", "http_room2"),
        ("A", "a"),
        ("already_so", "already_so"),
    ],
)
def test_snake_case(name: str, snake: str) -> None:
    assert snake_case(name) == snake


def test_a_default_must_fit() -> None:
    with pytest.raises(FieldError, match="x: 300 is outside u8"):
        declare({"x": u8}, {"x": 300})
    with pytest.raises(TypeError, match="must be int"):
        declare({"x": u8}, {"x": "a"})
    with pytest.raises(FieldError, match="at most 16384"):
        declare({"x": JSON[Any]}, {"x": "x" * 20_000})


def test_class_variables_methods_and_properties_are_no_fields() -> None:
    class Rich(Entity):
        SPEED: ClassVar[float] = 3.0
        LIMIT = 7
        x: f32 = 1

        @property
        def double(self) -> float:
            return self.x * 2

        def move(self) -> None:
            self.x += self.SPEED

    rich = Rich()
    rich.move()
    assert (rich.x, rich.double, Rich.SPEED, Rich.LIMIT) == (4, 8, 3, 7)
    assert types_of(Rich) == {"x": "f32"}


@pytest.mark.ledger("SCHM-19", "STATE-12")
def test_a_hidden_kind_cannot_have_writable_fields() -> None:
    with pytest.raises(TypeError, match="hidden kind cannot have writable"):

        class Bad(Entity, hidden=True):
            x: writable[u8]

    class Secret(Entity, hidden=True):
        x: owner_only[u8]

    assert spec_of(Secret).hidden


def test_class_keywords_are_checked() -> None:
    with pytest.raises(TypeError, match="hiden"):

        class Bad(Entity, hiden=True):  # type: ignore[call-arg]
            pass

    for most in (0, -1, 2.5, True):
        with pytest.raises(TypeError, match="max is a number"):

            class Bad2(Entity, max=most):  # type: ignore[arg-type]
                pass


class Positioned(Entity, abstract=True):
    x: f32 = 0
    y: f32 = 0
    seen: int = local(0)

    def left(self) -> None:
        self.x -= 1

    def right(self) -> None:
        self.x += 1


class Armed(Entity, abstract=True):
    ammo: u8 = 9


def test_abstract_kinds_are_bases_of_fields() -> None:
    class Orc(Positioned, Armed, max=4):
        hp: u8 = 3
        y: f32 = 5

        def right(self) -> None:
            super().right()
            super().right()

    assert list(types_of(Orc)) == ["x", "y", "ammo", "hp"]
    orc = Orc(x=2)
    orc.left()
    orc.left()
    orc.right()
    orc.left()
    assert (orc.x, orc.y, orc.ammo, orc.hp, orc.seen) == (1, 5, 9, 3, 0)
    assert isinstance(orc, Positioned)
    assert spec_of(Orc).max == 4
    with pytest.raises(TypeError, match="Positioned is abstract"):
        Positioned()
    with pytest.raises(TypeError, match="Entity is abstract"):
        Entity()


def test_only_abstract_kinds_can_be_subclassed() -> None:
    class Orc(Positioned):
        pass

    with pytest.raises(TypeError, match="Orc is a kind, and a kind cannot be subclassed"):

        class BigOrc(Orc):
            pass


def test_a_name_cannot_hide_an_inherited_field() -> None:
    with pytest.raises(TypeError, match=r"Bad\.x: this hides a field"):

        class Bad(Positioned):
            x = 3


def test_kinds_stay_slotted() -> None:
    class Loose:
        pass

    class Tight:
        __slots__ = ()

        def hello(self) -> str:
            return "hello"

    with pytest.raises(TypeError, match="mixin beside a kind needs __slots__"):

        class Bad(Loose, Entity):
            x: u8

    class Good(Tight, Entity):
        x: u8 = 0

    assert Good().hello() == "hello"
    with pytest.raises(TypeError, match="slots already"):
        declare({"x": u8}, {"__slots__": ("y",)})
    with pytest.raises(TypeError, match=r"Thing\.speed: a local slot needs a type"):
        declare({}, {"speed": local(3.0)})
    for name in ("_values", "_home"):
        with pytest.raises(TypeError, match=f"{name}: this name is reserved"):
            declare({name: Any}, {name: local(3)})
    with pytest.raises(TypeError, match="takes a default or a factory"):
        local()  # type: ignore[call-overload]


@pytest.mark.parametrize("shared", [[], {}, set()])
def test_a_local_slot_is_not_shared(shared: object) -> None:
    with pytest.raises(
        TypeError, match=rf"a {type(shared).__name__} would be one for all entities; use local"
    ):
        local(shared)
