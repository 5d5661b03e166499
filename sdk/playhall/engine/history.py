"""Histories: what a room remembers of its last ticks, as room code declares and reads it.

Recording and looking back are `rewinding`'s, on rings that have a native twin (`rings`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from difflib import get_close_matches
from math import inf
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, final

from playhall.engine.fields import BOOL, FieldType, FloatType, IntType, QuantisedType
from playhall.engine.kinds import Entity, spec_of
from playhall.engine.poses import pose_class
from playhall.engine.specs import FieldSpec, KindSpec

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

    from playhall.engine.rings import Rewound

__all__ = ["History", "Hit", "Past", "PastColumns", "recorded_by"]

E = TypeVar("E", bound=Entity)


@final
class History(Generic[E]):
    """Which fields of a kind a room records: `poses = History(Fighter, "x", "y")`.

    Without names, all its bool and number fields. A room records what its `history` lists, at the end of each
    tick, and `rewind` gives it back: of the last 250 ms and two ticks, in memory only. Record what a hit
    check reads, usually the position, and no more: each field takes 8 bytes an entity and tick, of the 8 MB a
    room has.

    Raises TypeError for a field that the kind does not have, or that is no bool or number.
    """

    __slots__ = ("_kind", "_pose", "_recorded")

    def __init__(self, kind: type[E], *fields: str) -> None:
        spec = _spec_to_record(kind)
        self._kind = kind
        self._recorded = _fields_to_record(kind.__name__, spec, fields)
        self._pose = pose_class(spec, self.fields, kind.__name__)

    @property
    def kind(self) -> type[E]:
        """The kind whose entities are recorded."""
        return self._kind

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that are recorded."""
        return tuple(field.name for field in self._recorded)

    def __repr__(self) -> str:
        return f"History({', '.join((self._kind.__name__, *map(repr, self.fields)))})"


class Hit(NamedTuple, Generic[E]):
    """What `Past.ray` and `Past.near` found."""

    pose: E
    """The entity as it was; its fields that were not recorded raise AttributeError."""
    id: int
    """Its id. The entity may be gone by now: `entities.get(Kind, hit.id)`."""
    distance: float
    """How far it was, in world units."""


@final
class Past(Mapping[int, E]):
    """The entities of a history as they were at a tick: poses by id, in the order of their ids.

    A pose is frozen, and typed as the kind: it has `id` and the recorded fields, and reading another raises
    AttributeError. Poses are made when they are read, so that `rewind` and `ray` cost next to nothing.

    It does not change, however long it is kept.
    """

    __slots__ = ("_history", "_rewound")

    def __init__(self, history: History[E], rewound: Rewound) -> None:
        self._history = history
        self._rewound = rewound

    @property
    def tick(self) -> float:
        """The tick this is of: what was asked for, unless the room has forgotten it or has yet to run it."""
        return self._rewound.tick

    @property
    def columns(self) -> PastColumns:
        """The same as NumPy arrays, one row for each entity, in the order of their ids."""
        return PastColumns(recorded_by(self._history), self._rewound)

    def ray(
        self,
        origin: Sequence[float],
        direction: Sequence[float],
        *,
        reach: float = inf,
        radius: float = 0.0,
        skip: Container[int] = (),
    ) -> Hit[E] | None:
        """Return the first entity that a ray from `origin` meets, or None.

        Entities are circles of `radius` around their `x` and `y`, which must be recorded; spheres where
        origin and direction have three coordinates and `z` is recorded too. `direction` need not have length
        1; where it has none, as one from a client may, the ray meets nothing. `distance` is along the ray to
        where it enters, 0 if it starts inside, and at most `reach`; of two as near, the lower id is met. Ids
        in `skip` are not.

        Raises ValueError for what is NaN or infinite (`reach` may be), or negative.
        """
        met = self._rewound.ray(origin, direction, reach, radius, skip)
        return None if met is None else self._hit(*met)

    def near(self, point: Sequence[float], radius: float, *, skip: Container[int] = ()) -> list[Hit[E]]:
        """Return the entities that are at most `radius` from a point, the nearest first.

        In a circle, or in a sphere where the point has three coordinates, as for `ray`.
        """
        return [self._hit(*met) for met in self._rewound.near(point, radius, skip)]

    def __getitem__(self, id: int) -> E:
        index = self._rewound.index_of(id)
        if index is None:
            raise KeyError(id)
        return self._pose(index)

    def __contains__(self, id: object) -> bool:
        return self._rewound.index_of(id) is not None

    def __iter__(self) -> Iterator[int]:
        return iter(self._rewound.ids)

    def __len__(self) -> int:
        return self._rewound.count

    def __repr__(self) -> str:
        return f"<Past of {self._history._kind.__name__} at tick {self.tick:g}, {len(self)} entities>"

    def _pose(self, index: int) -> E:
        pose: Any = self._history._pose(self._rewound.id_at(index), self._rewound.values(index))
        return pose  # type: ignore[no-any-return]  # typed as the kind, as documented

    def _hit(self, index: int, distance: float) -> Hit[E]:
        return Hit(self._pose(index), self._rewound.id_at(index), distance)


