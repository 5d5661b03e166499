import numpy as np
import pytest

from .fields import CELL, CELLS, cells_at, sampled, slopes
from .room import SHARES
from .school import School, pull_of
from .shared import SIZE

DT = 0.05
MIDDLE = SIZE / 2


class Water:
    """A school, and lights that swim in place as fast as `speeds` says."""

    def __init__(self, count: int, speeds: list[float]) -> None:
        random = np.random.default_rng(5)
        self.species = random.choice(len(SHARES), count, p=SHARES).astype(np.uint8)
        self.x, self.y = random.uniform(MIDDLE - 100, MIDDLE + 100, (2, count))
        self.school = School(self.species, random)
        there = np.full(len(speeds), MIDDLE)
        self.pull = pull_of(there, there, np.array(speeds), np.full(len(speeds), 100))

    def swim(self, ticks: int) -> None:
        for tick in range(ticks):
            self.school.look(self.x, self.y, self.pull, tick * DT)
            self.school.swim(self.x, self.y, DT)

    def near(self) -> int:
        """How many fish are near the lights."""
        return int((np.hypot(self.x - MIDDLE, self.y - MIDDLE) < 80).sum())


def test_a_still_light_draws_fish_and_a_fast_one_scares_them() -> None:
    calm, none, fast = Water(200, [0.0]), Water(200, []), Water(200, [150.0])
    for water in (calm, none, fast):
        water.swim(60)
    assert calm.near() > 1.3 * none.near()
    assert fast.near() < 0.6 * none.near()


def test_fish_stay_in_the_sea_and_swim_on() -> None:
    water = Water(300, [])
    water.x[:100], water.y[:100] = 0.0, SIZE
    before = water.x.copy()
    water.swim(40)
    for at in (water.x, water.y):
        assert at.min() >= 0
        assert at.max() <= SIZE
    assert np.abs(water.x - before).min() > 0


def test_fish_find_their_own_kind() -> None:
    water = Water(400, [])

    def alike() -> float:
        near = np.hypot(water.x[:, None] - water.x, water.y[:, None] - water.y) < 40
        np.fill_diagonal(near, False)
        return float((near & (water.species[:, None] == water.species)).sum() / near.sum())

    mixed = alike()
    water.swim(120)
    assert alike() > mixed + 0.1


def test_the_density_counts_every_fish_where_it_is() -> None:
    water = Water(300, [])
    water.school.look(water.x, water.y, water.pull, 0.0)
    assert water.school.density.sum() == 300
    row, column = int(water.y[0] / CELL), int(water.x[0] / CELL)
    assert water.school.density[row, column] >= 1
    assert cells_at(water.x, water.y)[0] == row * CELLS + column


@pytest.mark.parametrize(("x", "y"), [(300.0, 700.0), (CELL, SIZE - CELL)])
def test_between_cells_there_is_what_lies_between(x: float, y: float) -> None:
    rows, columns = np.mgrid[0:CELLS, 0:CELLS]
    stack = np.stack((columns.ravel() * CELL, rows.ravel() * CELL), axis=-1) + CELL / 2
    found = sampled(stack, np.zeros(1, np.intp), np.array([x]), np.array([y]))
    assert found[0] == pytest.approx([x, y])
    rising_x, rising_y = slopes(columns[None].astype(float))
    assert (rising_x[0, 5, 5], rising_y[0, 5, 5]) == (1, 0)


def test_no_light_pulls_at_nothing() -> None:
    none = np.zeros(0)
    assert not pull_of(none, none, none, none.astype(int)).any()
