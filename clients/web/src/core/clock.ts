// The room's tick as a client guesses it (docs/protocol/flow.md, Clock). Times are in milliseconds.

const KEPT_SAMPLES = 8;
/** The guess may run this much faster or slower than time to catch up. */
const MAX_SLEW = 0.05;
const JUMP_MS = 250;
const FRACTIONS = 256;

interface Sample {
  readonly rtt: number;
  /** The room's tick less the ticks that passed since time 0. */
  readonly offset: number;
}

export class RoomClock {
  #ticksPerMs = 0;
  #samples: Sample[] = [];
  #offset = 0;
  #target = 0;
  #slewedAt = 0;

  /** Begin anew: a room said where it is, at an unknown distance. */
  start(tick: number, fraction: number, tickRate: number, now: number): void {
    this.#ticksPerMs = tickRate / 1_000;
    this.#samples = [];
    this.#offset = this.#target = tick + fraction / FRACTIONS - now * this.#ticksPerMs;
    this.#slewedAt = now;
  }

  /** A pong told the room's tick; the request left `rtt` ago, and the answer is taken to be half as old. */
  sample(tick: number, fraction: number, rtt: number, now: number): void {
    this.#slew(now);
    const isFirst = this.#samples.length === 0;
    const offset = tick + fraction / FRACTIONS - (now - rtt / 2) * this.#ticksPerMs;
    this.#samples = [...this.#samples, { rtt, offset }].slice(-KEPT_SAMPLES);
    this.#target = this.#best().offset;
    if (isFirst || Math.abs(this.#target - this.#offset) > JUMP_MS * this.#ticksPerMs) this.#offset = this.#target;
  }

  #best(): Sample {
    return this.#samples.reduce((best, sample) => (sample.rtt < best.rtt ? sample : best));
  }

  #slew(now: number): void {
    const most = Math.max(0, now - this.#slewedAt) * this.#ticksPerMs * MAX_SLEW;
    this.#offset += Math.min(most, Math.max(-most, this.#target - this.#offset));
    this.#slewedAt = now;
  }

  /** The room's tick now, with its fraction. */
  tick(now: number): number {
    this.#slew(now);
    return this.#offset + now * this.#ticksPerMs;
  }

  /** The lowest round trip of late, in ms, or 0 before the first answer. */
  get rtt(): number {
    return this.#samples.length === 0 ? 0 : this.#best().rtt;
  }
}
