"""Routers that follow rooms, and what each room's followers were told last."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from playhall_statestore.requests import News, RoomNews

__all__ = ["Watchers"]


class Watchers:
    """Who follows what. `status` gives a room's news as of now."""

    def __init__(self) -> None:
        self._rooms: dict[int, set[str]] = {}
        self._watchers: dict[str, set[int]] = {}
        self._told: dict[str, RoomNews] = {}

    def watch(self, watcher: int, uid: str, news: RoomNews) -> list[News]:
        """Follow a room. The answer comes even if the watcher followed it before; others hear what is new."""
        others = self.tell(news)
        self._watchers.setdefault(uid, set()).add(watcher)
        self._rooms.setdefault(watcher, set()).add(uid)
        self._told[uid] = news
        return [*(told for told in others if told.watcher != watcher), News(watcher, news)]

    def unwatch(self, watcher: int, uid: str) -> None:
        self._rooms.get(watcher, set()).discard(uid)
        watchers = self._watchers.get(uid)
        if watchers is not None:
            watchers.discard(watcher)
            if not watchers:
                del self._watchers[uid]
                self._told.pop(uid, None)

    def leave(self, watcher: int) -> None:
        for uid in list(self._rooms.get(watcher, ())):
            self.unwatch(watcher, uid)
        self._rooms.pop(watcher, None)

    def count(self, watcher: int) -> int:
        return len(self._rooms.get(watcher, ()))

    def tell(self, news: RoomNews) -> list[News]:
        """News for all who follow this room and were told otherwise."""
        if news.uid not in self._watchers or self._told.get(news.uid) == news:
            return []
        self._told[news.uid] = news
        return [News(watcher, news) for watcher in sorted(self._watchers[news.uid])]

    def refresh(self, uids: Iterable[str], status: Callable[[str], RoomNews]) -> list[News]:
        return [news for uid in uids if uid in self._watchers for news in self.tell(status(uid))]
