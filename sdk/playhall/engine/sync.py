"""Sending: state updates to views that are behind, and frames to links that have credit.

In the common case every client is at the version before. What has changed for everyone is one body then,
put together once, and goes to all of them; a player who is told more (private state, owner-only fields,
corrections) gets that as one more part of the update. Where not all see the same, those that lack the same
share a body like that. Who has just come, or was left out of earlier updates, gets an update of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import chain

from playhall.engine.backend import Flush, Tracked, Tracker
from playhall.engine.catchup import CatchUp, place, tell, tell_owner
from playhall.engine.entries import Entries, Entry
from playhall.engine.links import MAX_WAITING_BYTES, Link, LinkState
from playhall.engine.outputs import FramesOut, Output
from playhall.engine.packing import pack_group
from playhall.engine.payloads import compress
from playhall.engine.schema import PRIVATE_ID
from playhall.engine.tracking import Scope
from playhall.engine.updates import Section, UpdateBuilder, encode_head, encode_leave
from playhall.engine.views import Lack

__all__ = ["Changes", "Moment", "Sync", "own_bodies"]


_PUBLIC = (Scope.SHARED, Scope.PRESENCE)


class Sync:
    """Brings the clients of one room up to date."""

    def __init__(self, tracker: Tracker, emit: Callable[[Output], None]) -> None:
        self._tracker = tracker
        self._emit = emit
        # Frame groups of the call under way.
        self._groups: list[bytes] = []

    def update(
        self, links: Iterable[Link], flush: Flush | None, version: int, tick: int, mono: float
    ) -> None:
        """Send to every joined link that has credit what it lacks.

        `flush` is what has just changed, if anything.
        """
        now = Moment(version, tick, mono, Entries(), Changes(self._tracker))
        together: list[Link] = []
        alike: list[Link] = []
        apart: list[Link] = []
        for link in links:
            view = link.view
            if flush is not None and flush.corrections:
                view.note(flush)
            if link.state is not LinkState.JOINED or not (view.fresh or view.version < version):
                continue
            if not link.outbox.open:
                link.outbox.owe(mono)
            elif flush is not None and view.follows(version):
                together.append(link)
            else:
                (alike if view.keeps_up(version) else apart).append(link)
        if flush is not None and together:
            self.follow(together, flush, now)
        self.catch_up(alike, apart, now)
        self.put_out()

    def deliver(self, links: Sequence[Link], frame: bytes, mono: float) -> list[Link]:
        """Send a message or reply, which must arrive, to each link: at once, or when there is credit.

        Returns the links that have too much waiting.
        """
        self.send(links, [b""], frame, mono, counted=True)
        self.put_out()
        return [link for link in links if link.outbox.waiting_bytes > MAX_WAITING_BYTES]

    def deliver_unreliable(self, links: Iterable[Link], frame: bytes) -> None:
        """Send a frame to the links that have credit for it."""
        ready = [link for link in links if link.outbox.open]
        for link in ready:
            link.outbox.sent(len(frame))
        self.add_group(ready, [b""], frame, unreliable=True)
        self.put_out()

    def release(self, link: Link) -> None:
        """Send what waits for credit, as far as there is some."""
        for head, body in link.outbox.take():
            self.add_group([link], [head], body, unreliable=False)
        self.put_out()

    def send(
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
        self.add_group(ready, ready_heads, body, unreliable=False)

    def catch_up(self, alike: Iterable[Link], apart: Iterable[Link], now: Moment) -> None:
        """Send what they lack to links that were up to date before this flush, and then to others."""
        self._share([(link, link.view.lack(self._tracker, now.changes.since)) for link in alike], now)
        for link in apart:
            lack = link.view.lack(self._tracker, now.changes.since)
            link.view.ration(lack, now.entries)
            self._stream(link, lack, now)

    def add_group(self, links: list[Link], heads: list[bytes], body: bytes, *, unreliable: bool) -> None:
        if links:
            shared = heads[:1] if len(set(heads)) == 1 else heads
            numbers = [link.number for link in links]
            self._groups.append(pack_group(numbers, shared, body, unreliable=unreliable))

    def put_out(self) -> None:
        if self._groups:
            groups, self._groups = self._groups, []
            self._emit(FramesOut(b"".join(groups)))

    def follow(self, links: list[Link], flush: Flush, now: Moment) -> None:
        """Send what a flush has changed to links that see all there is, and were up to date before it."""
        shared = _bodies(_shared_entries(flush, now.entries))
        among = _owners_business(flush)
        own = [
            own_bodies(link.view.own(self._tracker, among[link.player]), now.entries)
            if link.player in among
            else []
            for link in links
        ]
        self._send_shared(links, shared, own, now)
        for link, bodies in zip(links, own, strict=True):
            self._send_rest(link, shared, bodies, now)
        removed = {tracked.id for tracked in flush.removed if tracked.scope in _PUBLIC}
        added = {tracked.id for tracked in flush.added if tracked.scope in _PUBLIC}
        for link in links:
            link.view.follow(flush, removed, added, self._tracker)
            link.outbox.settle()

    def _share(self, alike: list[tuple[Link, Lack]], now: Moment) -> None:
        """Send what they lack to links that were up to date before this flush: one body to those for whom it
        is the same, and what only owners are told apart from it.
        """
        groups: defaultdict[tuple[bytes, ...], list[int]] = defaultdict(list)
        bodies: dict[object, tuple[bytes, ...]] = {}
        for n, (_, lack) in enumerate(alike):
            signature = _signature(lack)
            if signature not in bodies:
                bodies[signature] = tuple(_bodies(_public_entries(lack, now.entries)))
            groups[bodies[signature]].append(n)
        own = [own_bodies(lack, now.entries) for _, lack in alike]
        # What is shared goes out before what is not; that in parts, of which there is seldom any, comes last.
        whole = [shared for shared in groups if len(shared) < 2]
        for at_once in (whole, *([shared] for shared in groups if len(shared) > 1)):
            for shared in at_once:
                among = groups[shared]
                self._send_shared([alike[n][0] for n in among], shared, [own[n] for n in among], now)
            for n, sent in sorted((n, each) for each in at_once for n in groups[each]):
                link, lack = alike[n]
                self._send_rest(link, sent, own[n], now)
                link.view.take(lack, now.version)
                link.outbox.settle()

    def _stream(self, link: Link, lack: Lack, now: Moment) -> None:
        """Send one link what it lacks, each part when there is credit for it."""
        self._send_parts(link, lack, now)
        link.view.take(lack, now.version)
        link.outbox.settle()

    def _send_parts(self, link: Link, lack: Lack, now: Moment) -> None:
        view, outbox = link.view, link.outbox
        catch_up = CatchUp(lack.leaving, lack.steps, now.entries)
        bodies = catch_up.bodies()
        first = next(bodies, b"" if view.fresh else None)
        if first is None:
            return
        full = view.fresh and not view.resumed
        heads = _Heads(now.version - view.told_version, now.tick - view.told_tick, full)
        view.name(now.version, now.tick)
        frames = _frames(first, bodies, heads)
        for head, body in frames:
            if not outbox.open:
                catch_up.keep()
                outbox.hold_all(chain([(head, body)], frames), now.mono)
                break
            outbox.sent(len(head) + len(body))
            self.add_group([link], [head], body, unreliable=False)

    def _send_shared(
        self, links: list[Link], shared: Sequence[bytes], own: list[list[bytes]], now: Moment
    ) -> None:
        """Send links the parts of an update that all get; `own` is what each gets after them."""
        for index, body in enumerate(shared):
            at_end = index == len(shared) - 1
            lasts = [at_end and not bodies for bodies in own]
            self._send_part(links, body, now, first=index == 0, lasts=lasts, pack=len(links) > 1)

    def _send_rest(self, link: Link, shared: Sequence[bytes], own: list[bytes], now: Moment) -> None:
        """Send a link the parts of an update of its own, after those that it was sent with others."""
        self.send_own(link, own, now, first=not shared)
        if shared or own:
            link.view.name(now.version, now.tick)

    def send_own(self, link: Link, bodies: Sequence[bytes], now: Moment, *, first: bool) -> None:
        """Send the last parts of an update to one link. `first`: they are all of it."""
        for index, body in enumerate(bodies):
            last = index == len(bodies) - 1
            self._send_part([link], body, now, first=first and index == 0, lasts=[last])

    def _send_part(
        self,
        links: list[Link],
        body: bytes,
        now: Moment,
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
                now.version - link.view.told_version if first else 0,
                now.tick - link.view.told_tick if first else 0,
                last=last,
                deflated=packed is not None,
            )
            for link, last in zip(links, lasts, strict=True)
        ]
        # Parts may wait as long as they have to: a link that waits gets no further update.
        self.send(links, heads, body if packed is None else packed, now.mono, counted=False)


@dataclass(frozen=True, slots=True)
class Moment:
    """What the updates of one flush are of, and what has been encoded for them."""

    version: int
    tick: int
    mono: float
    entries: Entries
    changes: Changes


class Changes:
    """What has changed since the versions that views are at."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._found: dict[int, Mapping[int, Tracked]] = {}

    def since(self, version: int) -> Mapping[int, Tracked]:
        """Return all public things, by id, that have changed since a version."""
        found = self._found.get(version)
        if found is None:
            found = self._found[version] = self._tracker.public_since(version)
        return found


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


