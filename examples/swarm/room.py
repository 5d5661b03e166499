"""The rules of the game."""

import math
import random
from typing import Any

import numpy as np

from playhall.room import Connection, Entity, Limit, Message, Room, Wake, combine, grid, is_bot

from .bots import PACK_NAMES, Chart, Pack
from .fields import CELLS, blurred
from .lights import Lights
from .school import School, pull_of
from .shared import MAP_CELLS, NAME_LENGTH, SIGHT, SIZE, TICK_RATE, Fish, Leader, Light, Mine, Sea, schema

LEADERS = 8
JOIN_GLOW = 40
#: So far from another person one begins.
START_FAR = 130.0
#: What need not be done each tick is done once in so many.
LOOK_TICKS = 2
DRAIN_TICKS = 4
#: Of a hundred fish, so many are of each species.
SHARES = (0.55, 0.28, 0.15, 0.02)


class Diver(Connection):
    """A connection, with where its player's light is."""

    x: float = SIZE / 2
    y: float = SIZE / 2


def nearness(room: Room[Any, Any, Diver], conn: Diver, entity: Entity) -> float:
    """Lights first; of fish the nearest."""
    if isinstance(entity, Fish):
        return -((entity.x - conn.x) ** 2) - (entity.y - conn.y) ** 2
    return math.inf


