"""Handles: fields that are written through to where an entity lives. The pure twin of `native.tables`.

A handle has an id, an owner, stored values (see `fields`), and a **home**: where it lives, and who hears of
its writes. `Dot(x=1)` lives in the nursery, which tells nobody. A room's tracker moves it to a home of its
own; a client's replica makes handles in its home by `restore`; deletion is `bury`, after which every read and
write raises DeadEntityError.

What happens at `dot.x = 5`:

1. `home.write(dot, index, 5)`: a client's home overrides it, to refuse what the player may not write.
2. The value is accepted (FieldError, or its stored form); if it is the current one, nothing more happens.
3. The entity's size with it is checked (FieldError).
4. `home.on_write(dot, index, stored)`: the home's hook. The old value is still in place; raise to refuse.
5. The value is in place.

And at `dot.patch("blocks", 7, data)` the same by `home.patch`, with `home.on_patch(dot, index, offset, data,
stored)` as the hook. Engine code that puts in place what it knows to fit (a client applying an update) uses
`put`, which tells no home.

The native handles do as much of that as is simple themselves, and leave the rest to Home, which knows a
handle by `_spec`, `_id`, `_owner`, `_values` and `_size` alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from playhall.engine.errors import DeadEntityError, FieldError
from playhall.engine.fields import patched
from playhall.engine.specs import MAX_ENTITY, FieldSpec, KindSpec

if TYPE_CHECKING:
    from playhall.engine.kinds import Entity

__all__ = [
    "GRAVE",
    "NURSERY",
    "AbstractAttribute",
    "Handle",
    "Home",
    "Values",
    "adopt",
    "bury",
    "check_new",
    "concrete",
    "dead",
    "equip",
    "example",
    "fill_locals",
    "is_dead",
    "no_such_fields",
    "put",
    "replace_values",
    "restore",
    "set_owner",
    "spec_of",
    "stored_values",
    "write_stored",
]

E = TypeVar("E", bound="Entity")


class Values(Sequence[Any]):
    """The stored values of an entity where they are no list: some of them are elsewhere (see `rows`)."""

    __slots__ = ()

    @abstractmethod
    def __setitem__(self, index: int, stored: Any) -> None: ...

    @abstractmethod
    def told(self, index: int) -> Any:
        """Return the value that the entity's home was told of last: another may be in place already."""


class Home:
    """Where entities live. Subclass it, and override the hooks; this one tells nobody."""

    __slots__ = ()

    def write(self, entity: Entity, index: int, value: object) -> None:
        """Room or client code assigned a value. Raises FieldError, and changes nothing then."""
        spec = entity._spec
        field = spec.fields[index]
        try:
            stored = field.accept(spec.name, entity._id, value)
        except FieldError as error:
            raise type(error)(spec.name, entity._id, field.name, error.reason, entity._owner) from None
        # Read after that, which may run code of the value's class: it raises if the entity was deleted.
        old = entity._values[index]
        if field.type.same(old, stored):
            return
        size = _size_after(entity, field, old, stored)
        self.on_write(entity, index, stored)
        entity._values[index] = stored
        entity._size = size

    def patch(self, entity: Entity, index: int, offset: int, data: bytes) -> None:
        """Room or client code patched a bytes field. Raises FieldError, and changes nothing then."""
        spec = entity._spec
        field = spec.fields[index]
        old: bytes = entity._values[index]
        try:
            stored = patched(old, offset, data)
        except ValueError as error:
            raise FieldError(spec.name, entity._id, field.name, str(error), entity._owner) from None
        if stored == old:
            return
        size = _size_after(entity, field, old, stored)
        self.on_patch(entity, index, offset, data, stored)
        entity._values[index] = stored
        entity._size = size

    def on_write(self, entity: Entity, index: int, stored: Any) -> None:
        """A field is about to get another value. Raise to refuse it."""

    def on_patch(self, entity: Entity, index: int, offset: int, data: bytes, stored: bytes) -> None:
        """A bytes field is about to become `stored`, by a patch. Raise to refuse it."""
        self.on_write(entity, index, stored)


class _Grave(Home):
    """The home of the dead."""

    __slots__ = ()

    def write(self, entity: Entity, index: int, value: object) -> NoReturn:
        raise dead(entity)

    def patch(self, entity: Entity, index: int, offset: int, data: bytes) -> NoReturn:
        raise dead(entity)


