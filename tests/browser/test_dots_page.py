"""The page of examples/dots as people see it: played in Chromium, on everything `playhall dev` starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.support.dev import DevServer

NewContext = Callable[..., BrowserContext]

# Whether a place of the board has the colour of a row of the player list. The pixels are what a visitor sees.
_SHOWS_DOT = """([x, y, row]) => {
    const swatch = document.querySelectorAll("#players .swatch")[row];
    if (!swatch) return false;
    const canvas = document.querySelector("#board");
    const at = (along) => Math.round((along / 100) * canvas.width);
    const pixel = canvas.getContext("2d").getImageData(at(x), at(y), 1, 1).data;
    const colour = getComputedStyle(swatch).backgroundColor.match(/[0-9]+/g).map(Number);
    return colour.every((channel, index) => Math.abs(channel - pixel[index]) <= 3);
}"""


def enter(page: Page, dots: DevServer, room: str, url: str | None = None) -> None:
    """Open the game and wait until it is played."""
    page.goto(f"{url or dots.url}?room={room}")
    expect(page.locator("#overlay")).to_be_hidden()


def click_board(page: Page, x: float, y: float) -> None:
    """Click a place, in the board's own measure of 0 to 100."""
    box = page.locator("#board").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * x / 100, box["y"] + box["height"] * y / 100)


def wait_for_dot(page: Page, x: float, y: float, *, row: int) -> None:
    """Wait until the dot of the player in a row of the list is drawn at a place; row 0 is the visitor."""
    page.wait_for_function(_SHOWS_DOT, arg=[x, y, row])


