"""Entities: handles whose fields are written through to where the entity lives.

The seam. A handle has an id, an owner, a list of stored values (see `fields`), and a **home**: where it
lives, and who hears of its writes. `Dot(x=1)` lives in the nursery, which tells nobody. `EntityStore.add`
moves it to the room's home by `adopt`; a client's replica makes handles in its own home by `restore`;
deletion is `bury`, after which every read and write raises DeadEntityError.

What happens at `dot.x = 5`:

1. `home.write(dot, index, 5)`: a client's home overrides it, to refuse what the player may not write.
2. The value is accepted (FieldError, or its stored form); if it is the current one, nothing more happens.
3. The entity's size with it is checked (FieldError).
4. `home.on_write(dot, index, stored)`: the home's hook. The old value is still in place; raise to refuse.
5. The value is in place.

And at `dot.patch("blocks", 7, data)` the same by `home.patch`, with `home.on_patch(dot, index, offset, data,
stored)` as the hook. Engine code that puts in place what it knows to fit (a client applying an update) uses
`put`, which tells no home.

Fields are descriptors made by a metaclass, because only it can insert `__slots__` and take the defaults out
of the class body. Type checkers are shown a class without it: both stop checking class keywords once they
see one.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, final

from typing_extensions import dataclass_transform

from playhall.engine.declaring import KIND_NAME, RESERVED, Declaration, Local, local, snake_case
from playhall.engine.errors import DeadEntityError, FieldError, FieldTypeError
from playhall.engine.fields import BYTES, patched
from playhall.engine.inputs import Input
from playhall.engine.specs import MAX_ENTITY, MAX_ROWS, FieldSpec, KindSpec

__all__ = [
    "NURSERY",
    "Entity",
    "FieldSpec",
    "Home",
    "Input",
    "KindSpec",
    "Values",
    "adopt",
    "bury",
    "is_dead",
    "local",
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
        old = entity._values[index]
        try:
            stored = field.accept(spec.name, entity._id, value)
        except FieldError as error:
            raise type(error)(spec.name, entity._id, field.name, error.reason, entity._owner) from None
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
        raise _dead(entity)

    def patch(self, entity: Entity, index: int, offset: int, data: bytes) -> NoReturn:
        raise _dead(entity)


class _NoValues(list[Any]):
    """The values of one dead entity. Reading raises, at no cost to the reads of the living."""

    __slots__ = ("_entity",)

    def __init__(self, entity: Entity) -> None:
        super().__init__()
        self._entity = entity

    def __getitem__(self, index: Any) -> NoReturn:
        raise _dead(self._entity)


NURSERY = Home()
_GRAVE = _Grave()


def _dead(entity: Entity) -> DeadEntityError:
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


if TYPE_CHECKING:

    @dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(local,))
    class Entity:
        """Base of every kind: `class Dot(Entity): x: f32`. Fields are annotations, with or without defaults.

        Class keywords: `kind=` is the kind's name, else the class's in snake case; `hidden=True` keeps its
        entities in the room; `max=` is how many there may be at once, 65,536 by default; `abstract=True`
        makes a base of fields that is no kind. What cannot be a kind raises TypeError where it is made.

        An entity is a handle: `is` tells whether two are one. The constructor takes fields by name and raises
        FieldError; what is left out has its default, else its type's zero. A misspelt field raises
        AttributeError.
        """

        kind: ClassVar[str]
        _spec: ClassVar[KindSpec]
        _id: int | None
        _owner: str | None
        _home: Home
        _values: list[Any] | Values
        _size: int

        def __init_subclass__(
            cls, *, kind: str | None = None, hidden: bool = False, max: int = MAX_ROWS, abstract: bool = False
        ) -> None: ...

        @final
        @property
        def id(self) -> int:
            """The entity's number, once it was added. Still there after it was deleted."""

        @final
        @property
        def owner(self) -> str | None:
            """The player who owns the entity; None is the room."""

        @final
        def patch(self, field: str, offset: int, data: bytes) -> None:
            """Write a range of a bytes field; a gap before it is filled with zeros.

            Only the range travels. Raises FieldError where the field is no bytes, or would have over 49,152.
            """

