"""Rings of moments: some fields of all entities of a kind, as they were at the end of each of the last ticks.

The twin of `native/rings.pyx`, which does the same over the tables' columns; both give the same bits.

A `Moment` is one tick: who was there (by id), and a column for each field. It does not change once it is
made, so that what looks back on it may be kept. A `Ring` has the last moments. `Rewound` is what one rewind
sees: a moment, or two and how far it is from one to the other.

An entity is known by more than its id, which may be used again at once: here by its handle. Between two ticks
it is where the line between its two places has it; whole numbers and bools are those of the earlier tick, and
so is all of an entity that is gone by the later one, or another one by then.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from math import floor, isfinite, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Any

from playhall.engine.fields import BOOL, F32, FloatType, QuantisedType
from playhall.engine.kinds import Entity, stored_values
from playhall.engine.specs import FieldSpec

if TYPE_CHECKING:
    from playhall.engine.store import EntityStore

__all__ = ["Moment", "Rewound", "Ring", "check_near", "check_ray", "check_skip"]

_TYPECODES = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "f32": "f"}
_AXES = ("x", "y", "z")


class Moment:
    """One tick of a kind. `columns` has a list for each field, with a value for each of the entities.

    `lost`: how many entities the moment before had that this one has not.
    """

    __slots__ = ("columns", "entities", "lost", "tick", "where")

    def __init__(
        self, tick: int, entities: tuple[Entity, ...], fields: Sequence[FieldSpec], lost: int = 0
    ) -> None:
        rows = [stored_values(entity) for entity in entities]
        self.tick = tick
        self.entities = entities
        self.columns = [[row[field.index] for row in rows] for field in fields]
        self.lost = lost


class Rewound:
    """What a rewind sees. Of the same length and in the order of ids: `ids`, and each column."""

    def __init__(
        self,
        tick: float,
        fields: Sequence[FieldSpec],
        earlier: Moment,
        later: Moment | None = None,
        fraction: float = 0.0,
    ) -> None:
        """`fraction` is above 0 and below 1 where there is a `later` moment."""
        self.tick = tick
        self.ids = [entity.id for entity in earlier.entities]
        self._fields = fields
        self._earlier = earlier
        self._later = later
        self._fraction = fraction

    @property
    def count(self) -> int:
        return len(self.ids)

    def id_at(self, index: int) -> int:
        return self.ids[index]

    def index_of(self, id: object) -> int | None:
        """Return where an id is in `ids`, or None."""
        return self._indices.get(id)

    def values(self, index: int) -> tuple[Any, ...]:
        """Return the values of one entity, as the fields are."""
        return tuple(column[index] for column in self._columns)

    def column(self, number: int) -> array[Any] | bytes:
        """Return a new buffer of one field's values, in the field's own format."""
        type, column = self._fields[number].type, self._columns[number]
        return bytes(column) if type is BOOL else array(_TYPECODES.get(type.name, "d"), column)

    def ray(
        self,
        origin: Sequence[float],
        direction: Sequence[float],
        reach: float,
        radius: float,
        skip: Container[int],
    ) -> tuple[int, float] | None:
        """Return the index of the entity that a ray meets first, and how far along; see `Past.ray`."""
        start, unit = check_ray(self._fields, origin, direction, reach, radius)
        check_skip(skip)
        if not any(unit):
            return None
        met: tuple[int, float] | None = None
        square = radius * radius
        for index, place in enumerate(self._places(len(start))):
            offset = [p - s for p, s in zip(place, start, strict=True)]
            along = _dot(offset, unit)
            aside = [o - along * u for o, u in zip(offset, unit, strict=True)]
            beside = _dot(aside, aside)
            if not beside <= square:
                continue
            half = sqrt(square - beside)
            distance = max(along - half, 0.0)
            if along + half < 0 or not distance <= reach or (met is not None and distance >= met[1]):
                continue
            if self.ids[index] not in skip:
                met = index, distance
        return met

    def near(self, point: Sequence[float], radius: float, skip: Container[int]) -> list[tuple[int, float]]:
        """Return the indices of the entities about a point and their distances; see `Past.near`."""
        centre = check_near(self._fields, point, radius)
        check_skip(skip)
        found = []
        for index, place in enumerate(self._places(len(centre))):
            offset = [p - c for p, c in zip(place, centre, strict=True)]
            square = _dot(offset, offset)
            if square <= radius * radius and self.ids[index] not in skip:
                found.append((index, sqrt(square)))
        return sorted(found, key=lambda each: each[1])

    @cached_property
    def _indices(self) -> dict[object, int]:
        return {id: index for index, id in enumerate(self.ids)}

    @cached_property
    def _columns(self) -> list[list[Any]]:
        if self._later is None:
            return self._earlier.columns
        later = {entity: index for index, entity in enumerate(self._later.entities)}
        others = [later.get(entity) for entity in self._earlier.entities]
        return [
            self._blend(field, number, others)
            if isinstance(field.type, FloatType | QuantisedType)
            else column
            for number, (field, column) in enumerate(zip(self._fields, self._earlier.columns, strict=True))
        ]

    def _blend(self, field: FieldSpec, number: int, others: list[int | None]) -> list[float]:
        assert self._later is not None, "there is something to blend with"
        later, fraction = self._later.columns[number], self._fraction
        blended = []
        for value, other in zip(self._earlier.columns[number], others, strict=True):
            between = value if other is None else value + (later[other] - value) * fraction
            # Infinite places have nothing between them.
            blended.append(between if between == between else value)
        return array("f", blended).tolist() if field.type is F32 else blended

    def _places(self, dimensions: int) -> Iterable[tuple[float, ...]]:
        names = [field.name for field in self._fields]
        return zip(*(self._columns[names.index(axis)] for axis in _AXES[:dimensions]), strict=True)


class Ring:
    """The last moments of a kind, `depth` of them at most, of ticks in a row.

    `held` counts the entities that the ring has room for: those of its moments, each once.
    """

    def __init__(
        self, store: EntityStore, kind: type[Entity], fields: Sequence[FieldSpec], depth: int
    ) -> None:
        self._store = store
        self._kind = kind
        self._fields = fields
        self._depth = depth
        self._moments: deque[Moment] = deque()
        self._unrecorded = 0
        self.held = 0

    def record(self, tick: int, most: int) -> int:
        """Record a tick, the one after the last; `held` comes to `most` entities at most.

        Returns how many of them go unrecorded for that.
        """
        if len(self._moments) == self._depth:
            self._moments.popleft()
            self.held -= self._moments[0].lost
        before = self._moments[-1].entities if self._moments else ()
        there, lost = self._there(), 0
        if self._unrecorded or there != before:
            there, lost = self._choose(there, set(before), most)
        self._moments.append(Moment(tick, there, self._fields, lost))
        return self._unrecorded

    def rewind(self, tick: float, now: int) -> Rewound:
        """Return what was at a tick, which is finite; `now` is the room's."""
        newest = self._moments[-1].tick if self._moments else now
        if not self._moments or tick >= newest + 1:
            present = max(now, newest + 1) if self._moments else now
            return Rewound(float(present), self._fields, self._present(present))
        oldest = self._moments[0].tick
        if tick <= oldest:
            return Rewound(float(oldest), self._fields, self._moments[0])
        whole = floor(tick)
        earlier = self._moments[whole - oldest]
        if tick == whole:
            return Rewound(float(tick), self._fields, earlier)
        later = self._moments[whole + 1 - oldest] if whole < newest else self._present(whole + 1)
        return Rewound(float(tick), self._fields, earlier, later, tick - whole)

    def _choose(
        self, there: tuple[Entity, ...], before: set[Entity], most: int
    ) -> tuple[tuple[Entity, ...], int]:
        """Return whom to record, and how many there were before and are not any more."""
        chosen, kept = [], 0
        for entity in there:
            if entity in before:
                kept += 1
            elif self.held < most:
                self.held += 1
            else:
                continue
            chosen.append(entity)
        self._unrecorded = len(there) - len(chosen)
        return tuple(chosen), len(before) - kept

    def _present(self, tick: int) -> Moment:
        return Moment(tick, self._there(), self._fields)

    def _there(self) -> tuple[Entity, ...]:
        return tuple(self._store.of_kind(self._kind))


