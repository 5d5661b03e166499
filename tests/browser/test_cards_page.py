"""The page of examples/cards as people see it: played in Chromium, on everything `playhall dev` starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, expect

from tests.support.dev import DevServer, dev_server

NewContext = Callable[..., BrowserContext]
Visit = Callable[..., Page]

# What a page shows of the table: the top card, the suit to match, and how many cards each player has.
_TABLE = """() => {
    const others = [...document.querySelectorAll("#others .seat")].map((seat) =>
        [seat.querySelector(".name").textContent, Number(seat.querySelector(".count").textContent)]);
    const own = [document.querySelector("#name").value, document.querySelectorAll("#hand li").length];
    const top = document.querySelector("#top-card").dataset.card;
    const match = document.querySelector("#match").dataset.suit;
    const counts = Object.fromEntries([own, ...others].sort());
    return JSON.stringify([top, match, counts]);
}"""
_IS_ON_TURN = "() => document.querySelector('#me').classList.contains('on-turn')"
# A move that its page shows as one: of the hand, of the suits, or of the stock.
MOVES = "#hand .fits, #suits:not([hidden]) .suit, #stock.wanted"


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """The cards game, served."""
    with dev_server(tmp_path_factory.mktemp("dev"), "cards") as server:
        yield server


@pytest.fixture
def visit(cards: DevServer, new_context: NewContext) -> Iterator[Visit]:
    """Opens the game for somebody new, at its table. What a page says in the console fails the test."""
    said: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            said.append(message.text)

    def open_page(
        room: str, name: str, width: int = 1280, height: int = 800, *, is_phone: bool = False
    ) -> Page:
        page = new_context(width, height, is_phone=is_phone).new_page()
        page.on("console", hear)
        enter(page, cards.url, room)
        if name:
            call_oneself(page, name)
        return page

    yield open_page
    assert said == []


def enter(page: Page, url: str, room: str) -> None:
    """Open the game and wait until it is there."""
    page.goto(f"{url}?room={room}")
    expect(page.locator("#overlay")).to_be_hidden()


def call_oneself(page: Page, name: str) -> None:
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#players li").first).to_contain_text(name)


def begin(*pages: Page) -> None:
    """Say on every page that its player is ready, and wait for the cards."""
    for page in pages:
        page.locator("#ready").click()
    for page in pages:
        expect(page.locator("#piles")).to_be_visible()


def lay_table(page: Page, seats: int) -> None:
    page.get_by_role("button", name=f"{seats} seats").click()
    expect(page.locator("#others .seat")).to_have_count(seats - 1)


def hand(page: Page) -> list[str]:
    """The cards a page shows as its player's own."""
    cards = page.locator("#hand .card").evaluate_all("all => all.map((card) => card.dataset.card)")
    return [str(card) for card in cards]


def wait_until_alike(first: Page, pages: Sequence[Page]) -> None:
    """Wait until all pages show the table that the first one shows. Nobody moves meanwhile: no bot plays."""
    seen = first.evaluate(_TABLE)
    for page in pages:
        page.wait_for_function(f"(seen) => ({_TABLE})() === seen", arg=seen)


def next_on_turn(pages: Sequence[Page]) -> Page | None:
    """The page whose player is to move, once it shows that; None once a page shows that the game is over."""
    for _ in range(100):
        for page in pages:
            if page.locator("#lobby").is_visible():
                return None
            if page.evaluate(_IS_ON_TURN) and page.locator(MOVES).count():
                return page
        pages[0].wait_for_timeout(50)
    raise AssertionError("nobody is on turn")


def on_turn(pages: Sequence[Page]) -> Page:
    """The page whose player is to move, in a game that goes on."""
    page = next_on_turn(pages)
    assert page is not None
    return page


def move(page: Page) -> None:
    """Make the first move that the page offers, and wait until it shows that it is made."""
    before = page.evaluate(_TABLE)
    page.locator(MOVES).first.click()
    page.wait_for_function(f"(before) => ({_TABLE})() !== before", arg=before)