else:
    _SLOTS = frozenset({"_home", "_id", "_owner", "_size", "_spec", "_values"})

    class _KindMeta(type):
        """Makes a kind of a class body."""

        def __new__(mcls, cls_name, bases, ns, /, *, kind=None, hidden=False, max=MAX_ROWS, abstract=False):
            parents = [base for base in bases if isinstance(base, _KindMeta)]
            if not parents:
                return super().__new__(mcls, cls_name, bases, ns)
            return _make_kind(
                mcls,
                cls_name,
                bases,
                ns,
                sys._getframe(1),
                kind=kind,
                hidden=hidden,
                max=max,
                abstract=abstract,
            )

        def __init__(cls, cls_name, bases, ns, /, **keywords):
            super().__init__(cls_name, bases, ns)

    def _make_kind(mcls, cls_name, bases, ns, frame, *, kind, hidden, max, abstract):
        parents = [base for base in bases if isinstance(base, _KindMeta) and base is not Entity]
        for parent in parents:
            if not parent._spec.abstract:
                raise TypeError(
                    f"{cls_name}: {parent.__name__} is a kind, and a kind cannot be subclassed; "
                    "move what they share to a base with abstract=True"
                )
        annotations = ns.get("__annotations__", {})
        for word in sorted((RESERVED | _SLOTS) & (ns.keys() | annotations.keys())):
            raise TypeError(f"{cls_name}.{word}: this name is reserved")
        for name, value in ns.items():
            if isinstance(value, Local) and name not in annotations:
                raise TypeError(f"{cls_name}.{name}: a local slot needs a type: {name}: float = local(0.0)")
        if "__slots__" in ns:
            raise TypeError(f"{cls_name}: a kind has its slots already; declare more by local()")
        defaults = {name: ns.pop(name) for name in annotations if name in ns}
        inherited = _inherited(parents)
        for name in sorted({field.name for field in inherited} & ns.keys()):
            raise TypeError(
                f"{cls_name}.{name}: this hides a field; to change its default, write its type too"
            )
        declaration = Declaration(
            cls_name, annotations, defaults, frame.f_globals, {**frame.f_locals, **ns}, RESERVED
        )
        fields = declaration.fields(inherited)
        own = [(name, value.make) for name, value in defaults.items() if isinstance(value, Local)]
        spec = KindSpec(
            kind if kind is not None else snake_case(cls_name),
            fields,
            hidden=hidden,
            abstract=abstract,
            max=max,
            locals=tuple(
                {**{n: make for parent in parents for n, make in parent._spec.locals}, **dict(own)}.items()
            ),
        )
        _check_kind(cls_name, spec, ns["__module__"])
        ns["__slots__"] = tuple(name for name, _ in own)
        cls = type.__new__(mcls, cls_name, bases, ns)
        if cls.__dictoffset__:
            raise TypeError(f"{cls_name}: a mixin beside a kind needs __slots__ = ()")
        cls._spec, cls.kind = spec, spec.name
        for field in fields:
            make = _JsonAttribute if field.type.name == "json" else _Attribute
            type.__setattr__(cls, field.name, make(field))
        for name, value in defaults.items():
            if name not in spec.by_name and not isinstance(value, Local):
                type.__setattr__(cls, name, value)  # a ClassVar
        return cls

    def _inherited(parents):
        found = {field.name: field for parent in parents for field in parent._spec.fields}
        return tuple(
            FieldSpec(f.name, index, f.type, f.default, f.writable, f.owner_only, f.required)
            for index, f in enumerate(found.values())
        )

    def _check_kind(cls_name, spec, module):
        if not KIND_NAME.fullmatch(spec.name):
            raise TypeError(f"{cls_name}: {spec.name!r} cannot be a kind's name")
        if spec.name.startswith("playhall_") and not module.startswith("playhall.engine."):
            raise TypeError(f"{cls_name}: kind names that start with playhall_ are reserved")
        if type(spec.max) is not int or spec.max < 1:
            raise TypeError(f"{cls_name}: max is a number of entities, from 1")
        if spec.hidden and spec.writable_mask:
            raise TypeError(f"{cls_name}: a hidden kind cannot have writable fields")

    class Entity(metaclass=_KindMeta):
        """Base of every kind. Fields are annotations; `is` tells whether two handles are one entity."""

        __slots__ = ("_home", "_id", "_owner", "_size", "_values")

        def __init__(self, /, *unnamed, **given):
            spec = _concrete(type(self))
            if unnamed:
                raise TypeError(f"{spec.name}: fields are given by name, as in {_example(type(self))}")
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
                raise _no_such_fields(spec, given)
            self._values, self._size = values, spec.size(values)
            if self._size > MAX_ENTITY:
                # Of a new entity, whose fields come all at once, the largest field is the one to name.
                largest = max(spec.fields, key=lambda field: field.type.size(values[field.index]))
                raise _too_large(spec, None, largest, self._size, None)
            _fill_locals(self, spec)

        @property
        def id(self):
            if self._id is None:
                raise DeadEntityError(f"{self.kind} has no id before it is added")
            return self._id

        @property
        def owner(self):
            return self._owner

        def patch(self, field, offset, data):
            spec = self._spec.by_name.get(field)
            if spec is None or spec.type is not BYTES:
                reason = "it is no bytes field, and only those can be patched"
                raise FieldTypeError(self.kind, self._id, str(field), reason, self._owner)
            if isinstance(offset, bool) or not isinstance(offset, Integral):
                reason = f"a patch's offset must be int, not {type(offset).__name__}"
                raise FieldTypeError(self.kind, self._id, field, reason, self._owner)
            offset = int(offset)
            if offset < 0:
                reason = f"a patch's offset cannot be {offset}"
                raise FieldError(self.kind, self._id, field, reason, self._owner)
            if not isinstance(data, bytes | bytearray | memoryview):
                reason = f"a patch must be bytes, not {type(data).__name__}"
                raise FieldTypeError(self.kind, self._id, field, reason, self._owner)
            self._home.patch(self, spec.index, offset, bytes(data))

        def __reduce_ex__(self, protocol):
            raise TypeError(
                f"{self.kind}: an entity is a handle to a room's state; it has no copies and no pickle"
            )

        def __repr__(self):
            name = type(self).__name__
            if is_dead(self):
                return f"<{name} {self._id}, deleted>"
            parts = [] if self._id is None else [f"id={self._id}"]
            if self._owner is not None:
                parts.append(f"owner={self._owner!r}")
            parts += [
                f"{f.name}={f.type.load(v)!r}" for f, v in zip(self._spec.fields, self._values, strict=True)
            ]
            return f"{name}({', '.join(parts)})"

    Entity._spec = KindSpec("entity", (), abstract=True)