class Swarm(Room[Sea, Mine, Diver]):
    schema = schema
    tick_rate = TICK_RATE
    max_players = 120
    bot_kinds = (Pack,)
    interest = combine(
        grid(cell_size=100, range=SIGHT, margin=25, around=Light),
        limit=Limit(600, priority=nearness, bytes_per_second=48_000),
    )
    #: How many fish a new sea has, and how many bots.
    fish_count = 5_000
    pack_count = 40
    #: How long after a start the lights of those who were here are kept, in seconds.
    return_s = 15

    def __init__(self) -> None:
        self.random = np.random.default_rng()
        self.missing_until: float | None = None

    def on_create(self) -> None:
        species = self.random.choice(len(SHARES), self.fish_count, p=SHARES)
        # Species begin together, so that there are schools from the start.
        homes = self.random.uniform(100, SIZE - 100, (24, 2))
        places = homes[(self.random.integers(0, 6, self.fish_count) * len(SHARES) + species) % len(homes)]
        places = np.clip(places + self.random.normal(0, 130, places.shape), 0, SIZE)
        for (x, y), kind in zip(places.tolist(), species.tolist(), strict=True):
            self.entities.add(Fish(x=x, y=y, species=kind))
        self._set_up()
        self._fill()
        self._tell_all(Lights(self.entities.columns(Light)))

    def on_wake(self, wake: Wake) -> None:
        self.missing_until = self.now() + self.return_s  # after a crash, people are on their way back
        self._set_up()

    def _set_up(self) -> None:
        self.school = School(self.entities.columns(Fish).species, self.random)
        self._look(Lights(self.entities.columns(Light)))

    def _fill(self) -> None:
        """Add the bots that are missing, as far as there are seats."""
        called = {self.presence[bot.player].name for bot in self.bots}
        for name in PACK_NAMES:
            if len(self.bots) >= min(self.pack_count, self.max_players - len(self.connections)):
                return
            if name not in called:
                pack = Pack(
                    hue=random.randrange(256), pace=random.uniform(0.35, 0.65), boldness=random.random()
                )
                self.bots.add(pack, name=name)

    # People

    def on_join(self, conn: Diver) -> None:
        x, y = self._start_of(conn)
        hue, name = random.randrange(256), self.presence[conn.player].name
        light = Light(x=x, y=y, glow=JOIN_GLOW, hue=hue, name=name[:NAME_LENGTH])
        light = self.entities.add(light, owner=conn.player, once=True)  # a crash leaves the old one here
        conn.x, conn.y = light.x, light.y

    def _start_of(self, conn: Diver) -> tuple[float, float]:
        """Return where a person begins: near somebody, so that friends find each other."""
        others = [other for other in self.connections.values() if other is not conn]
        if not others:
            return random.uniform(300, SIZE - 300), random.uniform(300, SIZE - 300)
        host, way = random.choice(others), random.uniform(0, 2 * math.pi)
        x, y = host.x + START_FAR * math.cos(way), host.y + START_FAR * math.sin(way)
        return min(max(x, 0.0), SIZE), min(max(y, 0.0), SIZE)

    def on_message(self, conn: Diver, message: Message) -> None:
        light = self.entities.first(Light, owner=conn.player)
        match message:
            case {"x": int() | float() as x, "y": int() | float() as y, "dash": bool(dash)} if (
                light and abs(x) <= 1 and abs(y) <= 1
            ):
                self.steer(light, x, y, dash=dash)
            case {"name": str(name)} if light:
                light.name = name.strip()[:NAME_LENGTH]
                self.presence.set(conn.player, name=light.name)
            case _:
                self.log.info("odd message from %s", conn.player)

    def steer(self, light: Light, x: float, y: float, *, dash: bool) -> None:
        """Have a light swim along x and y: 1 is as fast as it can, and more is no more."""
        length = max(1.0, math.hypot(x, y))
        light.aim_x, light.aim_y = x / length, y / length
        light.is_dashing = dash

    def on_leave(self, conn: Diver) -> None:
        for light in self.entities.all(Light, owner=conn.player):
            self.steer(light, 0, 0, dash=False)

    def on_player_leave(self, player: str) -> None:
        for light in self.entities.all(Light, owner=player):
            self.entities.delete(light)
        if not is_bot(player):  # a bot leaves for a person, who has its seat
            self._fill()

    # Time

    def on_tick(self, dt: float) -> None:
        fish, lights = self.entities.columns(Fish), Lights(self.entities.columns(Light))
        lights.swim(self.tick, dt)
        if self.tick % LOOK_TICKS == 0:
            self._look(lights)
        self.school.swim(fish.x, fish.y, dt)
        caught = lights.catch(fish.x, fish.y, fish.species, self.school)
        if self.tick % DRAIN_TICKS == 0:
            lights.drain()
        if self.tick % TICK_RATE == 0:
            lights.fade(self.random)
        lights.store()
        self._tell_people(lights, caught)
        if self.tick % TICK_RATE == 0:
            self._tell_all(lights)
        self._end_who_is_missing()

    def _tell_people(self, lights: Lights, caught: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        """Keep what each person's page and the interest want to know of their light."""
        row_of = {id: row for row, id in enumerate(lights.ids.tolist())}
        for conn in self.connections.values():
            light = self.entities.first(Light, owner=conn.player)
            if light is None:
                continue
            conn.x, conn.y = light.x, light.y
            mine, row = self.private(conn), row_of[light.id]
            mine.caught += int(caught[row])
            mine.best = max(mine.best, light.glow)
            if self.tick % TICK_RATE == 0 or mine.rank == 0:
                mine.rank = 1 + int((lights.glow > light.glow).sum())

    def _look(self, lights: Lights) -> None:
        """Have fish and bots learn where everything is."""
        fish, now = self.entities.columns(Fish), self.tick / TICK_RATE
        pull = pull_of(lights.x, lights.y, lights.speed, lights.glow)
        self.school.look(fish.x, fish.y, pull, now)
        self.chart = Chart(self.school.density, lights.x, lights.y, lights.glow.astype(np.float64))

    def _tell_all(self, lights: Lights) -> None:
        """Keep what everyone sees: the brightest, and the map."""
        leaders = []
        for row in np.argsort(-lights.glow, kind="stable")[:LEADERS].tolist():
            light = self.entities.get(Light, int(lights.ids[row]))
            assert light is not None  # it was there a moment ago, in the columns
            x, y = round(light.x), round(light.y)
            leaders.append(Leader(id=light.id, name=light.name, glow=light.glow, hue=light.hue, x=x, y=y))
        step = CELLS // MAP_CELLS
        crowds = (
            blurred(self.school.density[None])[0].reshape(MAP_CELLS, step, MAP_CELLS, step).sum(axis=(1, 3))
        )
        self.state.leaders, self.state.lights = leaders, len(lights.rows)
        self.state.map = np.minimum(crowds * 8, 255).astype(np.uint8).tobytes()

    def _end_who_is_missing(self) -> None:
        if self.missing_until is None or self.now() < self.missing_until:
            return
        self.missing_until = None
        for player in {light.owner for light in self.entities.all(Light)}:
            if player is not None and player not in self.presence:
                self.on_player_leave(player)  # did not come back: no hook tells of it
