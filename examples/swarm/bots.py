"""The bots: each leads a pack of lights, which it steers as people steer theirs."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import numpy as np

from playhall.room import Bot

from .fields import CELLS, Floats, blurred
from .shared import SIZE, Light

if TYPE_CHECKING:
    from .room import Swarm

__all__ = ["PACK_NAMES", "PACK_SIZE", "Chart", "Pack"]

#: A room has at most 64 bots, and the sea has space for more lights: so each bot has some.
PACK_SIZE = 5
#: Each pack thinks once in so many ticks.
THINK_TICKS = 8
PACK_NAMES = (
    "Abyss", "Amber", "Argo", "Aurora", "Beryl", "Bruma", "Calypso", "Ceto", "Cinder", "Coral",
    "Delphin", "Doris", "Echo", "Ember", "Fathom", "Galene", "Halcyon", "Ianthe", "Kelpie", "Kraken",
    "Limnad", "Lorelei", "Lumen", "Maelstrom", "Marina", "Melusine", "Merrow", "Naiad", "Nereid", "Nixie",
    "Oceanus", "Pearl", "Proteus", "Rusalka", "Selkie", "Siren", "Tethys", "Thetis", "Triton", "Undine",
)  # fmt: skip
NUMERALS = ("I", "II", "III", "IV", "V")

#: Cells of the chart, twice as large as those of the fish.
CHART = CELLS // 2
CHART_CELL = SIZE / CHART
LOOK = 3
#: How much a bot minds other lights where it goes.
COMPANY = 5.0


class Chart:
    """What bots know of the sea: what each cell has of fish and lights, and how bright the brightest is."""

    def __init__(self, density: Floats, x: Floats, y: Floats, glow: Floats) -> None:
        coarse = density.reshape(CHART, 2, CHART, 2).sum(axis=(1, 3))
        lights = np.zeros((CHART, CHART))
        np.add.at(lights, (self._cell(y), self._cell(x)), 1.0)
        scent = np.log1p(blurred(coarse[None])[0]) - COMPANY * blurred(lights[None])[0]
        self._scent = np.pad(scent, LOOK, constant_values=-9.0)  # nobody wants to leave the sea
        menace = np.zeros((CHART, CHART))
        np.maximum.at(menace, (self._cell(y), self._cell(x)), glow)
        self._menace = np.pad(menace, LOOK)

    @staticmethod
    def _cell(at: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
        return np.clip((at / CHART_CELL).astype(np.intp), 0, CHART - 1)

    def best_way(self, x: float, y: float, glow: int, boldness: float) -> tuple[float, float, float]:
        """Return the way to the best cell near a light, and how much better it is there than here."""
        row, column = min(int(y / CHART_CELL), CHART - 1), min(int(x / CHART_CELL), CHART - 1)
        around = slice(row, row + 2 * LOOK + 1), slice(column, column + 2 * LOOK + 1)
        worth = self._scent[around] - (self._menace[around] > glow * 1.2) * (1.6 - boldness) - _FAR
        best = int(worth.argmax())
        to_x = (column + best % _WIDTH - LOOK + 0.5) * CHART_CELL - x
        to_y = (row + best // _WIDTH - LOOK + 0.5) * CHART_CELL - y
        return to_x, to_y, float(worth.flat[best] - worth[LOOK, LOOK])


_WIDTH = 2 * LOOK + 1
_FAR = 0.12 * np.hypot(*np.mgrid[-LOOK : LOOK + 1, -LOOK : LOOK + 1])


class Pack(Bot):
    """A few lights of one hue. Its fields are saved: a wake finds it as it was."""

    hue: int = 0
    pace: float = 0.5
    """How hard it swims, up to 1."""
    boldness: float = 0.5
    """How little it minds brighter lights, up to 1."""

    def start(self, room: Swarm) -> None:
        names = {light.name for light in room.entities.all(Light, owner=self.player)}
        called = room.presence[self.player].name
        for numeral in NUMERALS[:PACK_SIZE]:
            name = f"{called} {numeral}"
            if name not in names:
                x, y = random.uniform(60, SIZE - 60), random.uniform(60, SIZE - 60)
                room.entities.add(Light(x=x, y=y, hue=self.hue, name=name), owner=self.player)

    def tick(self, room: Swarm) -> None:
        number = int(self.player.partition(":")[2])
        if room.tick % THINK_TICKS != number % THINK_TICKS:
            return
        for place, light in enumerate(room.entities.all(Light, owner=self.player)):
            mood = (room.tick // (THINK_TICKS * 3) + 5 * number + 3 * place) % 9
            self._steer(room, light, mood)

    def _steer(self, room: Swarm, light: Light, mood: int) -> None:
        """Cruise towards fish; now and then lie still so that they come near, and dash into them."""
        to_x, to_y, gain = room.chart.best_way(light.x, light.y, light.glow, self.boldness)
        far = math.hypot(to_x, to_y) or 1.0
        turn = random.gauss(0, 0.35)
        way_x = (to_x * math.cos(turn) - to_y * math.sin(turn)) / far
        way_y = (to_x * math.sin(turn) + to_y * math.cos(turn)) / far
        is_patient = mood in (0, 1) and gain < 0.4
        pace = 0.12 if is_patient else self.pace
        room.steer(light, way_x * pace, way_y * pace, dash=mood == 2 and light.glow > 60)