def assert_nothing_cut_off(page: Page) -> None:
    """Nothing is wider than the screen, and no text ends in an ellipsis that did not have to."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cut = page.evaluate(
        """() => [...document.querySelectorAll("h1, h2, label, button:not(.card), .pile-label, .news")]
            .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1)
            .map((each) => each.textContent)"""
    )
    assert cut == []


def assert_all_in_view(page: Page) -> None:
    """What a player needs is in the window, without scrolling, and none of it covers another."""
    parts = "header, #others .seat, #lobby, #piles, .notice, #me, #hand"
    boxes = page.locator(parts).evaluate_all(
        """all => (scrollTo(0, 0), all).filter((each) => each.checkVisibility() && each.clientHeight)
            .map((each) => [each.id || each.className, each.getBoundingClientRect()])"""
    )
    height = page.evaluate("innerHeight")
    for name, box in boxes:
        assert box["top"] >= 0, name
        assert box["bottom"] <= height, name
    for (name, box), (other, over) in combinations(boxes, 2):
        is_beside = box["right"] <= over["left"] or over["right"] <= box["left"]
        assert is_beside or box["bottom"] <= over["top"] or over["bottom"] <= box["top"], (name, other)


def keep_screenshots(page: Page, artifacts: Path, name: str) -> None:
    page.evaluate("scrollTo(0, 0)")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.screenshot(path=artifacts / f"cards-{name}-{scheme}.png")


def test_three_people_play_and_a_bot_leaves_its_seat(visit: Visit, artifacts: Path) -> None:
    ann = visit("three", "Ann")
    lay_table(ann, 3)
    bob = visit("three", "Bob", 375, 812, is_phone=True)
    expect(ann.locator("#others .is-bot")).to_have_count(1)
    expect(ann.locator("#ready-list .is-ready")).to_have_count(1)
    keep_screenshots(ann, artifacts, "ready-1280")
    cid = visit("three", "Cid")
    pages = [ann, bob, cid]
    for page in pages:
        expect(page.locator("#others .seat")).to_have_count(2)
        expect(page.locator("#others .is-bot")).to_have_count(0)

    ann.locator("#ready").click()
    expect(bob.locator("#ready-list .is-ready")).to_have_text(["Annready"])
    begin(bob, cid)
    wait_until_alike(ann, pages)
    dealt = [card for page in pages for card in hand(page)]
    assert len(dealt) == len(set(dealt)) == 15

    player = on_turn(pages)
    waiting = next(page for page in pages if page is not player)
    waiting.locator("#hand .card").first.click()
    expect(waiting.locator(".notice")).to_have_text("It is not your turn.")
    assert len(hand(waiting)) == 5

    for _ in range(9):
        player = on_turn(pages)
        move(player)
        wait_until_alike(player, pages)

    for page, name in ((ann, "play-1280"), (bob, "play-375")):
        assert_nothing_cut_off(page)
        keep_screenshots(page, artifacts, name)
    held = hand(bob)
    bob.reload()
    expect(bob.locator("#overlay")).to_be_hidden()
    expect(bob.locator("#hand li")).to_have_count(len(held))
    assert hand(bob) == held
    wait_until_alike(bob, pages)
    expect(ann.locator("#others .is-bot")).to_have_count(0)


def test_a_card_that_does_not_fit_is_refused_with_a_notice(visit: Visit) -> None:
    pages = [visit("refused", "Ann"), visit("refused", "Bob")]
    lay_table(pages[0], 2)
    begin(*pages)
    for _ in range(30):
        player = on_turn(pages)
        if player.locator("#hand .unfit").count() and not player.locator("#suits").is_visible():
            break
        move(player)
    held = hand(player)
    for width, height in ((1280, 800), (375, 667)):
        player.set_viewport_size({"width": width, "height": height})
        player.locator("#stock").click()
        expect(player.locator(".notice")).to_have_text("You have a card that fits: play it.")
        assert_all_in_view(player)
    player.locator("#hand .unfit").first.click(position={"x": 8, "y": 60})
    expect(player.locator(".notice")).to_have_text("That card fits neither the suit nor the rank.")
    assert hand(player) == held


def test_a_game_is_won_and_another_begins(visit: Visit, artifacts: Path) -> None:
    players = {name: visit("won", name) for name in ("Ann", "Bob", "W" * 24)}
    players["Dan"] = visit("won", "Dan", 375, 812, is_phone=True)
    pages = list(players.values())
    begin(*pages)
    for _ in range(400):
        player = next_on_turn(pages)
        if player is None:
            break
        if len(hand(player)) == 1:
            for page in pages:
                if page is not player:
                    page.locator("#stock").click()
                    expect(page.locator(".notice")).to_have_text("It is not your turn.")
        move(player)
    for page in pages:
        expect(page.locator("#lobby")).to_be_visible()
        expect(page.locator(".notice")).to_be_hidden(timeout=1_000)
    winner = next(name for name, page in players.items() if not hand(page))
    for name, page in players.items():
        title = "You win!" if name == winner else f"{winner} wins!"
        expect(page.get_by_role("heading", name=title)).to_be_visible()
        assert_nothing_cut_off(page)
        if name != "Dan":
            assert_all_in_view(page)
        if name != winner:
            expect(page.locator("#others .note", has_text="1 win")).to_have_count(1)
    keep_screenshots(players["Ann"], artifacts, "won-1280")
    keep_screenshots(players["Dan"], artifacts, "won-375")
    for page in pages:
        page.get_by_role("button", name="Play again").click()
    for page in pages:
        expect(page.locator("#hand li")).to_have_count(5)


def test_who_comes_late_by_the_second_link_gets_a_bots_cards(
    cards: DevServer, visit: Visit, artifacts: Path
) -> None:
    ann = visit("late", "Ann")
    begin(ann)
    expect(ann.locator("#others .is-bot")).to_have_count(3)
    second = ann.context.new_page()
    enter(second, cards.guest_url, "late")
    expect(second.locator("#hand li").first).to_be_visible()
    expect(ann.locator("#others .is-bot")).to_have_count(2)
    expect(second.locator("#others .seat")).to_have_count(3)
    keep_screenshots(second, artifacts, "late-1280")


def test_who_watches_sees_the_table_and_no_hand(visit: Visit) -> None:
    ann, bob = visit("watch", "Ann"), visit("watch", "Bob")
    lay_table(ann, 2)
    begin(ann, bob)
    eve = visit("watch", "Eve")
    expect(eve.locator("#me-name")).to_have_text("You watch")
    expect(eve.locator("#others .seat")).to_have_count(2)
    expect(eve.locator("#hand li")).to_have_count(0)
    expect(ann.locator("#players")).to_contain_text("Evewatching")
    move(on_turn([ann, bob]))
    top = ann.locator("#top-card").get_attribute("data-card")
    expect(eve.locator("#top-card")).to_have_attribute("data-card", str(top))
    eve.locator("#stock").click()
    expect(eve.locator(".notice")).to_have_text("It is not your turn.")


def test_who_watches_tells_guests_apart_and_is_told_of_a_seat(visit: Visit) -> None:
    guests = [visit("guests", "") for _ in range(4)]
    eve = visit("guests", "", 375, 667, is_phone=True)
    expect(eve.locator("#me")).to_contain_text("You get a seat when a player leaves")
    begin(*guests)
    names = eve.locator("#others .name")
    assert len(set(names.all_text_contents())) == 4
    for width, height in ((1280, 800), (375, 667)):
        eve.set_viewport_size({"width": width, "height": height})
        assert names.evaluate_all("all => all.every((each) => each.scrollWidth <= each.clientWidth)")
        eve.locator("#stock").click()
        expect(eve.locator(".notice")).to_have_text("It is not your turn.")
        assert_all_in_view(eve)
    guests[3].close()
    expect(eve.locator(".notice")).to_have_text("You have a seat now, and play.", timeout=20_000)
    expect(eve.locator("#hand li").first).to_be_visible()


def test_all_can_be_done_with_the_keyboard(visit: Visit) -> None:
    pages = [visit("keys", "Ann"), visit("keys", "Bob")]
    lay_table(pages[0], 2)
    for page in pages:
        page.locator("#ready").focus()
        page.keyboard.press("Enter")
    for page in pages:
        expect(page.locator("#hand li")).to_have_count(7)
    page = pages[0]
    page.locator("#hand .card").first.focus()
    page.keyboard.press("ArrowRight")
    focused = "document.activeElement.dataset.card"
    assert page.evaluate(focused) == hand(page)[1]
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == hand(page)[0]
    page.get_by_role("button", name="Sort by rank").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Sort by suit")).to_be_focused()
    for _ in range(4):
        player = on_turn(pages)
        before = player.evaluate(_TABLE)
        player.locator(MOVES).first.focus()
        player.keyboard.press("Enter")
        player.wait_for_function(f"(before) => ({_TABLE})() !== before", arg=before)


def test_names_are_text_and_nothing_else(visit: Visit) -> None:
    name = "<b onclick=x>&amp;</b>"
    ann, bob = visit("names", name), visit("names", "W" * 24, 375, 812, is_phone=True)
    expect(bob.locator("#others .name", has_text=name)).to_have_text(name)
    assert bob.locator("#others b b, #players b, #ready-list b").count() == 0
    begin(ann, bob)
    for page in (ann, bob):
        assert_nothing_cut_off(page)
    ann.reload()
    expect(ann.get_by_label("Your name")).to_have_value(name)
    ann.get_by_label("Your name").fill("")
    ann.get_by_label("Your name").press_sequentially("W" * 30)
    expect(ann.get_by_label("Your name")).to_have_value("W" * 24)


def test_a_page_shows_that_the_room_was_lost_and_has_its_hand_again(cards: DevServer, visit: Visit) -> None:
    pages = [visit("crash", "Ann"), visit("crash", "Bob", 375, 812, is_phone=True)]
    lay_table(pages[0], 2)
    begin(*pages)
    for _ in range(3):
        player = on_turn(pages)
        move(player)
        wait_until_alike(player, pages)
    held = [hand(page) for page in pages]
    # With all that runs rooms: a killed process alone would be back before anyone could look.
    cards.kill("roomhost")
    expect(pages[0].locator("#overlay")).to_be_visible()
    for page in pages:
        expect(page.locator("#overlay")).to_be_hidden()
        expect(page.locator("#hand li").first).to_be_visible()
    assert [hand(page) for page in pages] == held
    player = on_turn(pages)
    move(player)
    wait_until_alike(player, pages)
