"""A real Chromium, and `playhall dev` with a copy of examples/dots for each module of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.support.dev import DevServer, dev_server

CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ARTIFACTS = Path(__file__).parent.parent / "artifacts" / "browser"
WAIT_MS = 15_000

NewContext = Callable[..., BrowserContext]


@pytest.fixture(scope="module")
def dots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """The dots game, served."""
    with dev_server(tmp_path_factory.mktemp("dev")) as server:
        yield server


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def new_context(browser: Browser) -> Iterator[NewContext]:
    """Makes contexts: visitors who share nothing. An error on one of their pages fails the test."""
    contexts: list[BrowserContext] = []
    errors: list[str] = []

    def make(width: int = 1280, height: int = 800, *, is_phone: bool = False) -> BrowserContext:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            device_scale_factor=2 if is_phone else 1,
            has_touch=is_phone,
            is_mobile=is_phone,
        )
        context.set_default_timeout(WAIT_MS)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Where screenshots are kept, for people to look at."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return ARTIFACTS
