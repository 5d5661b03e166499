"""Grids: interest by where things are. The world is cut into cells, and a cell is a key."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from operator import attrgetter
from typing import Any, Literal, TypeAlias, overload

from playhall.engine.fields import FloatType, IntType, QuantisedType
from playhall.engine.interest import EVERYWHERE, Interest, is_number, memory_of
from playhall.engine.kinds import Entity, spec_of
from playhall.engine.schema import Schema

__all__ = ["DeclaredGrid", "RangeGrid", "declared_grid", "grid"]

Dims: TypeAlias = Literal["xy", "xz", "xyz"]
Point: TypeAlias = "Sequence[float]"
Around: TypeAlias = "type[Entity] | Callable[[Any, Any], Entity | Point | None]"
Position: TypeAlias = "Callable[[Any, Any], Point | None]"

_Place: TypeAlias = "tuple[float, ...]"


@overload
def grid(
    *,
    cell_size: float,
    around: Around,
    range: float,
    dims: Dims = "xy",
    position: Position | None = None,
    prefix: str = "",
    kinds: Sequence[type[Entity]] | None = None,
    margin: float = 0.0,
) -> Interest: ...
@overload
def grid(
    *,
    cell_size: float,
    around: Around,
    radius: int,
    dims: Dims = "xy",
    position: Position | None = None,
    prefix: str = "",
    kinds: Sequence[type[Entity]] | None = None,
) -> Interest: ...
def grid(
    *,
    cell_size: float,
    around: Around,
    range: float | None = None,
    radius: int | None = None,
    dims: Dims = "xy",
    position: Position | None = None,
    prefix: str = "",
    kinds: Sequence[type[Entity]] | None = None,
    margin: float = 0.0,
) -> Interest:
    """Return an interest by cells of `cell_size` world units. Give it either a `range` or a `radius`.

    - `range`: world units. A connection sees what is at most so far from it on the axes of `dims`, exactly.
      With a `margin`, what it sees goes only beyond `range + margin`.
    - `radius`: whole cells. It sees all in its own cell and those within `radius` of it on each axis.
    - `around`: where a connection looks from: a kind (its player's first entity of it), or a function of
      room and conn that returns an entity, a point or None. While None, it sees only what has no position.
    - `position`: a function of room and entity that returns a point or None, for entities without x, y and z
      fields, and for the entity of `around` too.
    - `kinds`: which entities the grid places; it gives the others no key. All, by default.
    - `prefix`: what every key begins with. A cell's key is like "3,-1": floor(position / cell_size).

    A point is as many numbers as `dims` has axes, or x, y and z. An entity without a position is seen by
    everyone; one whose position is not finite by nobody.
    """
    if (range is None) == (radius is None):
        raise TypeError("a grid has either a range (world units) or a radius (cells)")
    if range is None and margin:
        raise TypeError("a margin goes with a range")
    _check_length("cell_size", cell_size, above=0)
    if range is not None:
        _check_length("range", range)
    if radius is not None and (type(radius) is not int or radius < 0):
        raise TypeError(f"grid: radius is a number of cells, from 0, not {radius!r}")
    _check_length("margin", margin)
    if dims not in ("xy", "xz", "xyz"):
        raise ValueError(f'grid: dims is "xy", "xz" or "xyz", not {dims!r}')
    if type(prefix) is not str:
        raise TypeError(f"grid: prefix is text, not {prefix!r}")
    if position is not None and not callable(position):
        raise TypeError(f"grid: position is a function of room and entity, not {position!r}")
    if not (issubclass(around, Entity) if isinstance(around, type) else callable(around)):
        raise TypeError(f"grid: around is a kind, or a function of room and conn, not {around!r}")
    placing = _Placing(dims, position, None if kinds is None else _checked_kinds(kinds))
    if range is not None:
        return RangeGrid(cell_size, around, placing, prefix, range, margin)
    assert radius is not None
    return _RadiusGrid(cell_size, around, placing, prefix, radius)


def _check_length(name: str, value: object, above: float | None = None) -> None:
    if not is_number(value):
        raise TypeError(f"grid: {name} is a number of world units, not {value!r}")
    assert isinstance(value, int | float)
    if not (0 <= value < math.inf) or (above is not None and value <= above):
        raise ValueError(f"grid: {name} cannot be {value!r}")


def _checked_kinds(kinds: Iterable[object]) -> tuple[type[Entity], ...]:
    found = []
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Entity)):
            raise TypeError(f"grid: kinds are classes of entities, not {kind!r}")
        found.append(kind)
    return tuple(found)


class _Placing:
    """Where entities are: finds the place of each, on the axes of the grid."""

    def __init__(self, dims: str, position: Position | None, kinds: tuple[type[Entity], ...] | None) -> None:
        self.axes = dims
        # At least two axes, so that it gives a tuple.
        self._read = attrgetter(*dims)
        self._indices = tuple("xyz".index(axis) for axis in dims)
        self._position = position
        self._kinds = kinds

    def takes(self, entity: Entity) -> bool:
        """Whether the grid is for such an entity."""
        return self._kinds is None or isinstance(entity, self._kinds)

    def takes_kind(self, kind: type[Entity]) -> bool:
        return self._kinds is None or issubclass(kind, self._kinds)

    @property
    def has_position(self) -> bool:
        """Whether room code says where entities are."""
        return self._position is not None

    def fields_of(self, kind: type[Entity]) -> tuple[int, ...] | None:
        """Return the fields that say where an entity of a kind is; none if there are none. None: what says so
        is no number field.
        """
        spec = spec_of(kind)
        named = [spec.by_name.get(axis) for axis in self.axes if hasattr(kind, axis)]
        numbers = [
            field.index
            for field in named
            if field is not None and isinstance(field.type, IntType | FloatType | QuantisedType)
        ]
        if len(numbers) < len(named):
            return None
        return tuple(numbers) if len(numbers) == len(self.axes) else ()

    def place(self, room: Any, entity: Entity) -> _Place | None:
        """Return where an entity is; None: it has no position. The place may be none: see `_is_finite`."""
        if self._position is not None:
            point = self._position(room, entity)
            return None if point is None else self.point(point, "position")
        try:
            values = self._read(entity)
        except AttributeError:
            if all(hasattr(type(entity), axis) for axis in self.axes):
                raise  # the kind has them, and what is wrong is within
            return None
        return _numbers(values, entity.kind) if None not in values else None

    def point(self, point: Any, what: str) -> _Place:
        """Take the axes of the grid from a point that room code returned."""
        if (
            isinstance(point, str | bytes)
            or not hasattr(point, "__len__")
            or not hasattr(point, "__getitem__")
        ):
            raise TypeError(f"{what} must return a point or None, not {point!r}")
        if len(point) == len(self.axes):
            return _numbers(point, what)
        if len(point) != 3:
            raise ValueError(f"{what} must return {len(self.axes)} numbers, or x, y and z, not {point!r}")
        return _numbers([point[index] for index in self._indices], what)


def _numbers(values: Sequence[Any], what: str) -> _Place:
    for value in values:
        if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
            raise TypeError(f"{what}: a position is made of numbers, not {value!r}")
    return tuple(map(float, values))


def _is_finite(place: _Place) -> bool:
    """Whether it is a place at all: none has NaN or an infinity in it."""
    return all(map(math.isfinite, place))


class _Grid(Interest):
    def __init__(self, cell_size: float, around: Around, placing: _Placing, prefix: str) -> None:
        self._size = float(cell_size)
        self._around = around
        self._placing = placing
        self._prefix = prefix
        self._everywhere = prefix + EVERYWHERE

    def keys_of(self, room: Any, entity: Entity) -> Sequence[str]:
        if not self._placing.takes(entity):
            return ()
        place = self._placing.place(room, entity)
        if place is None:
            return (self._everywhere,)
        cell = self._cell(place)
        return () if cell is None else (self._key(cell),)

    def subscriptions_of(self, room: Any, conn: Any) -> Iterator[str]:
        # First, so that it is not among those left out where there are too many.
        yield self._everywhere
        point = self._point(room, conn)
        if point is not None and self._cell(point) is not None:
            for cell in self._cells_around(point):
                yield self._key(cell)

    def _cells_around(self, point: _Place) -> Iterator[tuple[int, ...]]:
        raise NotImplementedError

    def _point(self, room: Any, conn: Any) -> _Place | None:
        """Return where a connection looks from; None where it cannot be said."""
        points = memory_of(conn).points
        if self not in points:
            point = self._find_point(room, conn)
            if not memory_of(conn).looking:
                return point
            points[self] = point
        return points[self]

    def _find_point(self, room: Any, conn: Any) -> _Place | None:
        around: Any = self._around
        if isinstance(around, type):
            found = room.entities.first(around, owner=conn.player)
        else:
            found = around(room, conn)
        if found is None:
            return None
        if isinstance(found, Entity):
            place = self._placing.place(room, found)
        else:
            place = self._placing.point(found, "around")
        return place if place is not None and _is_finite(place) else None

    def _cell(self, place: _Place) -> tuple[int, ...] | None:
        """Return the cell of a place, or None of one that is nowhere."""
        scaled = tuple(value / self._size for value in place)
        return tuple(map(math.floor, scaled)) if _is_finite(scaled) else None

    def _key(self, cell: tuple[int, ...]) -> str:
        return self._prefix + ",".join(map(str, cell))


class _RadiusGrid(_Grid):
    def __init__(self, cell_size: float, around: Around, placing: _Placing, prefix: str, radius: int) -> None:
        super().__init__(cell_size, around, placing, prefix)
        self._radius = radius

    def _cells_around(self, point: _Place) -> Iterator[tuple[int, ...]]:
        cell = self._cell(point)
        assert cell is not None
        yield from _square(cell, self._radius)


class RangeGrid(_Grid):
    """What is near. Its cells are there to find that fast: what it shows depends on distances alone."""

    def __init__(
        self,
        cell_size: float,
        around: Around,
        placing: _Placing,
        prefix: str,
        range: float,
        margin: float,
    ) -> None:
        super().__init__(cell_size, around, placing, prefix)
        self._margin = float(margin) > 0
        self._reach = float(range) + float(margin)
        # Of squares, as distances are compared: so that it is the same wherever it is worked out.
        self._near, self._far = _square_of(float(range)), _square_of(self._reach)

    @property
    def most_keys(self) -> float:
        """At most how many keys a connection subscribes to."""
        return 1 + (2 * self._reach / self._size + 4) ** len(self._placing.axes)

    def _cells_around(self, point: _Place) -> Iterator[tuple[int, ...]]:
        # A little beyond the reach, lest rounding hide what is just within; `sees` is exact.
        slack = min(4 * math.ulp(self._reach + max(map(abs, point))), self._size)
        yield from _overlapped(point, self._reach + slack, self._size)

    def _find_point(self, room: Any, conn: Any) -> _Place | None:
        point = super()._find_point(room, conn)
        if point is None:
            return None
        # So far out that cells have no numbers is nowhere.
        return point if _is_finite(tuple(2 * (abs(x) + self._reach) / self._size for x in point)) else None

    def takes(self, entity: Entity) -> bool:
        """Whether the grid is for such an entity."""
        return self._placing.takes(entity)

    def sees(self, room: Any, conn: Any, entity: Entity) -> bool:
        if not self._placing.takes(entity):
            return True
        place = self._placing.place(room, entity)
        if place is None:
            return True
        point = self._point(room, conn)
        # From and to nowhere the distance is NaN or infinite, and that is never near.
        return point is not None and self._is_near(conn, entity, _distance_2(point, place))

    def _is_near(self, conn: Any, entity: Entity, distance_2: float) -> bool:
        if not self._margin:
            return distance_2 <= self._near
        memory = memory_of(conn)
        seen = distance_2 <= self._near or (
            distance_2 <= self._far and memory.before.get(self, {}).get(entity.id) is entity
        )
        if memory.looking:
            shown = memory.shown.setdefault(self, {})
            if seen:
                shown[entity.id] = entity
            else:
                shown.pop(entity.id, None)
        return seen

    def declared(self, schema: Schema[Any, Any]) -> DeclaredGrid | None:
        """Return what the grid says of a schema's kinds, if room code has no part in that."""
        around = self._around
        if self._placing.has_position or not isinstance(around, type):
            return None
        if around not in schema.entities and not spec_of(around).abstract:
            return None  # which is an error when it is asked for
        taken: set[int] = set()
        eyes: set[int] = set()
        axes: dict[int, tuple[int, ...]] = {}
        for number, kind in enumerate(schema.entities):
            takes, eye = self._placing.takes_kind(kind), issubclass(kind, around)
            if not (takes or eye):
                continue
            found = self._placing.fields_of(kind)
            if found is None:
                return None
            axes[number] = found
            if takes:
                taken.add(number)
            if eye:
                eyes.add(number)
        return DeclaredGrid(
            len(self._placing.axes),
            self._size,
            self._reach,
            self._near,
            self._far,
            self._margin,
            axes,
            frozenset(taken),
            frozenset(eyes),
        )


@dataclass(frozen=True, slots=True)
class DeclaredGrid:
    """A range grid in which room code has no part: entities stand where their fields say, and a player looks
    from the first entity it has of some kinds.

    `near` and `far` are squares: of the range, and of `reach`, up to which stays what was shown (`margin`).
    `fields` has by number of kind the fields of its axes; none where it has no position. Of those kinds
    `taken` are shown, and `eyes` are looked from.
    """

    dims: int
    cell_size: float
    reach: float
    near: float
    far: float
    margin: bool
    fields: Mapping[int, tuple[int, ...]]
    taken: frozenset[int]
    eyes: frozenset[int]


def declared_grid(interest: Interest, schema: Schema[Any, Any]) -> DeclaredGrid | None:
    """Return what an interest declares, if it is a range grid in which room code has no part."""
    return interest.declared(schema) if type(interest) is RangeGrid else None


def _square_of(length: float) -> float:
    """Its square, if that is not too large for a number: then what is nowhere is beyond it all the same."""
    return min(length * length, sys.float_info.max)


def _distance_2(point: _Place, place: _Place) -> float:
    dx, dy = point[0] - place[0], point[1] - place[1]
    if len(point) == 2:
        return dx * dx + dy * dy
    dz = point[2] - place[2]
    return dx * dx + dy * dy + dz * dz


def _square(cell: tuple[int, ...], radius: int) -> Iterator[tuple[int, ...]]:
    """Give the cells at most `radius` from one on each axis, those in the middle first."""
    first, *others = cell
    for at in _outwards(first, first - radius, first + radius):
        if others:
            yield from ((at, *rest) for rest in _square(tuple(others), radius))
        else:
            yield (at,)


def _overlapped(point: _Place, reach: float, size: float) -> Iterator[tuple[int, ...]]:
    """Give the cells that a circle or sphere overlaps, those in the middle first."""
    first, *others = point
    lowest, highest = math.floor((first - reach) / size), math.floor((first + reach) / size)
    for at in _outwards(math.floor(first / size), lowest, highest):
        if not others:
            yield (at,)
            continue
        gap = max(at * size - first, first - (at + 1) * size, 0.0)
        left = math.sqrt(max((reach - gap) * (reach + gap), 0.0))
        for rest in _overlapped(tuple(others), left, size):
            yield (at, *rest)


def _outwards(middle: int, lowest: int, highest: int) -> Iterator[int]:
    """Give middle, middle + 1, middle - 1 and so on, within the bounds."""
    yield middle
    for step in range(1, max(middle - lowest, highest - middle) + 1):
        if middle + step <= highest:
            yield middle + step
        if middle - step >= lowest:
            yield middle - step
