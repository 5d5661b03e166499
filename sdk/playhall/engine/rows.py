"""The rows of one kind: its bool and number fields in arrays, once room code has asked for its columns.

From then on handles and arrays are one store: a handle's stored values are a `RowValues`, which reads and
writes the arrays. A handle's write tells the entity's home, as ever. What room code wrote to the arrays
nobody tells of; it is found when the tracker asks, as the difference to a second set of arrays, the values
that the tracker has heard of. A handle's write goes to both.

An entity's row is its place (see `places`). A row without one is zero in both sets, so that what is written
to it shows as a difference, and is zeroed again.

Arrays have room for all rows that the most entities of the kind can take, and never move, so that a view of
one is never wrong about where it is.
"""

from __future__ import annotations

import mmap
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from playhall.engine.columns import Columns
from playhall.engine.errors import FieldError, FieldTypeError
from playhall.engine.fields import BOOL, F32, FieldType, FloatType, IntType, QuantisedType
from playhall.engine.handles import Values, is_dead, replace_values
from playhall.engine.specs import FieldSpec, KindSpec
from playhall.engine.tracking import Tracked

__all__ = ["Memory", "RowValues", "Rows", "assign", "capacity_of", "check_columns", "dtype_of", "no_column"]

# See `places`.
ROWS_PER_ENTITY: Final = 3

# Which arrays can be assigned to a column, by dtype.kind: what a single write takes.
_FITTING: Final = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}


def dtype_of(type: FieldType) -> str | None:
    """Return the dtype of a field's column, or None where it has none."""
    if isinstance(type, IntType | FloatType):
        return f"{type.name[0]}{type.fixed_size}"
    if isinstance(type, QuantisedType):
        return "f8"
    return "?" if type is BOOL else None


def check_columns(spec: KindSpec) -> None:
    """Raise TypeError for a kind that can have no columns."""
    if "alive" in spec.by_name:
        raise TypeError(
            f"{spec.name}.alive: columns name what rows hold an entity so; rename the field to use them"
        )


def capacity_of(spec: KindSpec, used: int) -> int:
    """Return how many rows a kind can ever have, of which some are used."""
    # There may be more entities than `max` if that was more when the room was saved.
    return ROWS_PER_ENTITY * max(spec.max, used)


