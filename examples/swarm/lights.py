"""What lights do, all at once: swim, catch fish, fade, and lose glow to brighter ones that they touch."""

import numpy as np
from numpy.typing import NDArray

from playhall.room import Columns

from .fields import CELLS, Floats, Ints, cells_at, stencil, summed
from .school import School, reaches
from .shared import AGILITY, DASH, LEAST_GLOW, MOST_GLOW, SIZE, SPEED, WORTHS

__all__ = ["Lights"]

#: The brightest are so much slower.
WEIGHT = 0.25
#: Of the glow above the least there is, so much fades in a second.
FADE = 0.02
#: A dash takes one of glow every so many ticks.
DASH_TICKS = 3
#: A brighter light that is touched takes so much at a time.
DRAIN = 4
#: A light that is so many times as bright takes glow.
BRIGHTER = 1.2
REACH_CELLS = 3


class Lights:
    """The lights there are now, out of their columns. What is set here is in the columns after `store`."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.rows: Ints = np.flatnonzero(columns.alive)
        self.ids = columns.id[self.rows]
        self.x: Floats = columns.x[self.rows]
        self.y: Floats = columns.y[self.rows]
        self.vx: Floats = columns.vx[self.rows].astype(np.float64)
        self.vy: Floats = columns.vy[self.rows].astype(np.float64)
        self.glow: NDArray[np.int64] = columns.glow[self.rows].astype(np.int64)
        self.is_dashing: NDArray[np.bool_] = columns.is_dashing[self.rows]

    @property
    def speed(self) -> Floats:
        return np.hypot(self.vx, self.vy)

    def store(self) -> None:
        """Write all back."""
        columns, rows = self._columns, self.rows
        columns.x[rows], columns.y[rows] = self.x, self.y
        columns.vx[rows], columns.vy[rows] = self.vx, self.vy
        columns.glow[rows], columns.is_dashing[rows] = self.glow, self.is_dashing

    def swim(self, tick: int, dt: float) -> None:
        """Go where they are steered to."""
        self.is_dashing &= self.glow > LEAST_GLOW
        if tick % DASH_TICKS == 0:
            self.glow -= self.is_dashing
        speed = (
            SPEED * (1 - WEIGHT * np.minimum(1.0, self.glow / 1_500)) * np.where(self.is_dashing, DASH, 1.0)
        )
        share = min(1.0, AGILITY * dt)
        self.vx += (self._columns.aim_x[self.rows] * speed - self.vx) * share
        self.vy += (self._columns.aim_y[self.rows] * speed - self.vy) * share
        still = np.hypot(self.vx, self.vy) < 0.5
        self.vx[still] = self.vy[still] = 0.0
        self.x = np.clip(self.x + self.vx * dt, 0, SIZE)
        self.y = np.clip(self.y + self.vy * dt, 0, SIZE)

    def catch(self, x: Floats, y: Floats, species: Ints, school: School) -> NDArray[np.int64]:
        """Take in the fish within reach, which begin anew elsewhere. Returns how many each light caught."""
        at = self._rulers()[cells_at(x, y)]
        seen = np.flatnonzero(at >= 0)
        light = at[seen]
        far = np.hypot(x[seen] - self.x[light], y[seen] - self.y[light])
        near = far < reaches(self.glow)[light]
        caught, by = seen[near], light[near]
        worth = np.array(WORTHS)[species[caught]]
        self.glow += summed(by, worth, len(self.rows)).astype(np.int64)
        np.minimum(self.glow, MOST_GLOW, out=self.glow)
        school.scatter(x, y, caught)
        return np.bincount(by, minlength=len(self.rows))

    def _rulers(self) -> Ints:
        """Return the light whose fish are in each cell, the brightest of those near it; -1 where none is."""
        order = np.argsort(self.glow, kind="stable")
        cells, to_x, to_y, inside = stencil(self.x[order], self.y[order], REACH_CELLS)
        near = inside & (np.hypot(to_x, to_y) < reaches(self.glow[order])[:, None] + 20)
        rulers: Ints = np.full(CELLS * CELLS, -1, np.intp)
        rulers[cells[near]] = np.broadcast_to(order[:, None], cells.shape)[near]  # the last one stays
        return rulers

    def drain(self) -> None:
        """Brighter lights take glow from those they touch."""
        far = np.hypot(self.x[:, None] - self.x, self.y[:, None] - self.y)
        touching = far < reaches(self.glow)[:, None]
        takes = touching & (self.glow[:, None] > BRIGHTER * self.glow) & (self.glow > LEAST_GLOW)
        # Of many that take at once, the brightest gets it.
        taker = np.where(takes, self.glow[:, None], 0).argmax(axis=0)
        robbed = np.flatnonzero(takes.any(axis=0))
        taken = np.minimum(DRAIN, self.glow[robbed] - LEAST_GLOW)
        self.glow[robbed] -= taken
        self.glow += summed(taker[robbed], taken, len(self.rows)).astype(np.int64)
        np.minimum(self.glow, MOST_GLOW, out=self.glow)

    def fade(self, random: np.random.Generator) -> None:
        """Lose what a second takes."""
        lost = FADE * (self.glow - LEAST_GLOW)
        self.glow -= np.floor(lost + random.random(len(lost))).astype(np.int64)
        np.maximum(self.glow, LEAST_GLOW, out=self.glow)
