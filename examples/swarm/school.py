"""How fish swim: all of them at once, by arrays, and no fish looks at another.

What a fish knows of its school is on grids: where its species is, which way it goes, what lights do there. A
slow light draws fish, which circle it; a fast one scares them.
"""

import math

import numpy as np
from numpy.typing import NDArray

from .fields import CELL, CELLS, Floats, Ints, blurred, cells_at, sampled, slopes, stencil, summed
from .shared import REACH, REACH_PER_ROOT, SIZE

__all__ = ["School", "reaches"]

SPECIES = 4
#: Units a second, by species: drifting along, and at most.
CRUISE = np.array([26.0, 34.0, 30.0, 48.0])
FASTEST = np.array([78.0, 92.0, 84.0, 118.0])
#: How fish weigh what they know.
ALIGN = 2.2
GATHER = 40.0
SPREAD = 16.0
CROWD = 2.5
DRIFT = 30.0
NOISE = 22.0
CALMING = 1.6
#: A light is slow below this, units a second, and scares all the more above it.
CALM = 45.0
DRAWN_CELLS = 5
#: Nearer to the edge of the sea than this, fish turn.
EDGE = 45.0


def reaches(glow: NDArray[np.generic]) -> Floats:
    """Return how far lights of some glow take in what swims there."""
    return REACH + REACH_PER_ROOT * np.sqrt(glow.astype(np.float64))


class School:
    """The minds of the fish: their velocities, which are nobody's business and gone when the room stops.

    The first `look` comes before the first `swim`. `density` says how many fish the last one saw in a cell.
    """

    def __init__(self, species: NDArray[np.uint8], random: np.random.Generator) -> None:
        self._random = random
        self._species: Ints = np.minimum(species, SPECIES - 1).astype(np.intp)
        headings = random.uniform(0, 2 * math.pi, len(species))
        self._v = CRUISE[self._species, None] * np.column_stack((np.cos(headings), np.sin(headings)))
        self.density: Floats = np.zeros((CELLS, CELLS))
        rows, columns = np.mgrid[0:CELLS, 0:CELLS] / CELLS
        self._across, self._down = columns * 2 * math.pi, rows * 2 * math.pi
        self._drift, self._drift_until = (self.density, self.density), -math.inf

    @property
    def size(self) -> int:
        return len(self._species)

    def look(self, x: Floats, y: Floats, pull: Floats, now: float) -> None:
        """Learn what is where. `pull` is what `pull_of` made of the lights."""
        self._known = self._learnt(x, y, pull, now)

    def swim(self, x: Floats, y: Floats, dt: float) -> None:
        """Move all fish in place, by what the last `look` found."""
        velocity, cruise = self._v, CRUISE[self._species]
        known = sampled(self._known, self._species, x, y)
        velocity += dt * (ALIGN * (known[:, :2] - velocity) + known[:, 2:])
        velocity += self._random.normal(0.0, NOISE * math.sqrt(dt), velocity.shape)
        self._turn_at_edges(x, y, dt)
        speed = np.hypot(velocity[:, 0], velocity[:, 1]) + 1e-9
        wanted = np.clip(speed + (cruise - speed) * CALMING * dt, cruise * 0.6, FASTEST[self._species])
        velocity *= (wanted / speed)[:, None]
        x += velocity[:, 0] * dt
        y += velocity[:, 1] * dt
        np.clip(x, 0, SIZE, out=x)
        np.clip(y, 0, SIZE, out=y)

    def scatter(self, x: Floats, y: Floats, which: Ints) -> None:
        """Begin some fish anew, anywhere."""
        x[which], y[which] = self._random.uniform(EDGE, SIZE - EDGE, (2, len(which)))

    def _learnt(self, x: Floats, y: Floats, pull: Floats, now: float) -> Floats:
        """Return what there is to know, by species and cell: the way of the school, and where to turn."""
        layers = SPECIES * CELLS * CELLS
        at = self._species * CELLS * CELLS + cells_at(x, y)
        count: Floats = np.bincount(at, minlength=layers).reshape(SPECIES, CELLS, CELLS).astype(np.float64)
        self.density = count.sum(axis=0)
        near = blurred(count)
        ways = [
            blurred(summed(at, self._v[:, axis], layers).reshape(SPECIES, CELLS, CELLS)) / (near + 0.05)
            for axis in (0, 1)
        ]
        wide = blurred(blurred(near))
        to_own = slopes(np.sqrt(wide))
        from_all = slopes(np.maximum(blurred(self.density[None]) - CROWD, 0.0))
        drift = self._current(now)
        turns = [
            GATHER * to_own[axis] - SPREAD * from_all[axis] + DRIFT * drift[axis] + pull[axis]
            for axis in (0, 1)
        ]
        return np.stack((*ways, *turns), axis=-1).reshape(layers, 4)

    def _current(self, now: float) -> tuple[Floats, Floats]:
        """Return a slow current for each species: whirls that wander. Made anew once a second."""
        if now >= self._drift_until:
            phase = np.arange(SPECIES)[:, None, None] * 1.7
            a, b, t = self._across, self._down, now * 0.11
            x = np.sin(2 * b + t + phase) + 0.6 * np.cos(3 * b - 1.3 * t + a)
            y = np.sin(2 * a - t - phase) + 0.6 * np.cos(3 * a + 1.1 * t - b)
            self._drift, self._drift_until = (x, y), now + 1.0
        return self._drift

    def _turn_at_edges(self, x: Floats, y: Floats, dt: float) -> None:
        for axis, at in enumerate((x, y)):
            inward = np.maximum(EDGE - at, 0) - np.maximum(at - (SIZE - EDGE), 0)
            self._v[:, axis] += inward * (9.0 * dt)


def pull_of(x: Floats, y: Floats, speed: Floats, glow: NDArray[np.generic]) -> Floats:
    """Return what lights do to fish in each cell: 2 x CELLS x CELLS accelerations, along x and y."""
    cells, to_x, to_y, inside = stencil(x, y, DRAWN_CELLS)
    far = np.hypot(to_x, to_y) + 1e-6
    reach = reaches(glow)[:, None]
    fear = np.clip(speed / CALM - 0.6, 0.0, 2.0)[:, None]
    calm = np.clip(1.0 - speed / CALM, 0.0, 1.0)[:, None]
    scared = fear * 150.0 * np.clip(1.0 - far / (reach * 1.6 + 40.0), 0.0, 1.0)
    drawn = calm * 120.0 * np.clip(1.0 - far / (DRAWN_CELLS * CELL), 0.0, 1.0)
    # They come no nearer than a little outside of its reach, and circle there.
    inward = np.clip((far - reach * 1.6) / (reach * 0.5), -1.0, 1.0)
    along, around = scared - drawn * inward, drawn * 0.8
    strength = inside / far
    parts = ((along * to_x - around * to_y) * strength, (along * to_y + around * to_x) * strength)
    flat = cells.ravel()
    pulls = [summed(flat, part.ravel(), CELLS * CELLS).reshape(CELLS, CELLS) for part in parts]
    return np.stack(pulls)
