"""The page of examples/swarm: how much script a frame takes, by Chromium's trace, in the middle of play.

    .venv/bin/python benchmarks/swarm_page.py [SECONDS]

`playhall dev` serves the game, and Chromium plays it for SECONDS (12 if not given), the mouse going round and
the light dashing now and then. A frame's script is all that the page's main thread spends in scripts and in
collecting their garbage from one animation frame to the next, in CPU time of that thread; `_wall` is by the
clock, with what other processes took meanwhile. Frames per second are this machine's, which may draw WebGL in
software.

Prints JSON lines. Exits 1 where the median is over its budget.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.dev import dev_server
from tools import find_chromium

BUDGET_MS = 8.0
SECONDS = 12.0
SETTLE_S = 6.0
WIDTH, HEIGHT = 1280, 800
FLAGS = ["--no-sandbox", "--no-first-run"]
CATEGORIES = ["devtools.timeline", "v8", "v8.execute", "blink.user_timing", "__metadata"]
FRAME = "FireAnimationFrame"
SCRIPT = {
    FRAME, "FunctionCall", "EvaluateScript", "v8.callFunction", "RunMicrotasks", "TimerFire", "EventDispatch",
    "MinorGC", "MajorGC", "V8.GCScavenger", "V8.GCIncrementalMarking",
}  # fmt: skip

Event = dict[str, Any]


def play(page: Page, seconds: float) -> None:
    """Steer in circles, slowly and fast; dash at the end of each."""
    begun = time.monotonic()
    while (past := time.monotonic() - begun) < seconds:
        part = past % 6.0
        radius = 60 if part < 2.5 else 300
        angle = past * 0.6
        page.mouse.move(WIDTH / 2 + radius * math.cos(angle), HEIGHT / 2 + radius * math.sin(angle))
        (page.keyboard.down if part > 4.5 else page.keyboard.up)(" ")
        page.wait_for_timeout(100)


def record(seconds: float) -> list[Event]:
    """Play, and return what Chromium traced."""
    path = find_chromium.find()
    if path is None:
        raise SystemExit(find_chromium.HOW_TO_INSTALL)
    with (
        tempfile.TemporaryDirectory(prefix="playhall-bench-") as folder,
        dev_server(Path(folder), "swarm") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(server.url)
        page.wait_for_selector("#overlay", state="hidden")
        play(page, SETTLE_S)
        browser.start_tracing(page=page, categories=CATEGORIES)
        play(page, seconds)
        trace = json.loads(browser.stop_tracing())
        browser.close()
    events: list[Event] = trace["traceEvents"]
    return events


def main_thread(events: list[Event]) -> list[Event]:
    """The finished events of the thread that runs animation frames, in order."""
    count: dict[tuple[int, int], int] = {}
    for event in events:
        if event["name"] == FRAME:
            thread = event["pid"], event["tid"]
            count[thread] = count.get(thread, 0) + 1
    if not count:
        raise SystemExit("the trace has no animation frame")
    thread = max(count, key=lambda thread: count[thread])
    own = [event for event in events if event.get("ph") == "X" and (event["pid"], event["tid"]) == thread]
    return sorted(own, key=lambda event: (event["ts"], -event["dur"]))


def outermost(events: list[Event]) -> Iterator[Event]:
    """Those of scripts that are not within another."""
    end = -math.inf
    for event in events:
        if event["name"] in SCRIPT and event["ts"] >= end:
            end = event["ts"] + event["dur"]
            yield event


def frames_of(events: list[Event]) -> tuple[list[float], list[float], float]:
    """Return each frame's script in ms of CPU time, the same by the clock, and how many frames a second."""
    starts = [event["ts"] for event in events if event["name"] == FRAME]
    # Several callbacks of one frame run back to back; this page has one.
    cpu, wall = [0.0] * len(starts), [0.0] * len(starts)
    frame = -1
    for event in outermost(events):
        while frame + 1 < len(starts) and starts[frame + 1] <= event["ts"]:
            frame += 1
        if frame >= 0:
            cpu[frame] += event["tdur"] / 1_000
            wall[frame] += event["dur"] / 1_000
    # The last one may have been cut.
    return cpu[:-1], wall[:-1], (len(starts) - 1) / ((starts[-1] - starts[0]) / 1e6)


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    cpu, wall, rate = frames_of(main_thread(record(seconds)))
    median = statistics.median(cpu)
    figures = {
        "swarm_script_ms_p95": p95(cpu),
        "swarm_script_ms_p50_wall": statistics.median(wall),
        "swarm_script_ms_p95_wall": p95(wall),
        "swarm_frames_per_second": rate,
    }
    print(json.dumps({"metric": "swarm_script_ms_p50", "value": round(median, 3), "budget": BUDGET_MS}))
    for name, value in figures.items():
        print(json.dumps({"metric": name, "value": round(value, 3)}))
    return 0 if median <= BUDGET_MS else 1


if __name__ == "__main__":
    sys.exit(main())