def _concrete(cls: type[Entity]) -> KindSpec:
    if cls._spec.abstract:
        raise TypeError(f"{cls.__name__} is abstract, and has no entities")
    return cls._spec


def _example(cls: type[Entity]) -> str:
    first = next(iter(cls._spec.by_name), None)
    return f"{cls.__name__}()" if first is None else f"{cls.__name__}({first}=...)"


def _no_such_fields(spec: KindSpec, given: Mapping[str, object]) -> TypeError:
    text = f"{spec.name} has no field {', '.join(sorted(given))}"
    near = [match for name in sorted(given) for match in get_close_matches(name, spec.by_name, 1)]
    if near:
        text += f"; did you mean {', '.join(near)}?"
    if given.keys() & {"id", "owner"}:
        text += "; id and owner are for entities.add"
    return TypeError(text)


def _fill_locals(entity: Entity, spec: KindSpec) -> None:
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
    spec = _concrete(cls)
    entity = cls.__new__(cls)
    entity._id, entity._owner, entity._home = id, owner, home
    entity._values, entity._size = values, spec.size(values)
    _fill_locals(entity, spec)
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
    entity._home = _GRAVE
    entity._values = _NoValues(entity)


def is_dead(entity: Entity) -> bool:
    """Whether the entity was deleted."""
    return entity._home is _GRAVE
