"""What players of examples/dots see when its code changes under them, or the process it runs in."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.support.dev import DevServer

NewContext = Callable[..., BrowserContext]


def test_a_killed_room_host_is_a_short_interruption(dots: DevServer, new_context: NewContext) -> None:
    page = new_context().new_page()
    page.goto(f"{dots.url}?room=killed")
    expect(page.locator("#overlay")).to_be_hidden()
    page.get_by_label("Your name").fill("Ann")
    page.get_by_role("button", name="Save").click()
    page.locator("#board").click(position={"x": 100, "y": 100})
    expect(page.locator("#own-moves")).to_have_text("1")

    page.evaluate(
        """() => {
            window.seen = [];
            const overlay = document.querySelector("#overlay");
            const title = document.querySelector("#overlay-title");
            const look = () => seen.push(overlay.hidden ? "" : title.textContent);
            new MutationObserver(look).observe(overlay, { attributes: true, subtree: true, childList: true });
        }"""
    )
    os.kill(dots.room_host_pids()[0], signal.SIGKILL)
    page.wait_for_function("window.seen.includes('Connection lost') && window.seen.at(-1) === ''")
    page.locator("#board").click(position={"x": 200, "y": 100})
    expect(page.locator("#own-moves")).to_have_text("2")
    expect(page.locator("#players li")).to_have_count(1)
    # The room forgot the names with the process; the page said its own again.
    expect(page.locator("#players")).to_contain_text("Ann")


@pytest.mark.ledger("CENT-10", "CODE-05", "MIG-15")
def test_a_page_of_an_older_build_reloads_itself(dots: DevServer, new_context: NewContext) -> None:
    page = new_context().new_page()
    page.goto(f"{dots.url}?room=reload")
    expect(page.locator("#overlay")).to_be_hidden()
    page.locator("#board").click(position={"x": 100, "y": 100})
    expect(page.locator("#all-moves")).to_have_text("1")

    page.evaluate("window.isOld = true")
    shared = dots.folder / "shared.py"
    shared.write_text(shared.read_text().replace("    y: f32\n", "    y: f32\n    hue: u32 = 0\n"))
    page.wait_for_function("window.isOld === undefined && document.querySelector('#overlay').hidden")
    expect(page.locator("#all-moves")).to_have_text("1")
    assert "hue" in (dots.folder / "web/src/shared.gen.ts").read_text()