class _NoValues(list[Any]):
    """The values of one dead entity. Reading raises, at no cost to the reads of the living."""

    __slots__ = ("_entity",)

    def __init__(self, entity: Entity) -> None:
        super().__init__()
        self._entity = entity

    def __getitem__(self, index: Any) -> NoReturn:
        raise dead(self._entity)


NURSERY = Home()
GRAVE = _Grave()


def dead(entity: Entity) -> DeadEntityError:
    """Return what touching a deleted entity raises."""
    return DeadEntityError(f"{entity._spec.name} {entity._id} was deleted")


def _size_after(entity: Entity, field: FieldSpec, old: Any, stored: Any) -> int:
    if field.type.fixed_size is not None:
        return entity._size
    size = entity._size + field.type.size(stored) - field.type.size(old)
    if size > MAX_ENTITY:
        raise _too_large(entity._spec, entity._id, field, size, entity._owner)
    return size


def _too_large(spec: KindSpec, id: int | None, field: FieldSpec, size: int, owner: str | None) -> FieldError:
    reason = f"the entity would have {size} bytes, and at most {MAX_ENTITY} fit"
    return FieldError(spec.name, id, field.name, reason, owner)


class _Attribute:
    """The descriptor of a field."""

    __slots__ = ("_index", "_name")

    def __init__(self, field: FieldSpec) -> None:
        self._index = field.index
        self._name = field.name

    def __get__(self, entity: Entity | None, owner: type[Entity]) -> Any:
        if entity is None:
            return self
        return entity._values[self._index]

    def __set__(self, entity: Entity, value: object) -> None:
        entity._home.write(entity, self._index, value)

    def __delete__(self, entity: Entity) -> NoReturn:
        raise AttributeError(f"{entity._spec.name}.{self._name} is a field, and cannot be deleted")


class _JsonAttribute(_Attribute):
    """The descriptor of a Json field, whose stored value is more than what is read."""

    __slots__ = ()

    def __get__(self, entity: Entity | None, owner: type[Entity]) -> Any:
        if entity is None:
            return self
        return entity._values[self._index].value


class Handle:
    """What an Entity is beside its class: see `kinds`."""

    __slots__ = ("_home", "_id", "_owner", "_size", "_values")

    _spec: KindSpec
    _home: Home
    _id: int | None
    _owner: str | None
    _size: int
    _values: list[Any] | Values

    def __init__(self, /, *unnamed: object, **given: Any) -> None:
        spec = concrete(type(self))
        if unnamed:
            raise TypeError(f"{spec.name}: fields are given by name, as in {example(type(self))}")
        self._id = self._owner = None
        self._home = NURSERY
        values = []
        for field in spec.fields:
            if field.name in given:
                stored = field.accept(spec.name, None, given.pop(field.name))
            else:
                stored = field.fresh_default()
            values.append(stored)
        if given:
            raise no_such_fields(spec, given)
        self._values, self._size = values, spec.size(values)
        check_new(spec, values, self._size)
        fill_locals(self, spec)

    @property
    def id(self) -> int:
        if self._id is None:
            raise DeadEntityError(f"{self._spec.name} has no id before it is added")
        return self._id

    @property
    def owner(self) -> str | None:
        return self._owner


class AbstractAttribute:
    """The descriptor of a field in an abstract base, as `super().x` finds it: the kind's own does the work.

    A kind with several bases has the fields of all, so that none knows where its own are.
    """

    __slots__ = ("_name",)

    def __init__(self, field: FieldSpec) -> None:
        self._name = field.name

    def __get__(self, entity: Entity | None, owner: type[Entity]) -> Any:
        return self if entity is None else getattr(entity, self._name)

    def __set__(self, entity: Entity, value: object) -> None:
        setattr(entity, self._name, value)

    def __delete__(self, entity: Entity) -> None:
        delattr(entity, self._name)


def equip(cls: type[Entity], spec: KindSpec) -> None:
    """Give a new class its fields."""
    for field in spec.fields:
        make = _JsonAttribute if field.type.name == "json" else _Attribute
        type.__setattr__(cls, field.name, AbstractAttribute(field) if spec.abstract else make(field))


