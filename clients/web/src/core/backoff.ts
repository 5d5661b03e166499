// When a client comes back (docs/protocol/flow.md, Close). Times are in milliseconds.

import { CLOSES, type CloseCode, type Reconnect } from "../gen/codes.js";

const FIRST_MS = 250;
const LONGEST_MS = 10_000;
/** A connection that lasted this long was a good one: the next loss starts over. */
const STEADY_MS = 10_000;

/** What to do about a close code. */
export function reconnectOf(code: number): Reconnect {
  return CLOSES[code as CloseCode]?.reconnect ?? "backoff";
}

/** The milliseconds a server asks to wait, from a close reason, and the text for people. */
export function parseReason(reason: string): { retryAfterMs: number; text: string } {
  const match = /^retry-after=(\d{1,12});(.*)$/s.exec(reason);
  return match === null ? { retryAfterMs: 0, text: reason } : { retryAfterMs: Number(match[1]), text: match[2]! };
}

export class Backoff {
  readonly #random: () => number;
  #interval = FIRST_MS;
  #hurried = false;
  #connectedAt: number | null = null;

  /** `random` gives numbers from 0 up to 1. */
  constructor(random: () => number) {
    this.#random = random;
  }

  connected(now: number): void {
    this.#connectedAt = now;
  }

  /** How long to wait before the next attempt. Each wait is drawn from the whole interval, so that a crowd spreads. */
  next(code: number, retryAfterMs: number, now: number): number {
    if (this.#connectedAt !== null && now - this.#connectedAt >= STEADY_MS) {
      this.#interval = FIRST_MS;
      this.#hurried = false;
    }
    this.#connectedAt = null;
    const hurry = reconnectOf(code) === "now" && !this.#hurried;
    const interval = hurry ? FIRST_MS : this.#interval;
    if (hurry) this.#hurried = true;
    else this.#interval = Math.min(LONGEST_MS, this.#interval * 2);
    return retryAfterMs + this.#random() * interval;
  }
}
