// Where everything is between two updates: on its way, at the speed it was seen to have.

const TICK_MS = 50;
/** Nothing goes on by itself for longer than so many ticks, should updates stay away. */
const TRUST_TICKS = 6;
/** How fast what is drawn closes in on where it should be. */
const EASE_MS = 110;
/** What is further from where it was has begun anew somewhere else. */
const JUMP = 120;
const FADE_MS = 450;

/** A fish or a light as it is drawn. */
export class Swimmer {
  /** Where it is drawn, and which way it swims. */
  x: number;
  y: number;
  angle: number;
  vx = 0;
  vy = 0;
  /** From 0 to 1, as it comes in sight. */
  presence = 0;
  /** Where its fins are, in radians. */
  phase: number;
  #toldX: number;
  #toldY: number;
  #toldAt: number;
  #toldTick: number;

  constructor(id: number, x: number, y: number, tick: number, now: number) {
    this.x = this.#toldX = x;
    this.y = this.#toldY = y;
    this.#toldAt = now;
    this.#toldTick = tick;
    this.phase = (id * 2.399) % 6.283;
    this.angle = this.phase;
  }

  /** The room said where it is. `tickMs` is how long a tick takes. */
  told(x: number, y: number, tick: number, now: number, tickMs: number): void {
    const dx = x - this.#toldX;
    const dy = y - this.#toldY;
    if (Math.abs(dx) + Math.abs(dy) > JUMP) {
      this.x = x;
      this.y = y;
      this.vx = this.vy = this.presence = 0;
    } else {
      const ms = Math.max(1, tick - this.#toldTick) * tickMs;
      this.vx += (dx / ms - this.vx) * 0.6;
      this.vy += (dy / ms - this.vy) * 0.6;
    }
    this.#toldX = x;
    this.#toldY = y;
    this.#toldAt = now;
    this.#toldTick = tick;
  }

  /** Swim for so many milliseconds. */
  swim(elapsed: number, now: number, tickMs: number): void {
    const trust = TRUST_TICKS * tickMs;
    const age = Math.min(now - this.#toldAt, trust);
    this.#close(
      this.#toldX + this.vx * age,
      this.#toldY + this.vy * age,
      age < trust ? elapsed : 0,
      elapsed,
      EASE_MS,
    );
  }

  /** Swim as its player steers it, in units a millisecond, and let the room mend that softly. */
  swimAsSteered(
    vx: number,
    vy: number,
    elapsed: number,
    now: number,
    tickMs: number,
  ): void {
    const age = Math.min(now - this.#toldAt, TRUST_TICKS * tickMs);
    this.vx = vx;
    this.vy = vy;
    const aheadX = this.#toldX + vx * age;
    const aheadY = this.#toldY + vy * age;
    this.#close(aheadX, aheadY, elapsed, elapsed, EASE_MS * 3);
  }

  #close(
    x: number,
    y: number,
    moving: number,
    elapsed: number,
    easeMs: number,
  ): void {
    this.x += this.vx * moving;
    this.y += this.vy * moving;
    const share = 1 - Math.exp(-elapsed / easeMs);
    this.x += (x - this.x) * share;
    this.y += (y - this.y) * share;
    const speed = Math.hypot(this.vx, this.vy);
    this.phase += elapsed * (0.006 + speed * 0.11);
    this.presence = Math.min(1, this.presence + elapsed / FADE_MS);
    if (speed < 0.004) return;
    const turn = Math.atan2(this.vy, this.vx) - this.angle;
    const shorter = Math.atan2(Math.sin(turn), Math.cos(turn));
    this.angle += shorter * (1 - Math.exp(-elapsed / 120));
  }
}

/** How long a tick takes here, which is more than it should where the room is slow. */
export class TickLength {
  ms = TICK_MS;
  #tick = 0;
  #at = 0;

  seen(tick: number, now: number): void {
    const ticks = tick - this.#tick;
    const took = (now - this.#at) / ticks;
    if (ticks > 0 && ticks < 20 && took < 1_000)
      this.ms += (Math.max(took, TICK_MS * 0.5) - this.ms) * 0.05;
    this.#tick = tick;
    this.#at = now;
  }
}