class Memory:
    """Room for the arrays of one kind, which commits what is touched and nothing else.

    Pages straight from the system: malloc would take what it has at hand, and commit that by zeroing it.
    An array keeps its memory alive.
    """

    def __init__(self, rows: int, dtypes: Sequence[str]) -> None:
        self._rows = rows
        self._used = 0
        self._pages = _map_pages(sum(self._size(dtype) for dtype in dtypes))

    def array(self, dtype: str) -> NDArray[Any]:
        """Return a new array of zeros, with as many rows as there is room for."""
        made: NDArray[Any] = np.frombuffer(self._pages, dtype, self._rows, self._used)
        self._used += self._size(dtype)
        return made

    def _size(self, dtype: str) -> int:
        return -(np.dtype(dtype).itemsize * self._rows // -mmap.PAGESIZE) * mmap.PAGESIZE


# What is never touched is not to be counted as taken. Before 3.13, mmap has no name for it.
_IS_KNOWN = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
_NORESERVE: Final[int] = getattr(mmap, "MAP_NORESERVE", 0x4000 if _IS_KNOWN else 0)


def _map_pages(size: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    if sys.platform == "linux":
        with suppress(OSError):  # of a kernel that has no huge pages
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return pages


class _Column:
    """One field of all rows. `told` is what the tracker has heard of; both are compared by their bits."""

    __slots__ = ("bits", "field", "now", "told", "told_bits")

    def __init__(self, field: FieldSpec, dtype: str, memory: Memory) -> None:
        self.field = field
        self.now: NDArray[Any] = memory.array(dtype)
        self.told: NDArray[Any] = memory.array(dtype)
        as_bits = f"u{self.now.itemsize}"
        self.bits, self.told_bits = self.now.view(as_bits), self.told.view(as_bits)

    def put(self, row: int, stored: Any) -> None:
        self.now[row] = self.told[row] = stored

    def differing(self, alive: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the rows of entities whose value was written through the arrays since it was told.

        Quantised values that fit are at their step after this.
        """
        rows = np.flatnonzero(self.bits[: len(alive)] != self.told_bits[: len(alive)])
        if not rows.size:
            return rows
        living = alive[rows]
        self.now[rows[~living]] = 0
        rows = rows[living]
        if isinstance(self.field.type, QuantisedType):
            rows = self._at_their_steps(self.field.type, rows)
        return rows

    def _at_their_steps(self, type: QuantisedType, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        values = self.now[rows]
        fit = _fits(type, values)
        self.now[rows[fit]] = _nearest(type, values[fit])
        still: NDArray[np.intp] = rows[self.bits[rows] != self.told_bits[rows]]
        return still


def _nearest(type: QuantisedType, values: NDArray[Any]) -> NDArray[Any]:
    """Return what `accept` returns of each value between the bounds, to the bit."""
    span = type.hi - type.lo
    steps = np.floor((values - type.lo) / span * type.steps + 0.5)
    return np.where(steps == type.steps, type.hi, type.lo + span * (steps / type.steps))


def _fits(type: FieldType, values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which of some values, of a type that fits, fit a field themselves."""
    fit: NDArray[np.bool_]
    if isinstance(type, IntType | QuantisedType):
        fit = (values >= type.lo) & (values <= type.hi)  # NaN does not
    elif type is F32:
        fit = ~np.isfinite(values) | np.isfinite(values.astype(np.float32))
    else:
        fit = np.ones(values.shape, bool)
    return fit


def _refuse_unfit(
    spec: KindSpec, field: FieldSpec, values: NDArray[Any], rows: NDArray[np.intp], ids: NDArray[np.int64]
) -> None:
    """Raise what a single write would, if one of the values at these rows does not fit."""
    unfit = rows[~_fits(field.type, values[rows])]
    if unfit.size:
        row = unfit[0]
        field.accept(spec.name, ids.item(row), values[row].item())


def assign(
    spec: KindSpec,
    field: FieldSpec,
    into: NDArray[Any],
    value: object,
    ids: NDArray[np.int64],
    alive: NDArray[np.bool_],
) -> None:
    """Copy into a column. Raises FieldError or ValueError, and changes nothing then."""
    given = np.asarray(value)
    if given.shape not in ((), into.shape):
        raise ValueError(
            f"{spec.name}.{field.name}: takes one value, or one for each of {len(into)} rows, "
            f"and not an array of shape {given.shape}"
        )
    if given.dtype.kind not in _FITTING[into.dtype.kind]:
        raise FieldTypeError(spec.name, None, field.name, f"must be {field.type.name}, not {given.dtype}")
    with np.errstate(all="ignore"):  # what does not fit is refused here, or belongs to no entity
        living = np.flatnonzero(alive[: len(into)])
        _refuse_unfit(spec, field, np.broadcast_to(given, into.shape), living, ids)
        into[...] = given


def no_column(spec: KindSpec, name: str, columns: Iterable[str]) -> AttributeError:
    """Return the error that says why there is no such column."""
    field = spec.by_name.get(name)
    why = (
        f"{spec.name} has no field {name!r}"
        if field is None
        else (f"{spec.name}.{name} is {field.type.name}, and only bools and numbers have columns")
    )
    return AttributeError(f"{why}; it has columns for {', '.join(('id', 'alive', *columns))}")


class RowValues(Values):
    """The stored values of one entity, by the index of the field (and by that only: there are no slices)."""

    __slots__ = ("_columns", "_others", "row")

    def __init__(self, columns: Sequence[_Column | None], row: int, others: list[Any]) -> None:
        self._columns = columns
        self._others = others
        self.row = row

    def __getitem__(self, index: Any) -> Any:
        column = self._columns[index]
        return self._others[index] if column is None else column.now.item(self.row)

    def __setitem__(self, index: int, stored: Any) -> None:
        column = self._columns[index]
        if column is None:
            self._others[index] = stored
        else:
            column.put(self.row, stored)

    def told(self, index: int) -> Any:
        column = self._columns[index]
        return self._others[index] if column is None else column.told.item(self.row)

    def __len__(self) -> int:
        return len(self._others)

    def __iter__(self) -> Iterator[Any]:
        for column, other in zip(self._columns, self._others, strict=True):
            yield other if column is None else column.now.item(self.row)


class Rows:
    """The rows of one kind."""

    def __init__(self, spec: KindSpec, there: Sequence[Tracked | None]) -> None:
        """Take in the entities there are: `there` holds the Tracked of each row, and grows as rows are taken.

        Raises TypeError for a kind that can have no columns.
        """
        check_columns(spec)
        capacity = capacity_of(spec, len(there))
        self._spec = spec
        dtypes = [dtype_of(field.type) for field in spec.fields]
        memory = Memory(capacity, [*[dtype for dtype in dtypes if dtype] * 2, "?", "i8"])
        self._by_index = [
            None if dtype is None else _Column(field, dtype, memory)
            for field, dtype in zip(spec.fields, dtypes, strict=True)
        ]
        self._columns = {column.field.name: column for column in self._by_index if column is not None}
        self._alive = memory.array("?")
        self._ids = memory.array("i8")
        self._there = there
        self._shown: Columns | None = None
        for tracked in there:
            if tracked is not None and not is_dead(tracked.entity):
                self.attach(tracked)

    def attach(self, tracked: Tracked) -> None:
        """Hold the values of an entity from now on, in its row."""
        row, others = tracked.row, list(tracked.values)
        for column in self._columns.values():
            column.put(row, others[column.field.index])
            others[column.field.index] = None
        self._alive[row], self._ids[row] = True, tracked.id
        values = RowValues(self._by_index, row, others)
        replace_values(tracked.entity, values)
        tracked.values = values

    def detach(self, tracked: Tracked) -> None:
        """Empty the row of an entity that was deleted. Its Tracked keeps the last values."""
        row, tracked.values = tracked.row, list(tracked.values)
        for column in self._columns.values():
            column.put(row, 0)
        self._alive[row], self._ids[row] = False, 0

    def columns(self) -> Columns:
        """Return the arrays over the rows there are."""
        size = len(self._there)
        if self._shown is None or len(self._shown) != size:
            ids, alive = self._ids[:size], self._alive[:size]
            ids.flags.writeable = alive.flags.writeable = False
            arrays = {name: column.now[:size] for name, column in self._columns.items()}
            self._shown = Columns(self, arrays, ids, alive)
        return self._shown

    # What the tracker asks

    def changed(self) -> bool:
        """Whether `tell` would tell anything."""
        alive = self._alive[: len(self._there)]
        return any(column.differing(alive).size for column in self._columns.values())

    def tell(self) -> None:
        """Tell of what was written through the arrays. Raises FieldError, and tells nothing then."""
        alive = self._alive[: len(self._there)]
        found = [(column, column.differing(alive)) for column in self._columns.values()]
        self._refuse_out_of_bounds(found)
        masks: dict[int, int] = {}
        for column, rows in found:
            bit = 1 << column.field.index
            for row in rows.tolist():
                masks[row] = masks.get(row, 0) | bit
        for row, mask in masks.items():
            tracked = self._there[row]
            assert tracked is not None, "rows that differ are of entities"
            tracked.wrote(mask)
        for column, rows in found:
            column.told[rows] = column.now[rows]

    def _refuse_out_of_bounds(self, found: list[tuple[_Column, NDArray[np.intp]]]) -> None:
        for column, rows in found:
            if isinstance(column.field.type, QuantisedType):
                try:
                    _refuse_unfit(self._spec, column.field, column.now, rows, self._ids)
                except FieldError as error:
                    error.add_note("Written through entities.columns(), and found when the tick was flushed.")
                    raise

    # What Columns asks

    def assign(self, name: str, into: NDArray[Any], value: object) -> None:
        assign(self._spec, self._spec.by_name[name], into, value, self._ids, self._alive)

    def no_column(self, name: str) -> AttributeError:
        return no_column(self._spec, name, self._columns)
