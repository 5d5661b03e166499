"""`entities.columns(Kind)`: a kind's fields as NumPy arrays. Room code's face of `rows`.

This module does without NumPy, which `rows` imports at the first `columns()`: that takes a tenth of a
second, and most rooms need none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from numpy import bool_, int64
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Columns", "ColumnsOf"]


class ColumnsOf(Protocol):
    """What Columns asks of the rows of its kind."""

    def assign(self, name: str, into: NDArray[Any], value: object) -> None:
        """Copy into a column. Raises FieldError or ValueError, and changes nothing then."""

    def no_column(self, name: str) -> AttributeError:
        """Return the error that says why there is no such column."""


class Columns:
    """A kind's bool and number fields: for each a NumPy array over the kind's rows, by the field's name.

    `npcs.x += npcs.vx * dt` and `npcs.x[mask] = 0` write the entities' fields at once; `npcs.x = values`,
    with one value or one for each row, copies them in. The dtype is bool, uint8 to int32, float32 or
    float64, and float64 for q8 and q16.

    What has changed is found at the end of the tick (or before it, when someone joins), by comparing bits,
    and is sent, saved and corrected as single writes are. A row is an entity's as long as that is there; one
    without an entity reads 0, and what is written to it is lost. The arrays end at the rows there were: ask
    again after an `add`. One that is kept too long is stale, and no worse.

    An assigned value that does not fit (a 300 in `npcs.hp = values` for a u8) raises FieldError and changes
    nothing. What is done to the arrays themselves is NumPy's: integers wrap in `npcs.hp -= 10`, and
    `npcs.hp[mask] = 1.7` stores 1. Use np.clip, or a wider type. A quantised value goes to its nearest step
    at the end of the tick; one that is out of bounds by then, or NaN, stops the room with FieldError, as
    raising in on_tick does.
    """

    __slots__ = ("_arrays", "_ids", "_living", "_rows")

    _rows: ColumnsOf
    _arrays: Mapping[str, NDArray[Any]]
    _ids: NDArray[int64]
    _living: NDArray[bool_]

    def __init__(
        self, rows: ColumnsOf, arrays: Mapping[str, NDArray[Any]], ids: NDArray[int64], living: NDArray[bool_]
    ) -> None:
        for name, value in (("_rows", rows), ("_arrays", arrays), ("_ids", ids), ("_living", living)):
            object.__setattr__(self, name, value)  # past the assignments to columns

    @property
    def id(self) -> NDArray[int64]:
        """The entity of each row, by its id; 0 where there is none. Read-only."""
        return self._ids

    @property
    def alive(self) -> NDArray[bool_]:
        """Which rows hold an entity. Read-only."""
        return self._living

    def __len__(self) -> int:
        """Return how many rows the arrays have; some may hold no entity."""
        return len(self._living)

    def __getattr__(self, name: str) -> NDArray[Any]:
        try:
            return self._arrays[name]
        except KeyError:
            raise self._rows.no_column(name) from None

    def __setattr__(self, name: str, value: ArrayLike) -> None:
        if name in ("id", "alive"):
            raise AttributeError(f"{name} is read-only: entities.add and entities.delete change it")
        into = getattr(self, name)
        if value is not into:  # which it is after `npcs.x += 1`
            self._rows.assign(name, into, value)