def concrete(cls: type[Any]) -> KindSpec:
    """Return the specification of a kind. Raises TypeError for an abstract one."""
    spec: KindSpec = cls._spec
    if spec.abstract:
        raise TypeError(f"{cls.__name__} is abstract, and has no entities")
    return spec


def example(cls: type[Any]) -> str:
    """Return how one makes an entity."""
    first = next(iter(cls._spec.by_name), None)
    return f"{cls.__name__}()" if first is None else f"{cls.__name__}({first}=...)"


def no_such_fields(spec: KindSpec, given: Mapping[str, object]) -> TypeError:
    """Return what is raised for names that are no fields."""
    text = f"{spec.name} has no field {', '.join(sorted(given))}"
    near = [match for name in sorted(given) for match in get_close_matches(name, spec.by_name, 1)]
    if near:
        text += f"; did you mean {', '.join(near)}?"
    if given.keys() & {"id", "owner"}:
        text += "; id and owner are for entities.add"
    return TypeError(text)


def check_new(spec: KindSpec, values: Sequence[Any], size: int) -> None:
    """Raise FieldError where a new entity is too large."""
    if size > MAX_ENTITY:
        # Of a new entity, whose fields come all at once, the largest field is the one to name.
        largest = max(spec.fields, key=lambda field: field.type.size(values[field.index]))
        raise _too_large(spec, None, largest, size, None)


def fill_locals(entity: Any, spec: KindSpec) -> None:
    """Give a new handle its private slots."""
    for name, make in spec.locals:
        setattr(entity, name, make())


def spec_of(kind: type[Entity] | Entity) -> KindSpec:
    """Return what the class of an entity declares."""
    return kind._spec


def stored_values(entity: Entity) -> Sequence[Any]:
    """Return the stored values in the order of the fields: a live view, to be read and not kept."""
    return entity._values


def adopt(entity: Entity, home: Home, id: int, owner: str | None) -> None:
    """Move a new entity from the nursery to its home. Raises ValueError if it has one already."""
    if entity._home is not NURSERY:
        raise ValueError(f"{entity!r} was added before; make a new one")
    entity._home, entity._id, entity._owner = home, id, owner


def restore(cls: type[E], home: Home, id: int, owner: str | None, values: list[Any]) -> E:
    """Make an entity of stored values, which it keeps: after a wake, or in a client's replica."""
    spec = concrete(cls)
    entity = cls.__new__(cls)
    entity._id, entity._owner, entity._home = id, owner, home
    entity._values, entity._size = values, spec.size(values)
    fill_locals(entity, spec)
    return entity


def put(entity: Entity, index: int, stored: Any) -> None:
    """Put a stored value in place without telling the home."""
    field = entity._spec.fields[index]
    if field.type.fixed_size is None:
        entity._size += field.type.size(stored) - field.type.size(entity._values[index])
    entity._values[index] = stored


def write_stored(entity: Entity, values: Mapping[int, Any]) -> None:
    """Write several stored values at once, and tell the home of each.

    Raises FieldError, and changes nothing then, where the entity would be too large.
    """
    fields = [entity._spec.fields[index] for index in values]
    size = entity._size
    for field in fields:
        if field.type.fixed_size is None:
            size += field.type.size(values[field.index]) - field.type.size(entity._values[field.index])
    if size > MAX_ENTITY:
        raise _too_large(entity._spec, entity._id, fields[0], size, entity._owner)
    for field in fields:
        stored = values[field.index]
        if not field.type.same(entity._values[field.index], stored):
            entity._home.on_write(entity, field.index, stored)
            put(entity, field.index, stored)


def replace_values(entity: Entity, values: Values) -> None:
    """Have an entity hold the same stored values in another place."""
    entity._values = values


def set_owner(entity: Entity, owner: str | None) -> None:
    """Note another owner without telling the home."""
    entity._owner = owner


def bury(entity: Entity) -> None:
    """Make the handle dead. Its id and owner can still be read, its fields not."""
    entity._home = GRAVE
    entity._values = _NoValues(entity)


def is_dead(entity: Entity) -> bool:
    """Whether the entity was deleted."""
    return entity._home is GRAVE
