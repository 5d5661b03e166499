"""Sending: state updates to views that are behind, and frames to links that have credit.

In the common case every client is at the version before. What has changed for everyone is one body then,
put together once, and goes to all of them; a player who is told more (private state, owner-only fields,
corrections) gets that as one more part of the update. Who has just come, or was left out of earlier
updates, gets an update of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from playhall.engine.entries import Entries, Entry
from playhall.engine.links import MAX_WAITING_BYTES, Link, LinkState
from playhall.engine.outputs import FrameOut, Output
from playhall.engine.payloads import compress
from playhall.engine.tracking import Flush, Scope, Tracker
from playhall.engine.updates import Section, UpdateBuilder, encode_head, encode_leave

__all__ = ["Sync"]


class Sync:
    """Brings the clients of one room up to date."""

    def __init__(self, tracker: Tracker, emit: Callable[[Output], None]) -> None:
        self._tracker = tracker
        self._emit = emit

    def update(
        self, links: Iterable[Link], flush: Flush | None, version: int, tick: int, mono: float
    ) -> None:
        """Send to every joined link that has credit what it lacks.

        `flush` is what has just changed, if anything.
        """
        entries = Entries()
        together: list[Link] = []
        for link in links:
            if flush is not None:
                link.view.note(flush, self._tracker)
            if link.state is not LinkState.JOINED or not (link.view.fresh or link.view.version < version):
                continue
            if not link.outbox.open:
                link.outbox.owe(mono)
            elif flush is not None and not link.view.fresh and link.view.version == version - 1:
                together.append(link)
            else:
                self._catch_up(link, entries, version, tick, mono)
        if flush is not None and together:
            self._follow(together, flush, entries, tick, mono)

    def deliver(self, links: Sequence[Link], frame: bytes, mono: float) -> list[Link]:
        """Send a message or reply, which must arrive, to each link: at once, or when there is credit.

        Returns the links that have too much waiting.
        """
        self._deliver(links, [b""], frame, mono, counted=True)
        return [link for link in links if link.outbox.waiting_bytes > MAX_WAITING_BYTES]

    def deliver_unreliable(self, links: Iterable[Link], frame: bytes) -> None:
        """Send a frame to the links that have credit for it."""
        ready = [link for link in links if link.outbox.open]
        for link in ready:
            link.outbox.sent(len(frame))
        self._emit_frame(ready, [b""], frame, unreliable=True)

    def release(self, link: Link) -> None:
        """Send what waits for credit, as far as there is some."""
        for head, body in link.outbox.take():
            self._emit(FrameOut([link.number], [head], body))

    def _deliver(
        self, links: Sequence[Link], heads: Sequence[bytes], body: bytes, mono: float, *, counted: bool
    ) -> None:
        ready: list[Link] = []
        ready_heads: list[bytes] = []
        for index, link in enumerate(links):
            head = heads[index] if len(heads) > 1 else heads[0]
            if link.outbox.open:
                link.outbox.sent(len(head) + len(body))
                ready.append(link)
                ready_heads.append(head)
            else:
                link.outbox.hold(head, body, mono, counted=counted)
        self._emit_frame(ready, ready_heads, body, unreliable=False)

    def _emit_frame(self, links: list[Link], heads: list[bytes], body: bytes, *, unreliable: bool) -> None:
        if links:
            shared = heads[:1] if len(set(heads)) == 1 else heads
            self._emit(FrameOut([link.number for link in links], list(shared), body, unreliable))

    def _follow(self, links: list[Link], flush: Flush, entries: Entries, tick: int, mono: float) -> None:
        """Send what a flush has changed to links that were up to date before it."""
        shared = _bodies(_shared_entries(flush, entries))
        own = {player: _bodies(found) for player, found in _own_entries(flush, entries).items()}
        for index, body in enumerate(shared):
            at_end = index == len(shared) - 1
            lasts = [at_end and link.player not in own for link in links]
            self._send_part(
                links, body, flush.version, tick, mono, first=index == 0, lasts=lasts, pack=len(links) > 1
            )
        for link in links:
            bodies = own.get(link.player, [])
            for index, body in enumerate(bodies):
                first, last = not shared and index == 0, index == len(bodies) - 1
                self._send_part([link], body, flush.version, tick, mono, first=first, lasts=[last])
            link.view.enter(flush, self._tracker)
            link.view.sent(flush.version, (flush.version, tick) if shared or bodies else None)
            link.outbox.settle()

    def _catch_up(self, link: Link, entries: Entries, version: int, tick: int, mono: float) -> None:
        """Send all that a link lacks: it has just come, or was left out."""
        view, outbox = link.view, link.outbox
        fresh, full = view.fresh, view.fresh and not view.resumed
        catch_up = view.catch_up(self._tracker, entries)
        bodies = catch_up.bodies()
        first = next(bodies, b"" if fresh else None)
        told = None if first is None else (version, tick)
        if first is not None:
            heads = _Heads(version - view.told_version, tick - view.told_tick, full)
            frames = _frames(first, bodies, heads)
            for head, body in frames:
                if not outbox.open:
                    catch_up.keep()
                    outbox.hold_all(chain([(head, body)], frames), mono)
                    break
                outbox.sent(len(head) + len(body))
                self._emit_frame([link], [head], body, unreliable=False)
        view.sent(version, told)
        outbox.settle()

    def _send_part(
        self,
        links: list[Link],
        body: bytes,
        version: int,
        tick: int,
        mono: float,
        *,
        first: bool,
        lasts: list[bool],
        pack: bool = False,
    ) -> None:
        """Send a part of an update.

        `lasts` says for each link whether it is its last; `pack`: try to deflate.
        """
        packed = compress(body) if pack else None
        heads = [
            encode_head(
                version - link.view.told_version if first else 0,
                tick - link.view.told_tick if first else 0,
                last=last,
                deflated=packed is not None,
            )
            for link, last in zip(links, lasts, strict=True)
        ]
        # Parts may wait as long as they have to: a link that waits gets no further update.
        self._deliver(links, heads, body if packed is None else packed, mono, counted=False)


@dataclass(frozen=True, slots=True)
class _Heads:
    """What the heads of an update's parts say; the first says how far it is from the one before."""

    dv: int
    dt: int
    full: bool