def assert_nothing_cut_off(page: Page) -> None:
    """Nothing is wider than the screen, and no text ends in an ellipsis that did not have to."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cut = page.evaluate(
        """() => [...document.querySelectorAll("h1, dt, dd, label, button, .hint")]
            .filter((each) => each.checkVisibility() && each.clientWidth > 0)
            .filter((each) => each.scrollWidth > each.clientWidth)
            .map((each) => each.textContent)"""
    )
    assert cut == []


@pytest.mark.ledger("RTR-14")
def test_two_visitors_see_each_other_move(dots: DevServer, new_context: NewContext, artifacts: Path) -> None:
    ann, bob = new_context().new_page(), new_context(375, 812, is_phone=True).new_page()
    enter(ann, dots, "two")
    enter(bob, dots, "two")
    expect(ann.locator("#online")).to_have_text("2")
    expect(bob.locator("#online")).to_have_text("2")

    click_board(ann, 20, 30)
    wait_for_dot(ann, 20, 30, row=0)
    wait_for_dot(bob, 20, 30, row=1)
    bob.locator("#board").tap(position={"x": 240, "y": 250})
    expect(ann.locator("#all-moves")).to_have_text("2")
    click_board(ann, 60, 15)
    wait_for_dot(ann, 60, 15, row=0)
    wait_for_dot(bob, 60, 15, row=1)
    for page in (ann, bob):
        expect(page.locator("#all-moves")).to_have_text("3")
    expect(ann.locator("#own-moves")).to_have_text("2")
    expect(bob.locator("#own-moves")).to_have_text("1")

    for page, name in ((ann, "dots-1280.png"), (bob, "dots-375.png")):
        assert_nothing_cut_off(page)
        page.screenshot(path=artifacts / name)


def test_a_name_is_shown_to_others_and_kept(dots: DevServer, new_context: NewContext) -> None:
    ann, bob = new_context().new_page(), new_context().new_page()
    enter(ann, dots, "names")
    enter(bob, dots, "names")
    ann.get_by_label("Your name").fill("Ann of Avonlea")
    ann.get_by_role("button", name="Save").click()
    expect(bob.locator("#players")).to_contain_text("Ann of Avonlea")
    ann.reload()
    expect(ann.locator("#players li").first).to_contain_text("Ann of Avonlea")
    expect(ann.get_by_label("Your name")).to_have_value("Ann of Avonlea")


@pytest.mark.parametrize(("width", "height", "is_phone"), [(375, 812, True), (1280, 800, False)])
@pytest.mark.parametrize("name", ["W" * 24, "\N{GRINNING FACE}" * 24], ids=["letters", "emoji"])
def test_the_widest_name_moves_nothing(
    dots: DevServer, new_context: NewContext, name: str, width: int, height: int, is_phone: bool
) -> None:
    page = new_context(width, height, is_phone=is_phone).new_page()
    enter(page, dots, f"wide-{ord(name[0])}-{width}")
    board = page.locator("#board").bounding_box()
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#players li")).to_contain_text(name)
    assert_nothing_cut_off(page)
    too_wide = "all => all.filter(each => each.getBoundingClientRect().right > innerWidth).length"
    assert page.locator("body *").evaluate_all(too_wide) == 0
    assert page.locator("#board").bounding_box() == board


def test_a_name_is_cut_between_characters_and_stays_so(dots: DevServer, new_context: NewContext) -> None:
    family = "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
    page = new_context().new_page()
    enter(page, dots, "cut")
    page.get_by_label("Your name").fill(family * 8)
    page.get_by_role("button", name="Save").click()
    # 24 code points are kept, of five each: four families, and no part of a fifth.
    expect(page.get_by_label("Your name")).to_have_value(family * 4)
    expect(page.locator("#players .who")).to_have_text(family * 4)


@pytest.mark.ledger("RECO-14")
def test_a_guest_stays_the_same_player_over_a_reload(dots: DevServer, new_context: NewContext) -> None:
    context = new_context()
    page = context.new_page()
    enter(page, dots, "guests")
    click_board(page, 40, 40)
    expect(page.locator("#own-moves")).to_have_text("1")
    page.reload()
    expect(page.locator("#overlay")).to_be_hidden()
    expect(page.locator("#own-moves")).to_have_text("1")
    expect(page.locator("#players li")).to_have_count(1)
    wait_for_dot(page, 40, 40, row=0)


@pytest.mark.ledger("CODE-13", "RECO-07", "RECO-14")
def test_a_second_tab_takes_over_and_the_first_says_so(dots: DevServer, new_context: NewContext) -> None:
    context = new_context()
    first, second = context.new_page(), context.new_page()
    enter(first, dots, "tabs")
    enter(second, dots, "tabs")
    expect(first.get_by_role("heading", name="Playing in another tab")).to_be_visible()
    expect(second.locator("#players li")).to_have_count(1)
    first.get_by_role("button", name="Play here").click()
    expect(first.locator("#overlay")).to_be_hidden()
    expect(second.get_by_role("heading", name="Playing in another tab")).to_be_visible()


def test_the_second_link_joins_as_another_guest(dots: DevServer, new_context: NewContext) -> None:
    context = new_context()
    first, second = context.new_page(), context.new_page()
    enter(first, dots, "links")
    enter(second, dots, "links", dots.guest_url)
    expect(first.locator("#online")).to_have_text("2")
    expect(second.locator("#online")).to_have_text("2")


def test_the_arrow_keys_move_the_dot_and_not_the_text(dots: DevServer, new_context: NewContext) -> None:
    page = new_context().new_page()
    enter(page, dots, "keys")
    click_board(page, 50, 50)
    expect(page.locator("#own-moves")).to_have_text("1")
    page.locator("#board").focus()
    for _ in range(30):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#own-moves")).to_have_text("31")
    page.get_by_label("Your name").focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_label("Your name").blur()
    click_board(page, 50, 51)
    expect(page.locator("#own-moves")).to_have_text("32")


def test_a_drag_takes_the_dot_along(dots: DevServer, new_context: NewContext) -> None:
    page = new_context().new_page()
    enter(page, dots, "drag")
    box = page.locator("#board").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.7, steps=10)
    page.mouse.up()
    wait_for_dot(page, 80, 70, row=0)


@pytest.mark.parametrize(("width", "height", "is_phone"), [(375, 812, True), (1280, 800, False)])
def test_a_page_without_a_server_says_that_it_connects(
    dots: DevServer, new_context: NewContext, artifacts: Path, width: int, height: int, is_phone: bool
) -> None:
    page = new_context(width, height, is_phone=is_phone).new_page()
    page.route("**/endpoints", lambda route: route.abort())
    page.goto(dots.url)
    expect(page.get_by_role("heading", name="Connecting")).to_be_visible()
    assert_nothing_cut_off(page)
    page.screenshot(path=artifacts / f"dots-connecting-{width}.png")


def test_a_page_that_gets_no_answer_says_so_after_a_while(dots: DevServer, new_context: NewContext) -> None:
    page = new_context().new_page()
    page.clock.install()
    page.route("**/endpoints", lambda route: route.abort())
    page.goto(dots.url)
    expect(page.locator("#overlay")).to_contain_text("Finding the room.")
    page.clock.fast_forward(5_000)
    expect(page.locator("#overlay")).to_contain_text("No answer from the server yet; trying again.")
