"""Grids over the sea, as NumPy arrays: what fish and bots look up instead of each other.

A grid has CELLS x CELLS cells, the row (y) first, flattened: a point's cell is `cells_at(x, y)`.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .shared import SIZE

__all__ = ["CELL", "CELLS", "Floats", "Ints", "blurred", "cells_at", "sampled", "slopes", "stencil", "summed"]

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]

CELLS = 80
CELL = SIZE / CELLS


def cells_at(x: Floats, y: Floats) -> Ints:
    """Return the cell of each point."""
    columns = np.clip((x / CELL).astype(np.intp), 0, CELLS - 1)
    rows = np.clip((y / CELL).astype(np.intp), 0, CELLS - 1)
    return rows * CELLS + columns


def summed(at: Ints, values: NDArray[Any], size: int) -> Floats:
    """Return for each of `size` places the sum of the values that are there."""
    return np.bincount(at, values, size).astype(np.float64, copy=False)


def blurred(grids: Floats) -> Floats:
    """Return grids (N x CELLS x CELLS) in which each cell is the mean of it and those around it."""
    padded = np.pad(grids, ((0, 0), (1, 1), (1, 1)), mode="edge")
    rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    mean: Floats = (rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]) / 9.0
    return mean


def slopes(grids: Floats) -> tuple[Floats, Floats]:
    """Return how grids of that shape rise along x and along y, a cell."""
    x, y = np.zeros_like(grids), np.zeros_like(grids)
    x[:, :, 1:-1] = (grids[:, :, 2:] - grids[:, :, :-2]) / 2
    y[:, 1:-1, :] = (grids[:, 2:, :] - grids[:, :-2, :]) / 2
    return x, y


def sampled(stack: NDArray[Any], layer: Ints, x: Floats, y: Floats) -> NDArray[Any]:
    """Return what is at each point, between the middles of the cells around it.

    `stack` has layers of CELLS * CELLS cells, one after the other, with some values each; `layer` says in
    which one to look for each point.
    """
    across = np.clip(x / CELL - 0.5, 0, CELLS - 1.001)
    down = np.clip(y / CELL - 0.5, 0, CELLS - 1.001)
    column, row = across.astype(np.intp), down.astype(np.intp)
    right, below = (across - column)[:, None], (down - row)[:, None]
    at = (layer * CELLS + row) * CELLS + column
    above = stack[at] * (1 - right) + stack[at + 1] * right
    under = stack[at + CELLS] * (1 - right) + stack[at + CELLS + 1] * right
    between: NDArray[Any] = above * (1 - below) + under * below
    return between


def stencil(x: Floats, y: Floats, radius: int) -> tuple[Ints, Floats, Floats, NDArray[np.bool_]]:
    """Return the cells up to `radius` cells around each point, one row a point.

    With each: the way from the point to the middle of the cell, along x and y; and whether it is in the sea.
    """
    steps = np.arange(-radius, radius + 1)
    beside, beyond = (part.ravel() for part in np.meshgrid(steps, steps))
    columns = (x / CELL).astype(np.intp)[:, None] + beside
    rows = (y / CELL).astype(np.intp)[:, None] + beyond
    inside = (columns >= 0) & (columns < CELLS) & (rows >= 0) & (rows < CELLS)
    cells = np.where(inside, rows * CELLS + columns, 0)
    return cells, (columns + 0.5) * CELL - x[:, None], (rows + 0.5) * CELL - y[:, None], inside