def check_ray(
    fields: Sequence[FieldSpec],
    origin: Sequence[float],
    direction: Sequence[float],
    reach: float,
    radius: float,
) -> tuple[list[float], list[float]]:
    """Return where a ray starts, and its direction with length 1, or 0 where it has none.

    Raises TypeError or ValueError for what cannot be cast at these fields.
    """
    start = _vector(fields, "origin", origin)
    way = _vector(fields, "direction", direction)
    if len(start) != len(way):
        raise ValueError(f"origin has {len(start)} coordinates and direction {len(way)}")
    _length("reach", reach)
    _length("radius", radius)
    longest = max(map(abs, way))
    if longest == 0.0:
        return start, way
    way = [each / longest for each in way]  # the square of a long one would be infinite
    length = sqrt(_dot(way, way))
    return start, [each / length for each in way]


def check_near(fields: Sequence[FieldSpec], point: Sequence[float], radius: float) -> list[float]:
    """Return a point as floats. Raises TypeError or ValueError for what cannot be looked for."""
    _length("radius", radius)
    return _vector(fields, "point", point)


def _vector(fields: Sequence[FieldSpec], what: str, given: object) -> list[float]:
    coordinates: list[object] = list(given) if isinstance(given, Iterable) else []
    vector = [float(each) for each in coordinates if isinstance(each, Real)]
    if not coordinates or len(vector) < len(coordinates):
        raise TypeError(f"{what} is (x, y) or (x, y, z), in numbers, and not {given!r}")
    if len(vector) not in (2, 3):
        raise ValueError(f"{what} is (x, y) or (x, y, z), and has not {len(vector)} coordinates")
    for axis in _AXES[: len(vector)]:
        if all(field.name != axis for field in fields):
            names = ", ".join(field.name for field in fields)
            raise TypeError(f"{what} has {len(vector)} coordinates, and {axis} is not recorded, but {names}")
    if not all(map(isfinite, vector)):
        raise ValueError(f"{what} must be finite, not {given!r}")
    return vector


def _length(what: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(f"{what} must be a number, not {type(given).__name__}")
    if not float(given) >= 0.0:
        raise ValueError(f"{what} must be 0 or more, not {given}")


def check_skip(skip: object) -> None:
    """Raise TypeError where ids cannot be in it."""
    if not hasattr(type(skip), "__contains__"):
        raise TypeError(f"skip is a set of ids, or the like, and not {skip!r}")


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += x * y
    return total
