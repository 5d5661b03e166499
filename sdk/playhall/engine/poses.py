"""Poses: some fields of an entity as they were at a moment.

To a checker a pose is an entity of its kind. At run time it has its `id`, its `kind` and the fields that
were recorded, and says what is missing of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from playhall.engine.specs import KindSpec

__all__ = ["Pose", "pose_class"]


class Pose:
    """The base of the pose classes, of which each choice of fields has its own (`pose_class`).

    Frozen, and compared by value.
    """

    __slots__ = ("_values", "id")

    id: int
    kind: ClassVar[str]
    _values: tuple[Any, ...]
    _names: ClassVar[tuple[str, ...]]

    def __init__(self, id: int, values: tuple[Any, ...]) -> None:
        """`values` are as `_names` has them."""
        _put_id(self, id)
        _put_values(self, values)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self.kind} {self.id}: a pose is of the past, and cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self.kind} {self.id}: a pose is of the past, and cannot be changed")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"{self.kind} {self.id}: {name!r} was not recorded; the pose has "
            f"{', '.join(('id', *self._names))}",
            name=name,
            obj=self,
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (self.id, self._values) == (other.id, other._values)

    def __hash__(self) -> int:
        return hash((self.id, self._values))

    def __repr__(self) -> str:
        parts = [f"{name}={value!r}" for name, value in zip(self._names, self._values, strict=True)]
        return f"<{type(self).__name__} {', '.join((f'id={self.id}', *parts))}>"


# A frozen object's own way in.
_put_id = vars(Pose)["id"].__set__
_put_values = vars(Pose)["_values"].__set__


def pose_class(spec: KindSpec, names: Sequence[str], kind_name: str) -> type[Pose]:
    """Make the class of poses that have these fields; `kind_name` is that of the kind's class."""
    body: dict[str, Any] = {"__slots__": (), "kind": spec.name, "_names": tuple(names)}
    body |= {name: _value_at(index) for index, name in enumerate(names)}
    return type(f"{kind_name}Pose", (Pose,), body)


def _value_at(index: int) -> property:
    def value(pose: Pose) -> Any:
        return pose._values[index]

    return property(value)
