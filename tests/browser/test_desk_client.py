"""The browser client against real rooms, in Chromium: calls, owner writes, status, unreliable messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.support.dev import ROOT, DevServer, copy_game, serve

NewContext = Callable[..., BrowserContext]

# How a call ended, for tests to compare.
_CALL = """async ([name, args]) => {
    try {
        return { reply: await room.call(name, args), coins: room.private.coins, sold: room.state.sold };
    } catch (error) {
        return { isOurs: error instanceof PlayhallError, code: error.code, message: error.message };
    }
}"""
# The name of what an expression throws, or null.
_THROWN = "() => {{ try {{ {0}; return null; }} catch (error) {{ return error.name; }} }}"
# Sockets are the page's to break.
_KEEP_SOCKETS = """
    window.sockets = [];
    window.WebSocket = class extends WebSocket {
        constructor(...args) {
            super(...args);
            sockets.push(this);
        }
    };
"""
_PEN = "room.entities.mine(Pen)[0]"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """The desk, served; its build finds the client where an example's does."""
    directory = tmp_path_factory.mktemp("dev")
    (directory / "clients").symlink_to(ROOT / "clients")
    folder = copy_game(Path(__file__).parent / "games" / "desk", directory / "games")
    with serve(folder, directory / "dev.log") as server:
        yield server


def enter(context: BrowserContext, desk: DevServer, room: str, rtt_ms: int = 0) -> Page:
    """Open the page in a room, and wait until it is in."""
    page = context.new_page()
    page.goto(f"{desk.url}?room={room}&rtt={rtt_ms}")
    page.wait_for_function("window.room?.status === 'open'")
    return page


