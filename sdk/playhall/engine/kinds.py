"""Kinds: classes of entities, and what their bodies declare.

A kind's class is made here, for both engines; what an entity's handle does is in `handles`, and natively in
`native.tables` (see `backend`).

Fields are descriptors made by a metaclass, because only it can insert `__slots__` and take the defaults out
of the class body. Type checkers are shown a class without it: both stop checking class keywords once they
see one.
"""

from __future__ import annotations

import sys
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, final

from typing_extensions import dataclass_transform

from playhall.engine.backend import (
    Handle,
    adopt,
    bury,
    equip,
    is_dead,
    put,
    restore,
    set_owner,
    stored_values,
)
from playhall.engine.declaring import KIND_NAME, RESERVED, Declaration, Local, local, snake_case
from playhall.engine.errors import FieldError, FieldTypeError
from playhall.engine.fields import BYTES
from playhall.engine.handles import NURSERY, Home, Values, spec_of, write_stored
from playhall.engine.inputs import Input
from playhall.engine.specs import MAX_ROWS, FieldSpec, KindSpec

__all__ = [
    "NURSERY",
    "Entity",
    "FieldSpec",
    "Home",
    "Input",
    "KindSpec",
    "adopt",
    "bury",
    "is_dead",
    "local",
    "put",
    "restore",
    "set_owner",
    "spec_of",
    "stored_values",
    "write_stored",
]

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
    _SLOTS = frozenset({"_home", "_id", "_layout", "_owner", "_size", "_spec", "_values"})

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
        equip(cls, spec)
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

    class Entity(Handle, metaclass=_KindMeta):
        """Base of every kind. Fields are annotations; `is` tells whether two handles are one entity."""

        __slots__ = ()

        # It cannot be assigned: fields lie where their kind says.
        __class__ = property(type)

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
