"""The page of examples/swarm as people see it: played in Chromium, on everything `playhall dev` starts."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, expect

from tests.support.dev import DevServer, dev_server

NewContext = Callable[..., BrowserContext]
Visit = Callable[..., Page]
Place = tuple[float, float]

#: One sea for all: each has five thousand fish, whether anybody looks or not.
ROOM = "main"
#: The room is slow where the engine is pure and the machine busy.
WAIT_MS = 15_000
# What a page is given at its first update, and what only time or fish bring.
BEGIN = 40
# Counts, on a still of the sea, pixels as bright as a fish or a light, and sums up their places.
_SHINING = """async (still) => {
    const image = new Image();
    image.src = "data:image/png;base64," + still;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    let count = 0, places = 0;
    for (let at = 0; at < data.length; at += 4)
        if (Math.max(data[at], data[at + 1], data[at + 2]) > 140) { count++; places += (at >> 2) % 9973; }
    return [count, places];
}"""


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """The swarm game, served."""
    with dev_server(tmp_path_factory.mktemp("dev"), "swarm") as server:
        yield server


@pytest.fixture
def visit(swarm: DevServer, new_context: NewContext) -> Iterator[Visit]:
    """Opens the game for somebody new, in its sea. What a page says in the console fails the test."""
    said: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        # A screenshot of WebGL makes the driver say that reading pixels is slow.
        if message.type in ("error", "warning") and "GL Driver Message" not in message.text:
            said.append(message.text)

    def open_page(width: int = 1280, height: int = 800, *, is_phone: bool = False) -> Page:
        page = new_context(width, height, is_phone=is_phone).new_page()
        page.on("console", hear)
        page.goto(f"{swarm.url}?room={ROOM}")
        expect(page.locator("#overlay")).to_be_hidden(timeout=WAIT_MS)
        expect(page.locator("#glow")).not_to_have_text("–")
        return page

    yield open_page
    assert said == []


def shining(page: Page) -> tuple[int, int]:
    """How many pixels of the sea shine, and a number that tells two pictures apart."""
    only_sea = "body > :not(#sea) { visibility: hidden }"
    still = page.screenshot(style=only_sea)
    count, places = page.evaluate(_SHINING, base64.b64encode(still).decode())
    return count, places


def number(page: Page, selector: str) -> int:
    return int(page.locator(selector).inner_text())


def call_oneself(swarm: DevServer, page: Page, name: str) -> Place:
    """Take a name; return where the light is that has it then."""
    page.get_by_label("Your name").fill(name)
    page.get_by_label("Your name").press("Enter")
    expect(page.locator("#sea")).to_be_focused()
    for _ in range(WAIT_MS // 100):
        place = light_of(swarm, name)
        if place is not None:
            return place
        page.wait_for_timeout(100)
    raise AssertionError(f"no light is called {name}")


def light_of(swarm: DevServer, name: str) -> Place | None:
    """Where a person's light is in the room."""
    address = f"{swarm.url}v1/dev/rooms/swarm/{ROOM}?kind=light&limit=500"
    with urllib.request.urlopen(address, timeout=10) as answer:
        lights = json.load(answer)["entities"]["items"]
    found = [light["fields"] for light in lights if light["fields"]["name"] == name]
    return (float(found[0]["x"]), float(found[0]["y"])) if found else None