def _frames(first: bytes, rest: Iterator[bytes], heads: _Heads) -> Iterator[tuple[bytes, bytes]]:
    """Give heads and bodies of an update of its own, each made when it is asked for."""
    body: bytes | None = first
    dv, dt, full = heads.dv, heads.dt, heads.full
    while body is not None:
        following = next(rest, None)
        packed = compress(body) if heads.full else None
        deflated = packed is not None
        yield (
            encode_head(dv, dt, last=following is None, full=full, deflated=deflated),
            body if packed is None else packed,
        )
        body, dv, dt, full = following, 0, 0, False


def _bodies(entries: Iterable[Entry]) -> list[bytes]:
    """Return the bodies of parts with these entries; none where there are no entries."""
    builder = UpdateBuilder()
    for section, entry in entries:
        builder.add(section, entry)
    return builder.bodies() if builder else []


def _shared_entries(flush: Flush, entries: Entries) -> Iterator[Entry]:
    """Give what a flush has changed for everyone."""
    public = (Scope.SHARED, Scope.PRESENCE)
    for id in sorted(tracked.id for tracked in flush.removed if tracked.scope in public):
        yield Section.LEAVE, encode_leave(id)
    for tracked in flush.added:
        if tracked.scope in public:
            yield from entries.enter(tracked, mine=False)
    for tracked in flush.changed:
        if tracked.scope in public:
            yield from entries.change(tracked, flush.version - 1, mine=False)


def _own_entries(flush: Flush, entries: Entries) -> dict[str, list[Entry]]:
    """Return what a flush has changed for single players, beyond what it has for everyone."""
    own: defaultdict[str, list[Entry]] = defaultdict(list)
    for tracked in flush.removed:
        if tracked.scope is Scope.PRIVATE and tracked.owner is not None:
            own[tracked.owner].append((Section.LEAVE, encode_leave(tracked.id)))
    for tracked in flush.added:
        if tracked.scope is Scope.PRIVATE and tracked.owner is not None:
            own[tracked.owner] += entries.enter(tracked, mine=True)
        elif tracked.owner is not None and tracked.spec.owner_only_mask and tracked.scope is Scope.SHARED:
            own[tracked.owner] += entries.secrets(tracked)
    for tracked in flush.changed:
        if tracked.scope is Scope.PRIVATE and tracked.owner is not None:
            own[tracked.owner] += entries.change(tracked, flush.version - 1, mine=True)
        elif tracked.owner is not None and tracked.scope is Scope.SHARED:
            own[tracked.owner] += entries.change_for_owner(tracked, flush.version - 1)
    for player, masks in flush.corrections.items():
        for tracked, mask in masks.items():
            own[player] += entries.correct(tracked, mask, mine=tracked.owner == player)
    return {player: found for player, found in own.items() if found}