def _signature(lack: Lack) -> object:
    steps = [2 * step.id + step.enters for step in lack.steps if step.id != PRIVATE_ID]
    return tuple(id for id in lack.leaving if id != PRIVATE_ID), tuple(steps)


def own_bodies(lack: Lack, entries: Entries) -> list[bytes]:
    """Return the bodies of what a client lacks that is for its player alone."""
    return _bodies(_beyond(lack, entries))


def _beyond(lack: Lack, entries: Entries) -> Iterator[Entry]:
    """Give what a client lacks that is for its player alone."""
    if PRIVATE_ID in lack.leaving:
        yield Section.LEAVE, encode_leave(PRIVATE_ID)
    for step in lack.steps:
        if step.id == PRIVATE_ID:
            yield from tell(step, entries)
        elif step.mine or step.correct:
            yield from tell_owner(step, entries)


def _public_entries(lack: Lack, entries: Entries) -> Iterator[Entry]:
    """Give what a client lacks that anybody would be told."""
    for id in lack.leaving:
        if id != PRIVATE_ID:
            yield Section.LEAVE, encode_leave(id)
    for step in lack.steps:
        if step.tracked.scope is not Scope.PRIVATE:
            yield from tell(step._replace(mine=False, correct=0), entries)


def _shared_entries(flush: Flush, entries: Entries) -> Iterator[Entry]:
    """Give what a flush has changed for everyone."""
    for id in sorted(tracked.id for tracked in flush.removed if tracked.scope in _PUBLIC):
        yield Section.LEAVE, encode_leave(id)
    added = set(flush.added)
    for tracked in merge(flush.added, flush.changed, key=place):
        if tracked.scope not in _PUBLIC:
            continue
        if tracked in added:
            yield from entries.enter(tracked, mine=False)
        else:
            yield from entries.change(tracked, flush.version - 1, mine=False)


def _owners_business(flush: Flush) -> dict[str, set[Tracked]]:
    """Return by player what a flush may tell its owner, or who was that, more of than others."""
    found: defaultdict[str, set[Tracked]] = defaultdict(set)
    for tracked in flush.removed:
        if tracked.scope is Scope.PRIVATE:
            found.setdefault(tracked.owner or "", set())
    for tracked in chain(flush.added, flush.changed):
        if tracked.owner is None:
            continue
        if tracked.scope is Scope.PRIVATE:
            found.setdefault(tracked.owner, set())
        elif tracked.scope is Scope.SHARED and (
            tracked.spec.owner_only_mask or tracked.owner_changed == flush.version
        ):
            found[tracked.owner].add(tracked)
    for player, masks in flush.corrections.items():
        found[player].update(tracked for tracked in masks if tracked.scope is not Scope.PRIVATE)
    return found
