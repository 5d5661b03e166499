"""What a room is made of at this moment, as JSON: what the inspector of `playhall dev` shows.

Looking changes nothing. Hidden entities and every player's private state are in it, so it is for the room's
author alone. A room may be far larger than a page, so lists end after so many things or bytes: `entities`
says how many there are, and where to go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from playhall.engine.bans import Bans
from playhall.engine.botbook import BotBook
from playhall.engine.connections import Connections
from playhall.engine.kinds import Entity, spec_of, stored_values
from playhall.engine.links import Link, LinkState
from playhall.engine.pace import measure
from playhall.engine.profile import KEPT_S, WHOLE, Profile, Times
from playhall.engine.room import Room
from playhall.engine.runtime import Runtime
from playhall.engine.showing import listed, show_content, show_field, show_json
from playhall.engine.specs import KindSpec
from playhall.engine.statelog import SavedBot

__all__ = ["FIRST_PAGE", "MAX_PAGE", "Page", "inspect_room", "show_bans", "show_bots", "summarise"]

MAX_PAGE = 500
_MAX_PAGE_BYTES = 512 * 1024
_MAX_PRIVATES = 200
_MAX_LIST = 1_024
_MAX_LIST_BYTES = 256 * 1024
_US = 1e6
_MAKING = frozenset({"__new__", "__init__"})
_HOOKS = frozenset(name for name in vars(Room) if name.startswith("on_")) | {"sees_presence"}


@dataclass(frozen=True, slots=True)
class Page:
    """Which entities to show: all, or those of a kind, of an owner (empty: of the room) or of an id."""

    kind: str | None = None
    owner: str | None = None
    id: int | None = None
    offset: int = 0
    limit: int = 100


FIRST_PAGE = Page()


def inspect_room(
    runtime: Runtime, connections: Connections | None, room_class: type[Any], page: Page
) -> dict[str, Any]:
    """Return all that is to be seen of a room, but for what its RoomCore alone knows."""
    recorder, profile = runtime.recorder, runtime.profile
    links = [] if connections is None else connections.links
    return {
        "bots": [],
        "bans": {"total": 0, "items": []},
        "connections": _short_list(links, lambda link: _show_link(link, runtime.now.mono)),
        "presence": _short_list(runtime.presence, lambda player: _show_presence(runtime, player)),
        "kinds": _show_kinds(runtime),
        "state": None if runtime.store.state is None else _show_fields(runtime.store.state),
        "private": _show_privates(runtime),
        "entities": _show_entities(runtime, page),
        "messages": [] if recorder is None else recorder.messages(),
        "log": [] if recorder is None else recorder.lines(),
        **_show_profile(profile, room_class),
    }


def summarise(runtime: Runtime, tick_rate: int) -> dict[str, Any]:
    """Return who the room is, how far it has come, and whether it keeps its tick rate."""
    identity = runtime.identity
    return {
        "project": identity.project,
        "id": identity.room_id,
        "uid": identity.room_uid,
        "type": identity.room_type,
        "join_code": identity.join_code,
        "generation": runtime.generation,
        "version": runtime.version,
        "tick": runtime.tick,
        "now": runtime.now.wall,
        "entity_count": len(runtime.store),
        "hooks_waiting": len(runtime.hooks),
        "last_tick": _last_tick(runtime.profile),
        **_show_pace(runtime.profile, tick_rate),
    }


def _last_tick(profile: Profile | None) -> dict[str, Any] | None:
    """How long ticks took in the last second that had any."""
    seconds = [] if profile is None else profile.seconds()
    ticks = next((rows[WHOLE] for _, rows in reversed(seconds) if WHOLE in rows), None)
    return None if ticks is None else _show_times(ticks)


def _show_pace(profile: Profile | None, tick_rate: int) -> dict[str, Any]:
    """Ticks a second, and what is slow: None each where that is not known, or nothing is."""
    pace = None if profile is None else measure(profile, tick_rate)
    if pace is None:
        return {"ticks_per_s": None, "slow": None}
    slow = None if pace.slow is None else {"row": pace.slow.row, "takes_us": round(pace.slow.takes * _US, 1)}
    return {"ticks_per_s": pace.ticks, "slow": slow}


def show_bots(bots: BotBook) -> list[Any]:
    """Return the bots, as they were saved last."""
    return _short_list(bots.all().bots, _show_bot)


def _show_bot(bot: SavedBot) -> dict[str, Any]:
    return {
        "player": bot.player,
        "kind": bot.kind,
        "name": bot.name,
        "status": show_json(bot.status),
        "fields": show_json(bot.data),
    }


def show_bans(bans: Bans) -> dict[str, Any]:
    """Return who is banned."""
    players = bans.all().added
    return {"total": len(players), "items": players[:_MAX_LIST]}


def _short_list(things: Iterable[Any], show: Any) -> list[Any]:
    return listed(things, show, most=_MAX_LIST, most_bytes=_MAX_LIST_BYTES)


def _show_link(link: Link, mono: float) -> dict[str, Any]:
    conn, outbox = link.conn, link.outbox
    stalled = outbox.stalled_since
    return {
        "id": "" if conn is None else conn.id,
        "player": link.player,
        "joined": link.state is LinkState.JOINED,
        "meta": None if conn is None else show_content(conn.meta),
        "connected_at_ms": link.connected_at_ms,
        "client_tick": None if conn is None else conn.client_tick,
        "credit": outbox.credit_left,
        "held": outbox.held,
        "waiting_bytes": outbox.waiting_bytes,
        "stalled_s": None if stalled is None else round(mono - stalled, 3),
        "version": link.view.version,
        "sees": link.view.count,
    }


def _show_presence(runtime: Runtime, player: str) -> dict[str, Any]:
    entry = runtime.presence.get(player)
    return {
        "player": player,
        "name": entry.name,
        "status": show_content(entry.status),
        "connected": entry.connected,
    }


def _show_kinds(runtime: Runtime) -> list[dict[str, Any]]:
    store = runtime.store
    return [
        {
            "name": spec_of(kind).name,
            "hidden": spec_of(kind).hidden,
            "count": sum(1 for _ in store.of_kind(kind)),
            "most": spec_of(kind).max,
            "fields": _show_specs(spec_of(kind)),
        }
        for kind in runtime.schema.entities
    ]


def _show_specs(spec: KindSpec) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name,
            "type": field.type.name,
            "writable": field.writable,
            "owner_only": field.owner_only,
        }
        for field in spec.fields
    ]


def _show_fields(entity: Entity) -> dict[str, Any]:
    fields = zip(spec_of(entity).fields, stored_values(entity), strict=True)
    return {field.name: show_field(field.type, stored) for field, stored in fields}


def _show_privates(runtime: Runtime) -> dict[str, Any]:
    players = runtime.store.private_players()

    def show(player: str) -> dict[str, Any]:
        return {"player": player, "fields": _show_fields(runtime.store.private(player))}  # type: ignore[arg-type]

    items = listed(players, show, most=_MAX_PRIVATES, most_bytes=_MAX_LIST_BYTES)
    return {"total": len(players), "items": items}


def _show_entities(runtime: Runtime, page: Page) -> dict[str, Any]:
    found, total = _find(runtime, page)
    offset = max(0, page.offset)
    limit = min(max(1, page.limit), MAX_PAGE)
    window = islice(found, offset, offset + limit)
    items = listed(window, _show_entity, most=limit, most_bytes=_MAX_PAGE_BYTES)
    end = offset + len(items)
    return {
        "total": total,
        "offset": offset,
        "next_offset": end if end < total else None,
        "items": items,
    }


def _find(runtime: Runtime, page: Page) -> tuple[Iterable[Entity], int]:
    """Return the entities that a page is of, and how many there are."""
    store = runtime.store
    if page.kind is None and page.owner is None and page.id is None:
        return store, len(store)
    if page.id is not None:
        one = store.get(page.id)
        candidates: Iterable[Entity] = [] if one is None else [one]
    elif page.owner:
        candidates = store.owned(Entity, page.owner)
    else:
        candidates = store
    found = [entity for entity in candidates if _fits(entity, page)]
    return found, len(found)


def _fits(entity: Entity, page: Page) -> bool:
    return (page.kind is None or spec_of(entity).name == page.kind) and (
        page.owner is None or (entity.owner or "") == page.owner
    )


def _show_entity(entity: Entity) -> dict[str, Any]:
    spec = spec_of(entity)
    return {
        "id": entity.id,
        "kind": spec.name,
        "owner": entity.owner,
        "hidden": spec.hidden,
        "fields": _show_fields(entity),
    }


def _show_profile(profile: Profile | None, room_class: type[Any]) -> dict[str, Any]:
    """`profile`: seconds, oldest first; `minute`: all of them together. Times in microseconds.

    Hooks that the room leaves as they are have no row: their time is none of its author's.
    """
    if profile is None:
        return {"profile": [], "minute": {"seconds": 0, "rows": {}}}
    left_out = _MAKING | {name for name in _HOOKS if getattr(room_class, name, None) is vars(Room).get(name)}

    def show(rows: dict[str, Times]) -> dict[str, Any]:
        return {name: _show_times(times) for name, times in rows.items() if name not in left_out}

    seconds, minute = profile.over(KEPT_S)
    return {
        "profile": [{"ago_s": ago, "rows": show(rows)} for ago, rows in profile.seconds()],
        "minute": {"seconds": seconds, "rows": show(minute)},
    }


def _show_times(times: Times) -> dict[str, Any]:
    return {
        "count": times.count,
        "p50_us": round(times.p50 * _US, 1),
        "p95_us": round(times.p95 * _US, 1),
        "max_us": round(times.max * _US, 1),
        "total_us": round(times.total * _US, 1),
    }
