// The time that whose turn it is has left, as a bar that gets shorter.

import { find } from "./dom.js";
import type { Room } from "./players.js";
import { TICK_RATE, TURN_S } from "./shared.gen.js";

/** Show the time left, with whoever is on turn, and as a number where that is this page's player. */
export function showClock(room: Room): void {
  if (room.status !== "open" || room.state.phase !== "playing") return;
  const left = Math.max(
    0,
    (room.state.turn_until - room.serverTick()) / TICK_RATE,
  );
  for (const clock of document.querySelectorAll<HTMLElement>(
    ".on-turn .clock",
  )) {
    clock.style.setProperty("--left", String(Math.min(1, left / TURN_S)));
    clock.classList.toggle("short", left < 8);
  }
  find("#me-turn").dataset["left"] = `${Math.ceil(left)} s`;
}