def wait_until_moved(page: Page, swarm: DevServer, name: str, before: Place) -> Place:
    """Wait until a person's light is somewhere else, and return where."""
    for _ in range(WAIT_MS // 100):
        now = light_of(swarm, name)
        if now is not None and abs(now[0] - before[0]) + abs(now[1] - before[1]) > 10:
            return now
        page.wait_for_timeout(100)
    raise AssertionError(f"the light of {name} stayed where it was")


def test_fish_and_lights_are_drawn_and_swim(visit: Visit, artifacts: Path) -> None:
    page = visit()
    expect(page).to_have_title("Swarm")
    expect(page.locator("#leaders li")).to_have_count(8)
    expect(page.locator("#rank")).to_contain_text("of 20")
    page.wait_for_function("document.querySelectorAll('#labels span:not([hidden])').length > 0")
    count, places = shining(page)
    assert count > 2_000
    page.wait_for_timeout(300)
    later, elsewhere = shining(page)
    assert later > 2_000
    assert (later, elsewhere) != (count, places)
    page.screenshot(path=artifacts / "swarm-1280.png")


def test_a_player_swims_and_catches_fish(swarm: DevServer, visit: Visit, artifacts: Path) -> None:
    page = visit()
    before = call_oneself(swarm, page, "Ann")
    page.keyboard.down("ArrowRight" if before[0] < 800 else "ArrowLeft")
    there = wait_until_moved(page, swarm, "Ann", before)
    assert (there[0] > before[0]) is (before[0] < 800)
    for _ in range(40):
        if number(page, "#best") > BEGIN:
            break
        for key in ("ArrowUp", "ArrowDown"):
            page.keyboard.down(key)
            page.wait_for_timeout(600)
            page.keyboard.up(key)
    assert number(page, "#best") > BEGIN
    page.screenshot(path=artifacts / "swarm-play-1280.png")


def test_the_pointer_steers(swarm: DevServer, visit: Visit) -> None:
    page = visit()
    before = call_oneself(swarm, page, "Pia")
    page.mouse.move(640, 700 if before[1] < 800 else 60)
    there = wait_until_moved(page, swarm, "Pia", before)
    assert (there[1] > before[1]) is (before[1] < 800)


def test_who_comes_begins_near_somebody_and_they_see_each_other(swarm: DevServer, visit: Visit) -> None:
    ann = visit()
    call_oneself(swarm, ann, "Cleo")
    bob = visit()
    call_oneself(swarm, bob, "Dido")
    for page, other in ((ann, "Dido"), (bob, "Cleo")):
        expect(page.locator("#labels span:not([hidden])", has_text=other)).to_be_visible(timeout=WAIT_MS)
        page.wait_for_function("Number(document.querySelector('#people').textContent) >= 2")


def test_on_a_phone_a_finger_steers_and_all_fits(swarm: DevServer, visit: Visit, artifacts: Path) -> None:
    page = visit(375, 812, is_phone=True)
    before = call_oneself(swarm, page, "Eve")
    touch = page.context.new_cdp_session(page)
    at = {"x": 187, "y": 620 if before[1] < 800 else 330}
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [at]})
    there = wait_until_moved(page, swarm, "Eve", before)
    assert (there[1] > before[1]) is (before[1] < 800)
    page.screenshot(path=artifacts / "swarm-375.png")
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(page.get_by_role("button", name="Dash")).to_be_visible()
    boxes = page.locator("header, .leaders, #map, #how, #own, #dash").evaluate_all(
        "all => all.map((each) => [each.id || each.className || each.tagName, each.getBoundingClientRect()])"
    )
    for name, box in boxes:
        assert box["left"] >= 0, name
        assert box["right"] <= 375, name
        assert box["bottom"] <= 812, name
        for other, over in boxes:
            is_beside = box["right"] <= over["left"] or over["right"] <= box["left"]
            is_apart = is_beside or box["bottom"] <= over["top"] or over["bottom"] <= box["top"]
            assert name == other or is_apart, (name, other)
    count, _ = shining(page)
    assert count > 2_000


def test_a_page_shows_that_the_room_was_lost_and_has_its_light_again(swarm: DevServer, visit: Visit) -> None:
    page = visit()
    before = call_oneself(swarm, page, "Fay")
    best = number(page, "#best")
    # With all that runs rooms: a killed process alone would be back before anyone could look.
    swarm.kill("roomhost")
    expect(page.locator("#overlay")).to_be_visible()
    expect(page.locator("#overlay")).to_be_hidden(timeout=2 * WAIT_MS)
    expect(page.locator("#rank")).to_contain_text("of 20")
    after = light_of(swarm, "Fay")
    assert after is not None
    assert abs(after[0] - before[0]) + abs(after[1] - before[1]) < 50
    assert number(page, "#best") >= best
    count, _ = shining(page)
    assert count > 2_000
