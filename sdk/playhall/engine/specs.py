"""What a declared class says: the specification of a kind and of its fields, without the class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from playhall.engine.errors import FieldError, FieldTypeError
from playhall.engine.fields import FieldType, JsonValue

__all__ = ["MAX_ENTITY", "MAX_FIELDS", "MAX_ROWS", "FieldSpec", "KindSpec"]

MAX_ENTITY: Final = 61_376
"""Bytes of an entity with all its fields encoded, so that it fits one part of an update."""

MAX_FIELDS: Final = 255
MAX_ROWS: Final = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class FieldSpec:
    """One field of a kind. `required` fields have no written default; `default` is a stored value."""

    name: str
    index: int
    type: FieldType
    default: Any
    writable: bool = False
    owner_only: bool = False
    required: bool = False

    def fresh_default(self) -> Any:
        """Return the default for one more entity. A Json default is copied: room code may change it."""
        if isinstance(self.default, JsonValue):
            return JsonValue.parse(self.default.data)
        return self.default

    def accept(self, kind: str, id: int | None, value: object) -> Any:
        """Return the stored form of a value. Raises FieldError."""
        try:
            return self.type.accept(value)
        except TypeError as error:
            raise FieldTypeError(kind, id, self.name, str(error)) from None
        except ValueError as error:
            raise FieldError(kind, id, self.name, str(error)) from None

    def canonical(self) -> dict[str, object]:
        """Return what of the field goes into a schema's hash."""
        return {
            "name": self.name,
            "owner_only": self.owner_only,
            "type": self.type.canonical,
            "writable": self.writable,
        }


@dataclass(frozen=True, slots=True, eq=False)
class KindSpec:
    """A kind of entity, or an input. Compared by identity: two classes are two kinds."""

    name: str
    fields: tuple[FieldSpec, ...]
    hidden: bool = False
    abstract: bool = False
    max: int = MAX_ROWS
    locals: tuple[tuple[str, Callable[[], Any]], ...] = ()
    by_name: dict[str, FieldSpec] = field(init=False)
    public: tuple[FieldSpec, ...] = field(init=False)
    writable_mask: int = field(init=False)
    owner_only_mask: int = field(init=False)

    def __post_init__(self) -> None:
        derived = {
            "by_name": {spec.name: spec for spec in self.fields},
            "public": tuple(spec for spec in self.fields if not spec.owner_only),
            "writable_mask": sum(1 << spec.index for spec in self.fields if spec.writable),
            "owner_only_mask": sum(1 << spec.index for spec in self.fields if spec.owner_only),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)  # how a frozen dataclass fills in its own

    def size(self, values: Sequence[Any]) -> int:
        """Return how many bytes the stored values of an entity take, all fields encoded."""
        return sum(spec.type.size(value) for spec, value in zip(self.fields, values, strict=True))

    def canonical(self) -> dict[str, object]:
        """Return what of the kind goes into a schema's hash."""
        return {
            "fields": [spec.canonical() for spec in self.fields],
            "hidden": self.hidden,
            "name": self.name,
        }