def call(page: Page, name: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = page.evaluate(_CALL, [name, args or {}])
    return answer


def test_a_call_is_answered_with_what_it_changed_seen_and_refused_with_its_code(
    desk: DevServer, new_context: NewContext
) -> None:
    page = enter(new_context(), desk, "calls")
    assert call(page, "buy", {"item": "ring", "count": 2}) == {"reply": 3, "coins": 3, "sold": 2}
    assert call(page, "buy", {"item": "halo"}) == {"reply": 2, "coins": 2, "sold": 3}
    refused = call(page, "buy", {"item": "halo", "count": 9})
    assert (refused["isOurs"], refused["code"]) == (True, 422)
    assert "2 coins are not enough for 9 of halo" in refused["message"]
    assert call(page, "buy", {"item": "sword"})["code"] == 422
    broken = call(page, "break")
    assert (broken["code"], "the drawer is stuck" in broken["message"]) == (422, True)
    assert call(page, "nothing")["code"] == 404
    assert call(page, "buy", {"item": "ring"})["reply"] == 1


def test_a_call_whose_connection_is_lost_fails_without_an_answer(
    desk: DevServer, new_context: NewContext
) -> None:
    context = new_context()
    page = enter(context, desk, "lost-calls")
    late = "room.call('wait', undefined, { timeoutMs: 200 }).catch((error) => [error.name, error.code])"
    assert page.evaluate(late) == ["PlayhallError", 0]
    page.evaluate(f"void (window.lost = ({_CALL})(['wait', {{}}]))")
    # The same guest in another tab takes over.
    enter(context, desk, "lost-calls")
    lost = page.evaluate("window.lost")
    assert (lost["isOurs"], lost["code"]) == (True, 0)


@pytest.mark.ledger("OWN-11", "OWN-17")
def test_what_a_player_writes_is_shown_at_once_seen_by_others_and_clamped_by_the_room(
    desk: DevServer, new_context: NewContext
) -> None:
    ann, bob = enter(new_context(), desk, "pens"), enter(new_context(), desk, "pens")
    pen = ann.evaluate(f"{_PEN}.id")
    bob.wait_for_function(f"room.entities.get(Pen, {pen}) !== undefined")
    bob.evaluate(
        f"""() => {{
            window.seen = [];
            room.entities.onChange(Pen, (pen) => pen.id === {pen} && seen.push(pen.x));
        }}"""
    )
    assert ann.evaluate(f"({_PEN}.x = 40, {_PEN}.x)") == 40
    bob.wait_for_function(f"room.entities.get(Pen, {pen}).x === 40")
    assert ann.evaluate("told") == []

    assert ann.evaluate(f"({_PEN}.x = 400, {_PEN}.x)") == 400
    ann.wait_for_function(f"{_PEN}.x === 100")
    assert ann.evaluate("told") == [["change", pen, "x"], ["correct", pen, "x"]]
    bob.wait_for_function(f"room.entities.get(Pen, {pen}).x === 100")
    assert bob.evaluate("seen") == [40, 100]

    ann.evaluate(f"{_PEN}.patch('ink', 3, Uint8Array.of(7))")
    bob.wait_for_function(f"room.entities.get(Pen, {pen}).ink.join() === '0,0,0,7'")
    assert ann.evaluate(_THROWN.format(f"{_PEN}.colour = 1")) == "TypeError"


def test_what_is_written_while_the_connection_is_lost_is_gone_with_the_rooms_values_back(
    desk: DevServer, new_context: NewContext
) -> None:
    context = new_context()
    context.add_init_script(_KEEP_SOCKETS)
    ann, bob = enter(context, desk, "drops"), enter(new_context(), desk, "drops")
    pen = ann.evaluate(f"(window.pen = {_PEN}, pen.x = 40, room.private.volume = 4, pen.id)")
    bob.wait_for_function(f"room.entities.get(Pen, {pen})?.x === 40")

    ann.evaluate(
        """() => {
            room.on('disconnected', () => {
                pen.x = 77;
                room.private.volume = 7;
                room.presence.setStatus('offline');
                window.shown = [pen.x, room.private.volume, room.presence.get(room.player).status];
            });
            room.on('restored', () => (window.restored = true));
            sockets.at(-1).close();
        }"""
    )
    ann.wait_for_function("window.restored")
    assert ann.evaluate("shown") == [77, 7, "offline"]
    same = "pen === room.entities.get(pen.id)"
    held = f"[pen.x, room.private.volume, room.presence.get(room.player).status, {same}]"
    assert ann.evaluate(held) == [40, 4, None, True]
    assert ann.evaluate("told") == [["change", pen, "x"], ["correct", pen, "x"]]
    ann.evaluate("pen.x = 41")
    bob.wait_for_function(f"room.entities.get(Pen, {pen}).x === 41")


@pytest.mark.ledger("OWN-21")
def test_private_settings_are_written_within_bounds_and_there_again_after_a_reload(
    desk: DevServer, new_context: NewContext
) -> None:
    page = enter(new_context(), desk, "settings")
    assert page.evaluate("(room.private.volume = 200, room.private.volume)") == 200
    page.wait_for_function("room.private.volume === 10")
    page.evaluate("room.private.volume = 9")
    # The write comes before the call, and is taken by the tick that answers it.
    assert call(page, "buy", {"item": "ring"})["reply"] == 4
    page.reload()
    page.wait_for_function("window.room?.status === 'open'")
    assert page.evaluate("room.private.volume") == 9


@pytest.mark.ledger("OWN-20")
def test_a_pen_that_is_handed_over_is_the_new_owners_to_write(
    desk: DevServer, new_context: NewContext
) -> None:
    ann, bob = enter(new_context(), desk, "gifts"), enter(new_context(), desk, "gifts")
    pen = ann.evaluate(f"{_PEN}.id")
    bob.wait_for_function(f"room.entities.get(Pen, {pen}) !== undefined")
    write = _THROWN.format(f"room.entities.get(Pen, {pen}).x = 7")
    assert bob.evaluate(write) == "TypeError"
    ann.evaluate("player => room.send({ give: player })", bob.evaluate("room.player"))
    bob.wait_for_function(f"room.entities.get(Pen, {pen}).owner === room.player")
    assert bob.evaluate("told") == [["owner", pen, bob.evaluate("room.player")]]
    assert bob.evaluate(write) is None
    ann.wait_for_function(f"room.entities.get(Pen, {pen}).x === 7")
    assert ann.evaluate(write) == "TypeError"


def test_a_status_is_seen_by_all_and_the_room_may_take_it_back(
    desk: DevServer, new_context: NewContext
) -> None:
    ann, bob = enter(new_context(), desk, "statuses"), enter(new_context(), desk, "statuses")
    player = ann.evaluate("room.player")
    of_ann = f"room.presence.get('{player}')"
    shown = ann.evaluate(f"(room.presence.setStatus({{ ready: true }}), {of_ann}.status)")
    assert shown == {"ready": True}
    bob.wait_for_function(f"{of_ann}?.status?.ready === true")

    ann.evaluate("window.changed = []; void room.presence.onChange((entry, fields) => changed.push(fields))")
    ann.evaluate("room.presence.setStatus('rude')")
    ann.wait_for_function(f"{of_ann}.status === null")
    assert ann.evaluate("changed") == [["status"]]
    bob.wait_for_function(f"{of_ann}.status === null")
    assert ann.evaluate(_THROWN.format("room.presence.setStatus('x'.repeat(1023))")) == "RangeError"
    assert ann.evaluate("[...room.presence].some((entry) => isBot(entry.player))") is False


def test_unreliable_messages_go_both_ways_as_such(desk: DevServer, new_context: NewContext) -> None:
    ann, bob = enter(new_context(), desk, "talk"), enter(new_context(), desk, "talk")
    bob.wait_for_function("room.presence.size === 2")
    assert ann.evaluate("room.send({ n: 1 }, { unreliable: true })") is True
    for page in (ann, bob):
        page.wait_for_function("told.length === 1")
        assert page.evaluate("told") == [["message", {"heard": {"n": 1}}, True]]
    ann.evaluate("room.send({ n: 2 })")
    ann.wait_for_function("told.length === 2")
    assert ann.evaluate("told[1]") == ["message", {"reliably": {"n": 2}}, False]
    assert ann.evaluate("room.stats.sent.unreliable > 0 && room.stats.received.unreliable > 0")


@pytest.mark.ledger("DEV-04")
def test_a_simulated_network_is_as_slow_as_asked(desk: DevServer, new_context: NewContext) -> None:
    page = enter(new_context(), desk, "slow", rtt_ms=300)
    page.wait_for_function("room.rtt > 0")
    assert page.evaluate("room.rtt") >= 300
    began = "window.began = performance.now(), room.call('buy', { item: 'ring' })"
    assert page.evaluate(f"({began})") == 4
    assert 300 <= page.evaluate("performance.now() - began") < 5_000
