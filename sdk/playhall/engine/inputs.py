"""The compact input: one immutable value per player and tick, with the field types of entities."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from typing_extensions import dataclass_transform

from playhall.engine.declaring import KIND_NAME, Declaration, Local, snake_case
from playhall.engine.fields import JSON
from playhall.engine.specs import MAX_ENTITY, KindSpec
from playhall.engine.wire import Writer

__all__ = ["Input", "input_of", "input_spec_of", "input_values"]

I = TypeVar("I", bound="Input")  # noqa: E741

if TYPE_CHECKING:

    @dataclass_transform(kw_only_default=True, frozen_default=True)
    class Input:
        """Base of the compact input: what a player holds down, sent each tick in a few bytes.

        Its fields are as those of entities. Immutable, compared by value; one without a default is required.
        """

        _spec: ClassVar[KindSpec]
        _values: tuple[Any, ...]

        def __hash__(self) -> int: ...

else:

    class _InputMeta(type):
        """Makes an input of a class body."""

        def __new__(mcls, cls_name, bases, ns, /):
            if not any(isinstance(base, _InputMeta) for base in bases):
                return super().__new__(mcls, cls_name, bases, ns)
            if bases != (Input,):
                raise TypeError(f"{cls_name}: an input has Input as its only base")
            if "__slots__" in ns:
                raise TypeError(f"{cls_name}: an input has its slots already")
            annotations = ns.get("__annotations__", {})
            defaults = {name: ns.pop(name) for name in annotations if name in ns}
            frame = sys._getframe(1)
            scope = {**frame.f_locals, **ns}
            declaration = Declaration(cls_name, annotations, defaults, frame.f_globals, scope, zeros=False)
            spec = KindSpec(snake_case(cls_name), declaration.fields())
            _check_input(cls_name, spec, defaults)
            ns["__slots__"] = ()
            for field in spec.fields:
                ns[field.name] = property(_getter(field))
            ns |= {name: value for name, value in defaults.items() if name not in spec.by_name}
            cls = super().__new__(mcls, cls_name, bases, ns)
            cls._spec = spec
            return cls

    def _check_input(cls_name, spec, defaults):
        if not KIND_NAME.fullmatch(spec.name):
            raise TypeError(f"{cls_name}: {spec.name!r} cannot be an input's name")
        for name, value in defaults.items():
            if isinstance(value, Local):
                raise TypeError(f"{cls_name}.{name}: an input has no local slots")
        for field in spec.fields:
            if field.writable or field.owner_only:
                raise TypeError(
                    f"{cls_name}.{field.name}: an input's fields are neither writable nor owner_only"
                )

    def _getter(field):
        index, load = field.index, field.type.load
        return lambda self: load(self._values[index])

    class Input(metaclass=_InputMeta):
        """Base of the compact input. Immutable, compared by value; a field without a default is required."""

        __slots__ = ("_values",)
        _spec = KindSpec("input", (), abstract=True)

        def __init__(self, **given):
            spec = type(self)._spec
            if spec.abstract:
                raise TypeError("Input is a base: declare a class of your own")
            missing = [f.name for f in spec.fields if f.required and f.name not in given]
            if missing:
                raise TypeError(f"{type(self).__name__}: {', '.join(missing)} is missing")
            surplus = given.keys() - spec.by_name.keys()
            if surplus:
                raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(surplus))}")
            values = tuple(
                f.accept(spec.name, None, given[f.name]) if f.name in given else f.fresh_default()
                for f in spec.fields
            )
            if spec.size(values) > MAX_ENTITY:
                raise ValueError(f"{type(self).__name__}: an input has at most {MAX_ENTITY} bytes")
            object.__setattr__(self, "_values", values)

        def __setattr__(self, name, value):
            raise AttributeError(f"{type(self).__name__} is immutable")

        def __delattr__(self, name):
            raise AttributeError(f"{type(self).__name__} is immutable")

        def __eq__(self, other):
            if type(self) is not type(other):
                return NotImplemented
            return all(
                f.type.same(a, b)
                for f, a, b in zip(self._spec.fields, self._values, other._values, strict=True)
            )

        def __hash__(self):
            # By their bytes, as equality is by bits; equal JSON may be written in several ways.
            out = Writer()
            for field, stored in zip(self._spec.fields, self._values, strict=True):
                if field.type is not JSON:
                    field.type.encode(out, stored)
            return hash((type(self), out.finish()))

        def __reduce__(self):
            return _revive, (type(self), self._values)

        def __repr__(self):
            fields = (
                f"{f.name}={f.type.load(v)!r}" for f, v in zip(self._spec.fields, self._values, strict=True)
            )
            return f"{type(self).__name__}({', '.join(fields)})"


def input_spec_of(cls: type[Input]) -> KindSpec:
    """Return what an input's class declares."""
    return cls._spec


def input_values(value: Input) -> tuple[Any, ...]:
    """Return the stored values of an input, in the order of its fields."""
    return value._values


def input_of(cls: type[I], values: tuple[Any, ...]) -> I:
    """Make an input of stored values."""
    made = cls.__new__(cls)
    object.__setattr__(made, "_values", values)
    return made


def _revive(cls: type[I], values: tuple[Any, ...]) -> I:
    return input_of(cls, values)
