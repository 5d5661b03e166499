"""The inspector of `playhall dev` as people see it: all of a room, and nothing that a room says is run."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect

from playhall.client import PlayhallError, RoomClient
from tests.browser.games.vault.shared import HOSTILE, Hall, Key, Open, Purse, schema
from tests.support.dev import DevServer, copy_game, serve

NewContext = Callable[..., BrowserContext]
T = TypeVar("T")

WAIT_S = 20.0


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    directory = tmp_path_factory.mktemp("dev")
    folder = copy_game(Path(__file__).parent / "games" / "vault", directory)
    with serve(folder, directory / "dev.log") as server:
        yield server


class Visitor:
    """The Python client on a loop of its own: Playwright's holds this thread."""

    def __init__(self, url: str, room: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.client: RoomClient[Hall, Purse] = self._run(self._enter(url, room))

    def do(self, act: Callable[[], object]) -> None:
        """Call something of the client's on its loop."""

        async def on_loop() -> None:
            act()

        self._run(on_loop())

    def call(self, door: int) -> int | PlayhallError:
        """The reply of a call, or what it was refused with."""

        async def on_loop() -> int | PlayhallError:
            try:
                return await self.client.call(Open(door=door))
            except PlayhallError as error:
                return error

        return self._run(on_loop())

    def close(self) -> None:
        self._run(self.client.leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()

    async def _enter(self, url: str, room: str) -> RoomClient[Hall, Purse]:
        client = RoomClient(url, project="vault", room=room, schema=schema)
        await client.ready
        return client

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)


@pytest.fixture(scope="module")
def visitor(vault: DevServer) -> Iterator[Visitor]:
    """A guest in the room `main`, who has said, called and written something."""
    visitor = Visitor(vault.url, "main")
    visitor.do(lambda: visitor.client.send({"say": HOSTILE}))
    assert visitor.call(1) == 1
    assert isinstance(visitor.call(9), PlayhallError)

    def turn() -> None:
        [key] = visitor.client.entities.mine(Key)
        key.turns = 5

    visitor.do(turn)
    yield visitor
    visitor.close()


def open_room(context: BrowserContext, vault: DevServer) -> Page:
    page = context.new_page()
    page.goto(f"{vault.url}v1/dev/")
    page.locator(".card", has_text="main").click()
    expect(page.get_by_role("heading", name="main")).to_be_visible()
    return page


def panel(page: Page, name: str) -> Any:
    """A panel, after its tab was chosen where there is one."""
    tab = page.get_by_role("tab", name=name)
    if tab.is_visible():
        tab.click()
    return page.get_by_role("tabpanel", name=name)


def fetch(vault: DevServer, path: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    with urllib.request.urlopen(f"{vault.url}v1/dev/{path}", timeout=WAIT_S) as answer:
        found: dict[str, Any] = json.loads(answer.read(), parse_constant=refuse)
    return found


@pytest.mark.ledger("DEV-01", "STATE-13")
def test_a_room_is_shown_with_all_that_is_in_it(
    vault: DevServer, visitor: Visitor, new_context: NewContext
) -> None:
    page = open_room(new_context(), vault)
    player = visitor.client.player

    state = panel(page, "State")
    expect(state.locator("article", has_text="Shared state")).to_contain_text("opened1")
    expect(state.get_by_text("Private state of 1 player")).to_be_visible()
    expect(state.locator("li")).to_contain_text("coins7")

    connections = panel(page, "Connections")
    expect(connections.locator("#connections li")).to_have_count(1)
    expect(connections.locator("#presence li")).to_have_count(2)
    expect(connections).to_contain_text("Guard · bot:1")
    expect(connections.locator("article", has_text="Banned")).to_contain_text("mallory")

    entities = panel(page, "Entities")
    expect(entities.locator("#found")).to_have_text("121 entities, 1 to 100 shown")
    expect(entities.locator("li", has_text="card 0").locator(".badge")).to_have_text("hidden")
    entities.get_by_role("button", name="Next").click()
    expect(entities.locator("#found")).to_have_text("121 entities, 101 to 121 shown")
    entities.get_by_label("Kind").select_option("key")
    expect(entities.locator("#entities li")).to_have_count(1)
    expect(entities.locator("#entities li")).to_contain_text("turns5")
    expect(entities.locator("#entities li .owner")).to_have_attribute("title", player)
    expect(entities.locator(".badge")).to_have_count(0)
    entities.get_by_label("Kind").select_option("")
    entities.get_by_label("Owner").fill(player)
    expect(entities.locator("#entities li")).to_have_count(1)
    entities.get_by_label("Owner").fill("")
    entities.get_by_label("Id", exact=True).fill("5")
    expect(entities.locator("#entities li")).to_have_count(1)
    expect(entities.locator("#entities h3 b")).to_have_text("#5")
    expect(entities.locator("#entities li")).to_contain_text('worth"NaN"')

    messages = panel(page, "Messages").locator("#messages > li")
    expect(messages.filter(has_text="say")).to_have_count(2)
    calls = messages.filter(has=page.locator(".badge.call"))
    expect(calls).to_have_count(2)
    expect(calls.last).to_have_text(re.compile(r'open #0 \{"door":1\}←ok in [0-9.]+ (µs|ms)1$'))
    refused = messages.filter(has_text="there is no such door")
    expect(refused).to_contain_text("open")
    expect(refused).to_contain_text("422 in ")
    expect(messages.filter(has=page.locator(".badge.write"))).to_contain_text("turns")

    expect(panel(page, "Log").locator("#log")).to_contain_text("the vault is locked")


@pytest.mark.ledger("DEV-03")
def test_the_same_comes_as_json(vault: DevServer, visitor: Visitor) -> None:
    [listed] = [room for room in fetch(vault, "rooms")["rooms"] if room["id"] == "main"]
    assert (listed["project"], listed["status"], listed["connection_count"]) == ("vault", "active", 1)
    room = fetch(vault, "rooms/vault/main?kind=card&limit=1")
    player = visitor.client.player
    assert [conn["player"] for conn in room["connections"]] == [player]
    assert room["state"] == {"opened": 1, "motto": HOSTILE}
    assert room["private"]["items"] == [{"player": player, "fields": {"coins": 7}}]
    [card] = room["entities"]["items"]
    assert (card["kind"], card["owner"], card["hidden"]) == ("card", None, True)
    assert card["fields"] == {"face": "card 0", "worth": "NaN"}
    kinds = [line["kind"] for line in room["messages"]]
    assert kinds.count("call") == 2
    assert {"message", "write"} <= set(kinds)
    replies = [line["reply"] for line in room["messages"] if line["kind"] == "call"]
    assert [reply.get("content") for reply in replies] == [1, None]
    assert replies[1]["error"]["code"] == 422
    rows = {name for second in room["profile"] for name in second["rows"]}
    assert {"tick", "on_tick", "flush", "bots", "owner writes"} <= rows
    assert room["minute"]["rows"].keys() == rows
    assert not {"on_leave", "__init__", "__new__"} & rows
    assert room["base_bytes"] > 0
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(vault, "rooms/vault/none")
    assert (refused.value.code, json.load(refused.value)["code"]) == (404, "E_UNKNOWN")


def test_what_rooms_and_players_say_is_text(
    vault: DevServer, visitor: Visitor, new_context: NewContext
) -> None:
    page = new_context().new_page()
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.goto(f"{vault.url}v1/dev/")
    page.locator(".card", has_text="main").click()
    for name in ("State", "Connections", "Entities", "Profile", "Log", "Messages"):
        panel(page, name)
    expect(panel(page, "Messages").locator("#messages")).to_contain_text("<script>")
    expect(panel(page, "State")).to_contain_text("<script>")
    for name in ("Messages", "State"):
        expect(panel(page, name)).to_contain_text("</script>\\u202e")
    expect(panel(page, "Connections")).to_contain_text(HOSTILE[:64])
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0
    assert [request.url for request in asked if not request.url.startswith((vault.url, "data:,"))] == []


def test_messages_come_live_and_stand_still_while_paused(
    vault: DevServer, visitor: Visitor, new_context: NewContext
) -> None:
    page = open_room(new_context(), vault)
    messages = panel(page, "Messages")
    visitor.do(lambda: visitor.client.send("first"))
    expect(messages.locator("#messages li").nth(1)).to_contain_text('"first"')
    messages.get_by_role("button", name="Pause").click()
    visitor.do(lambda: visitor.client.send("second"))
    with page.expect_response("**/rooms/vault/main?*"), page.expect_response("**/rooms/vault/main?*"):
        pass
    expect(messages).not_to_contain_text("second")
    messages.get_by_role("button", name="Go on").click()
    expect(messages).to_contain_text("second")
    messages.get_by_label("Search").fill("second")
    expect(messages.locator("#messages > li")).to_have_count(2)


def test_messages_are_filtered_by_sort_and_searched_with_their_replies(
    vault: DevServer, visitor: Visitor, new_context: NewContext
) -> None:
    page = open_room(new_context(), vault)
    messages = panel(page, "Messages")
    lines = messages.locator("#messages > li")
    for sort, kinds in (("calls", ["call"]), ("writes", ["write"]), ("messages", ["message"])):
        messages.get_by_role("button", name=sort, exact=True).click()
        expect(lines.first).to_be_visible()
        assert sorted(set(lines.locator(".badge").all_text_contents())) == kinds
    messages.get_by_role("button", name="calls", exact=True).click()
    for found in ("no such door", "422", visitor.client.player):
        messages.get_by_label("Search").fill(found)
        expect(lines.filter(has_text="no such door")).to_have_count(1)
    messages.get_by_label("Search").fill("say")
    expect(messages).to_contain_text("Nothing fits.")


def test_players_are_shown_by_name_and_short_id(
    vault: DevServer, visitor: Visitor, new_context: NewContext
) -> None:
    page = open_room(new_context(), vault)
    player = visitor.client.player
    shown = re.compile(re.escape(f" · {player[:12]}…"))
    places = {
        "Connections": "#connections h3, #presence h3",
        "Entities": "#entities .owner",
        "State": "h3",
        "Messages": "#messages .who",
    }
    for name, where in places.items():
        shown_in = panel(page, name)
        if name == "Entities":
            shown_in.get_by_label("Kind").select_option("key")
        who = shown_in.locator(f":is({where})[title='{player}']").first
        expect(who).to_have_text(shown)


def test_a_reload_keeps_what_was_chosen(vault: DevServer, visitor: Visitor, new_context: NewContext) -> None:
    page = open_room(new_context(), vault)
    entities = panel(page, "Entities")
    entities.get_by_label("Kind").select_option("key")
    messages = panel(page, "Messages")
    messages.get_by_role("button", name="calls", exact=True).click()
    messages.get_by_label("Search").fill("door")
    profile = panel(page, "Profile")
    profile.get_by_role("button", name="flush").click()
    profile.get_by_role("button", name="row", exact=True).click()
    page.reload()
    expect(page.get_by_role("tab", name="Profile")).to_have_attribute("aria-selected", "true")
    expect(profile.get_by_role("heading", name="flush, the last minute")).to_be_visible()
    expect(profile.get_by_role("columnheader", name="row")).to_have_attribute("aria-sort", "ascending")
    expect(messages.get_by_label("Search")).to_have_value("door")
    expect(messages.get_by_role("button", name="calls", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(panel(page, "Entities").get_by_label("Kind")).to_have_value("key")
    expect(entities.locator("#entities li")).to_have_count(1)


def test_a_room_that_is_not_listed_is_opened_by_its_id(
    vault: DevServer, visitor: Visitor, new_context: NewContext
) -> None:
    page = new_context().new_page()
    page.goto(f"{vault.url}v1/dev/")
    expect(page.locator(".card").first).to_be_visible()
    expect(page.get_by_text("Rooms that sleep are shown when you open them by name.")).to_be_visible()
    for typed in ("main", "vault/main"):
        page.get_by_label("Open a room by its id").fill(typed)
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("heading", name="main")).to_be_visible()
        page.go_back()


def test_what_the_figures_mean_is_said(vault: DevServer, visitor: Visitor, new_context: NewContext) -> None:
    page = open_room(new_context(), vault)
    figures = page.locator(".stats > div")
    expect(figures.filter(has_text="a wake reads")).to_have_text(
        re.compile(r"[0-9.]+ K?B: base [0-9.]+ K?B, records [0-9.]+ K?B$")
    )
    expect(figures.filter(has_text="generation")).to_have_text(re.compile(r"generation[0-9]+\.[0-9]+$"))
    page.get_by_text("What these figures mean").click()
    for name in ("version", "saved version", "generation"):
        expect(page.locator(".meanings dt").get_by_text(name, exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (375, "light"), (375, "dark")]
)
def test_the_page_fits_the_screen_and_charts_the_last_minute(
    vault: DevServer, visitor: Visitor, new_context: NewContext, artifacts: Path, width: int, scheme: Any
) -> None:
    context = new_context(width, 812, is_phone=width < 400)
    page = open_room(context, vault)
    page.emulate_media(color_scheme=scheme)
    for name in ("State", "Entities", "Connections", "Messages", "Log", "Profile"):
        panel(page, name)
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
        page.screenshot(path=artifacts / f"inspector-{name.lower()}-{width}-{scheme}.png")
    profile = panel(page, "Profile")
    expect(profile.locator("#profile tr").first).to_contain_text("tick")
    expect(profile.locator(".chart polyline").first).to_be_attached()
    profile.get_by_role("button", name="flush").click()
    expect(profile.get_by_role("heading", name="flush, the last minute")).to_be_visible()
    page.get_by_role("link", name="Playhall inspector").click()
    expect(page.locator(".card").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.screenshot(path=artifacts / f"inspector-rooms-{width}-{scheme}.png")


def test_a_page_that_nobody_sees_asks_for_nothing(
    vault: DevServer, visitor: Visitor, new_context: NewContext
) -> None:
    page = open_room(new_context(), vault)
    expect(page.locator("#live")).to_have_text("live")
    hide = "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
    hide += " document.dispatchEvent(new Event('visibilitychange')); }"
    page.evaluate(hide, True)
    expect(page.locator("#live")).to_have_text("paused")
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    # Longer than any pause between two questions.
    page.wait_for_timeout(1_200)
    assert asked == []
    with page.expect_response("**/rooms/vault/main?*"):
        page.evaluate(hide, False)
    expect(page.locator("#live")).to_have_text("live")


def test_a_room_that_is_not_there_says_so(
    vault: DevServer, visitor: Visitor, new_context: NewContext
) -> None:
    page = new_context().new_page()
    page.goto(f"{vault.url}v1/dev/#/rooms/vault/none")
    expect(page.get_by_role("alert")).to_contain_text("E_UNKNOWN")


def test_a_room_that_goes_on_after_a_crash_is_shown_anew(vault: DevServer, new_context: NewContext) -> None:
    visitor = Visitor(vault.url, "crash")
    page = new_context().new_page()
    page.goto(f"{vault.url}v1/dev/#/rooms/vault/crash")
    lines = panel(page, "Messages").locator("#messages li")
    visitor.do(lambda: visitor.client.send("before"))
    expect(lines.filter(has_text="before")).to_have_count(2)
    generation = page.locator(".stats dd").last
    first = generation.text_content() or ""
    os.kill(vault.room_host_pids()[0], signal.SIGKILL)
    # The shard waits before it calls a room host dead.
    expect(generation).not_to_have_text(first, timeout=WAIT_S * 1000)
    expect(page.get_by_role("alert")).to_be_hidden()
    visitor.do(lambda: visitor.client.send("after"))
    expect(lines.filter(has_text="after")).to_have_count(2)
    expect(lines.filter(has_text="before")).to_have_count(0)
    visitor.close()


def test_a_room_that_does_not_keep_its_tick_rate_says_which_hook_it_is(
    vault: DevServer, new_context: NewContext, artifacts: Path
) -> None:
    visitor = Visitor(vault.url, "slow")
    page = new_context().new_page()
    page.goto(f"{vault.url}v1/dev/#/rooms/vault/slow?tab=Profile")
    visitor.do(lambda: visitor.client.send({"drag_s": 0.133}))
    said = re.compile(r"^slow: on_tick takes 1[2-9][0-9](\.[0-9])? of 50 ms, [4-7](\.[0-9])? of 20 ticks/s$")
    expect(page.locator(".room > .slow")).to_have_text(said, timeout=WAIT_S * 1000)
    rows = page.locator("#profile tr")
    expect(rows.nth(0)).to_contain_text("tick over budget")
    expect(rows.nth(1)).to_contain_text("on_tick over budget")
    expect(rows.filter(has_text="flush").locator(".badge")).to_be_hidden()
    page.get_by_role("button", name="row", exact=True).click()
    expect(rows.first).to_contain_text("bots")
    page.screenshot(path=artifacts / "inspector-slow.png")
    page.get_by_role("link", name="Playhall inspector").click()
    expect(page.locator(".card", has_text="slow").locator(".load")).to_contain_text("slow: on_tick")
    page.screenshot(path=artifacts / "inspector-rooms-slow.png")
    visitor.do(lambda: visitor.client.send({"drag_s": 0}))
    visitor.close()
