"""Sending: state updates to views that are behind, and frames to links that have credit.

In the common case every client is at the version before, and sees the same: one body goes to all of them,
put together once. A client gets a body of its own where it sees more than others (private state, owner-only
fields, corrections), has just come, or was left out of earlier updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from playhall.engine.links import MAX_WAITING_BYTES, Link, LinkState
from playhall.engine.outputs import FrameOut, Output
from playhall.engine.payloads import compress
from playhall.engine.tracking import Flush, Scope, Tracker
from playhall.engine.updates import Section, UpdateBuilder, encode_head, encode_leave
from playhall.engine.views import Entries

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

        `flush`: what has just changed, if anything.
        """
        entries = Entries()
        together: list[Link] = []
        special = set() if flush is None else _special(flush)
        for link in links:
            if flush is not None:
                link.view.note(flush, self._tracker)
            if link.state is not LinkState.JOINED or not (link.view.fresh or link.view.version < version):
                continue
            if not link.outbox.open:
                link.outbox.owe(mono)
            elif (
                flush is not None
                and not link.view.fresh
                and link.view.version == version - 1
                and link.player not in special
            ):
                together.append(link)
            else:
                self._update_one(link, entries, version, tick, mono)
        if flush is not None and together:
            self._update_together(together, flush, entries, tick, mono)

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

    def _update_together(
        self, links: list[Link], flush: Flush, entries: Entries, tick: int, mono: float
    ) -> None:
        builder = self._shared(flush, entries)
        told = (flush.version, tick) if builder else None
        if builder:
            self._send(links, builder, flush.version, tick, mono, full=False, try_compress=len(links) > 1)
        for link in links:
            link.view.enter(flush, self._tracker)
            link.view.sent(flush.version, told)
            link.outbox.settle()

    def _shared(self, flush: Flush, entries: Entries) -> UpdateBuilder:
        """Return what a flush has changed for everyone."""
        builder = UpdateBuilder()
        public = (Scope.SHARED, Scope.PRESENCE)
        leaving = sorted(tracked.id for tracked in flush.removed if tracked.scope in public)
        builder.extend(Section.LEAVE, map(encode_leave, leaving))
        for tracked in flush.added:
            if tracked.scope in public:
                for section, entry in entries.enter(tracked, mine=False):
                    builder.add(section, entry)
        for tracked in flush.changed:
            if tracked.scope in public:
                for section, entry in entries.change(tracked, flush.version - 1, mine=False):
                    builder.add(section, entry)
        return builder

    def _update_one(self, link: Link, entries: Entries, version: int, tick: int, mono: float) -> None:
        view = link.view
        fresh, full = view.fresh, view.fresh and not view.resumed
        builder = view.catch_up(self._tracker, entries)
        told = (version, tick) if builder or fresh else None
        if told is not None:
            self._send([link], builder, version, tick, mono, full=full, try_compress=full)
        view.sent(version, told)
        link.outbox.settle()

    def _send(
        self,
        links: list[Link],
        builder: UpdateBuilder,
        version: int,
        tick: int,
        mono: float,
        *,
        full: bool,
        try_compress: bool,
    ) -> None:
        bodies = builder.bodies()
        for index, body in enumerate(bodies):
            packed = compress(body) if try_compress else None
            first, last = index == 0, index == len(bodies) - 1
            heads = [
                encode_head(
                    version - link.view.told_version if first else 0,
                    tick - link.view.told_tick if first else 0,
                    last=last,
                    full=full and first,
                    deflated=packed is not None,
                )
                for link in links
            ]
            # State parts may wait as long as they have to: a view that waits gets no further update.
            self._deliver(links, heads, body if packed is None else packed, mono, counted=False)


def _special(flush: Flush) -> set[str]:
    """Return the players that a flush tells more than others."""
    players = set(flush.corrections)
    for tracked in (*flush.added, *flush.changed):
        if tracked.owner is None or tracked.scope is Scope.PRESENCE:
            continue
        new_owner = tracked.owner_changed == flush.version and tracked.spec.writable_mask
        if tracked.scope is Scope.PRIVATE or tracked.spec.owner_only_mask or new_owner:
            players.add(tracked.owner)
    return players
