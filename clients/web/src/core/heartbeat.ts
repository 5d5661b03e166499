// Pings, and the silence after which a connection counts as lost. Times are in milliseconds.

const PING_MS = 2_000;
/** The first few come faster: they set the clock. */
const QUICK_PING_MS = 500;
const QUICK_PINGS = 4;
const SILENCE_MS = 15_000;

export class Heartbeat {
  #sent = 0;
  #pingAt = Infinity;
  #heardAt = 0;
  /** When each ping without an answer left, by nonce, oldest first. Silence bounds it. */
  readonly #unanswered = new Map<number, number>();

  start(now: number): void {
    this.#sent = 0;
    this.#unanswered.clear();
    this.#pingAt = now;
    this.#heardAt = now;
  }

  stop(): void {
    this.#pingAt = Infinity;
  }

  heard(now: number): void {
    this.#heardAt = now;
  }

  isSilent(now: number): boolean {
    return this.#pingAt !== Infinity && now - this.#heardAt >= SILENCE_MS;
  }

  /** The nonce of the ping that is due, or null. */
  due(now: number): number | null {
    if (now < this.#pingAt) return null;
    this.#unanswered.set(++this.#sent, now);
    this.#pingAt = now + (this.#sent < QUICK_PINGS ? QUICK_PING_MS : PING_MS);
    return this.#sent;
  }

  /** The round trip that a pong ends; null if nothing was asked with that nonce. */
  roundTrip(nonce: number, now: number): number | null {
    const sentAt = this.#unanswered.get(nonce);
    this.#unanswered.delete(nonce);
    return sentAt === undefined ? null : now - sentAt;
  }

  next(): number {
    return Math.min(this.#pingAt, this.#pingAt === Infinity ? Infinity : this.#heardAt + SILENCE_MS);
  }
}
