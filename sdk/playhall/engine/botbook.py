"""The bots of one room: they take seats and are in presence like people, without a connection.

Bots are saved, with their names and statuses; presence is not. So after a wake they are put into presence
again, before on_wake, and started after it. A saved bot that cannot be again (its class is gone from
`bot_kinds`, its data lacks a field, its seat is gone) is dropped with a line in the log: on_player_leave runs
for it after on_wake, so that what it left behind is cleaned up as for any player.

Their data is looked at once a flush (`check`): fields may be changed in place, so nothing else would see it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from playhall.engine.bots import BOT_PREFIX, Bot, BotDataError, bot_data, check_input, revive
from playhall.engine.connection import JsonOut
from playhall.engine.faults import error_text, traceback_text
from playhall.engine.fields import JsonValue
from playhall.engine.outputs import LogOut
from playhall.engine.presence import check_name, check_status
from playhall.engine.room import Room
from playhall.engine.runtime import Runtime
from playhall.engine.statelog import BotsChange, SavedBot

__all__ = ["MAX_BOTS", "BotBook"]

MAX_BOTS = 64


class BotBook:
    """The bots of one room, in the order they were added.

    `people` is how many people have a seat; `make_space` takes out of presence whoever has been gone longest.
    """

    __slots__ = (
        "_bots",
        "_data",
        "_dropped",
        "_kinds",
        "_make_space",
        "_max_players",
        "_next_number",
        "_next_written",
        "_people",
        "_room",
        "_runtime",
        "_unstarted",
        "_written",
        "by_player",
    )

    def __init__(
        self,
        runtime: Runtime,
        room: Room[Any, Any, Any],
        max_players: int,
        *,
        people: Callable[[], int],
        make_space: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._room = room
        self._kinds: dict[str, type[Bot]] = {kind.kind: kind for kind in room.bot_kinds}
        self._max_players = max_players
        self._people = people
        self._make_space = make_space
        self._bots: dict[str, Bot] = {}
        self.by_player: Mapping[str, Bot] = self._bots
        self._data: dict[str, bytes] = {}
        self._written: dict[str, SavedBot] = {}
        self._next_number = self._next_written = 1
        # After a wake: who is to be started, and who could not be again.
        self._unstarted: list[Bot] = []
        self._dropped: list[str] = []

    def __len__(self) -> int:
        return len(self._bots)

    def __contains__(self, player: object) -> bool:
        """Whether a player is one of the bots."""
        return player in self._bots

    def __iter__(self) -> Iterator[Bot]:
        return iter(list(self._bots.values()))

    # Room code

    def add(self, bot: Bot, name: str, status: JsonOut) -> None:
        """Give a bot a seat and start it. Raises TypeError or ValueError, and changes nothing then."""
        self._check_new(bot)
        data = bot_data(bot)
        check_name(name)
        stored_status = check_status(status)
        crowded = self._runtime.presence.overflow() is not None
        player = f"{BOT_PREFIX}{self._next_number}"
        self._next_number += 1
        self._seat(player, bot, data)
        self._note(player, None)
        self._runtime.presence.connect(player, name, stored_status)
        if crowded:
            # Now that the bot is in: on_player_leave of whoever goes may add and remove bots itself.
            self._make_space()
        if self._holds(bot):
            self._start(bot)

    def remove(self, bot: Bot) -> None:
        """End a bot: its presence, then on_player_leave. Raises ValueError where it is not in the room."""
        player = bot._player
        if player is None or self._bots.get(player) is not bot:
            raise ValueError(f"{bot!r} is not in the room")
        del self._bots[player], self._data[player]
        if player in self._runtime.presence:
            self._runtime.presence.remove(player)
        self._note(player, self._runtime.now.wall)
        self._run_on_player_leave(player)

    def give_up_seat(self) -> None:
        """Remove the bot added last, for a person who joins a full room."""
        self.remove(self._bots[next(reversed(self._bots))])

    # The room's life

    def restore(self, bots: Sequence[SavedBot], next_number: int) -> None:
        """Put saved bots back, into presence too."""
        self._next_number = self._next_written = next_number
        for saved in bots:
            # Whoever is not put back differs from what was written, and is taken out by the next record.
            self._written[saved.player] = saved
            cls = self._kinds.get(saved.kind)
            if cls is None:
                self._drop(saved, f"bot_kinds has no {saved.kind!r} any more")
            elif len(self._bots) >= min(MAX_BOTS, self._max_players):
                self._drop(saved, f"the room has {self._max_players} seats now")
            else:
                self._put_back(cls, saved)

    def start(self) -> None:
        """Start what was restored: on_wake is done."""
        for player in self._dropped:
            self._run_on_player_leave(player)
        for bot in self._unstarted:
            if self._holds(bot):
                self._start(bot)
        self._dropped, self._unstarted = [], []

    def tick(self) -> None:
        """Run each bot's tick. One added meanwhile has its first with the next tick."""
        if self._bots:
            self._runtime.run("bots", self._tick_all)

    # Saving

    def check(self) -> None:
        """Remove every bot whose fields cannot be saved any more. To be called before a flush."""
        for bot in self:
            if self._holds(bot):
                try:
                    self._data[bot.player] = bot_data(bot)
                except BotDataError as error:
                    self._fail(bot, "data", error)

    @property
    def dirty(self) -> bool:
        """Whether there is something to save, or a bot to be removed by `check`."""
        try:
            self._data.update({player: bot_data(bot) for player, bot in self._bots.items()})
        except BotDataError:
            return True
        return self._changed

    @property
    def idle(self) -> bool:
        """Whether there are none, and none were: then nothing has changed."""
        return not self._bots and not self._written and self._next_number == self._next_written

    @property
    def _changed(self) -> bool:
        return self._next_number != self._next_written or self._saved() != self._written

    def take_changed(self) -> BotsChange | None:
        """Return what is to be written since the last call, as of the last `check`."""
        if not self._changed:
            return None
        now, before = self._saved(), self._written
        self._written, self._next_written = now, self._next_number
        return BotsChange(
            self._next_number,
            [player for player in before if player not in now],
            [saved for player, saved in now.items() if before.get(player) != saved],
        )

    def all(self) -> BotsChange:
        """Return all of it, for a base, as of the last `check`."""
        return BotsChange(self._next_number, [], list(self._saved().values()))

    def _saved(self) -> dict[str, SavedBot]:
        presence = self._runtime.presence
        return {
            player: SavedBot(player, bot.kind, *presence.stored(player), self._data[player])
            for player, bot in self._bots.items()
        }

    # Parts

    def _check_new(self, bot: Bot) -> None:
        if not isinstance(bot, Bot):
            raise TypeError(f"a bot is an instance of a Bot, not {type(bot).__name__}")
        if self._kinds.get(bot.kind) is not type(bot):
            raise TypeError(
                f"{type(bot).__name__} is not one of {type(self._room).__name__}.bot_kinds: name it there"
            )
        if bot._player is not None:
            raise ValueError(f"{bot!r} was added before; make a new one")
        check_input(bot, bot._input, self._runtime.schema.input)
        if len(self._bots) >= MAX_BOTS:
            raise ValueError(f"there are {MAX_BOTS} bots already, the most a room has")
        if self._people() + len(self._bots) >= self._max_players:
            raise ValueError(f"all {self._max_players} seats are taken, so there is none for a bot")

    def _seat(self, player: str, bot: Bot, data: bytes) -> None:
        bot._player, bot._input_class = player, self._runtime.schema.input
        self._bots[player], self._data[player] = bot, data

    def _put_back(self, cls: type[Bot], saved: SavedBot) -> None:
        try:
            bot, status = revive(cls, saved.data), JsonValue.parse(saved.status)
            check_name(saved.name)
        except ValueError as error:
            self._drop(saved, str(error))
            return
        self._seat(saved.player, bot, saved.data)
        self._runtime.presence.connect(saved.player, saved.name, status)
        self._unstarted.append(bot)

    def _drop(self, saved: SavedBot, reason: str) -> None:
        fields = {"bot": saved.player, "kind": saved.kind, "reason": reason}
        self._runtime.emit(LogOut("error", "room.bot_dropped", fields))
        self._dropped.append(saved.player)
        self._note(saved.player, self._runtime.now.wall)

    def _note(self, player: str, wall: float | None) -> None:
        """Note for how long a bot's private state, if it has any, is kept: while it is here, and a while."""
        if self._runtime.store.has_private(player):
            self._runtime.retention.note(player, wall)

    def _holds(self, bot: Bot) -> bool:
        return bot._player is not None and self._bots.get(bot._player) is bot

    def _tick_all(self) -> None:
        for bot in self:
            if self._holds(bot):
                self._call(bot, "tick")

    def _start(self, bot: Bot) -> None:
        self._runtime.run("bots", lambda: self._call(bot, "start"))

    def _call(self, bot: Bot, method: str) -> None:
        """Call a method of a bot; what it raises ends that bot alone."""
        try:
            _call_sync(bot, method, self._room)
        except (KeyboardInterrupt, GeneratorExit):
            raise  # these end whoever runs the room, and are not the bot's
        except BaseException as error:
            self._fail(bot, method, error)

    def _fail(self, bot: Bot, what: str, error: BaseException) -> None:
        """Remove a bot whose code or data failed, and say so."""
        fields = {"bot": bot.player, "kind": bot.kind, "what": what, "error": error_text(error)}
        self._runtime.emit(LogOut("error", "room.bot_removed", fields, traceback_text(error)))
        if self._holds(bot):
            self.remove(bot)

    def _run_on_player_leave(self, player: str) -> None:
        self._runtime.run("on_player_leave", lambda: self._room.on_player_leave(player))


def _call_sync(bot: Bot, method: str, room: Room[Any, Any, Any]) -> None:
    """Call a method that must be done when it returns. Raises TypeError where it is not."""
    returned = getattr(bot, method)(room)
    if inspect.iscoroutine(returned):
        returned.close()
    if returned is not None:
        raise TypeError(
            f"{type(bot).__name__}.{method} must be done when it returns, and return nothing, "
            f"not {type(returned).__name__}"
        )