@final
class PastColumns:
    """A past as NumPy arrays: for each recorded field one, by the field's name, over the entities there were.

    The dtype is bool, uint8 to int32, float32 or float64, and float64 for q8 and q16. Arrays are the caller's
    own: they may be kept and written.
    """

    __slots__ = ("_fields", "_rewound")

    def __init__(self, fields: Sequence[FieldSpec], rewound: Rewound) -> None:
        self._fields = fields
        self._rewound = rewound

    @property
    def id(self) -> NDArray[int64]:
        """The entity of each row, by its id."""
        import numpy as np

        return np.array(self._rewound.ids, np.int64)

    def __len__(self) -> int:
        return self._rewound.count

    def __getattr__(self, name: str) -> NDArray[Any]:
        import numpy as np

        for index, field in enumerate(self._fields):
            if field.name == name:
                column: NDArray[Any] = np.frombuffer(self._rewound.column(index), _dtype_of(field.type))
                return column
        names = ", ".join(("id", *(field.name for field in self._fields)))
        raise AttributeError(f"{name!r} was not recorded; there are columns of {names}", name=name, obj=self)


def recorded_by(history: History[Any]) -> tuple[FieldSpec, ...]:
    """Return the fields that a history records."""
    return history._recorded


def _spec_to_record(kind: object) -> KindSpec:
    if not (isinstance(kind, type) and issubclass(kind, Entity)):
        raise TypeError(f"a history is of a kind of entity, and not of {kind!r}")
    spec = spec_of(kind)
    if spec.abstract:
        raise TypeError(f"{kind.__name__} is abstract: each kind under it has a history of its own")
    return spec


def _fields_to_record(kind: str, spec: KindSpec, names: Sequence[str]) -> tuple[FieldSpec, ...]:
    if not names:
        fields = tuple(field for field in spec.fields if _dtype_of(field.type) is not None)
        if not fields:
            raise TypeError(f"History({kind}): it has no bool or number field to record")
        return fields
    for name in names:
        field = spec.by_name.get(name)
        if field is None:
            near = get_close_matches(str(name), spec.by_name, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"History({kind}): {spec.name} has no field {name!r}{meant}")
        if _dtype_of(field.type) is None:
            raise TypeError(
                f"History({kind}): {spec.name}.{name} is {field.type.name}, and only bools and numbers are "
                "recorded"
            )
        if names.count(name) > 1:
            raise TypeError(f"History({kind}) names {name} twice")
    return tuple(spec.by_name[name] for name in names)


def _dtype_of(type: FieldType) -> str | None:
    """Return the dtype of a recorded field, or None where it cannot be recorded."""
    if isinstance(type, IntType | FloatType):
        return f"{type.name[0]}{type.fixed_size}"
    if isinstance(type, QuantisedType):
        return "f8"
    return "?" if type is BOOL else None
