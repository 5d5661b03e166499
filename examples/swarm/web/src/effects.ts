// Sparks and rings: what is only there to be looked at, and known to nobody else.

import { Shape, type Colour, type Sprites } from "./sprites.js";

const MOST_SPARKS = 700;
const MOTES = 150;
/** Motes are repeated over the sea in squares of this length. */
const MOTE_TILE = 620;
const MOTE_COLOUR: Colour = [0.35, 0.62, 0.8];

interface Spark {
  x: number;
  y: number;
  vx: number;
  vy: number;
  age: number;
  readonly life: number;
  readonly size: number;
  readonly colour: Colour;
  readonly isRing: boolean;
}

const random = (from: number, to: number): number =>
  from + Math.random() * (to - from);

export class Effects {
  #sparks: Spark[] = [];
  readonly #still = matchMedia("(prefers-reduced-motion: reduce)");
  readonly #motes = Array.from({ length: MOTES }, () => ({
    x: random(0, MOTE_TILE),
    y: random(0, MOTE_TILE),
    depth: random(0.35, 0.95),
    phase: random(0, 6.3),
  }));

  /** A fish was caught: it bursts, and what is left of it is drawn to the light. */
  burst(x: number, y: number, toX: number, toY: number, colour: Colour): void {
    for (let count = 0; count < 7; count++)
      this.#add({
        x,
        y,
        vx: (toX - x) * 2.2 + random(-45, 45),
        vy: (toY - y) * 2.2 + random(-45, 45),
        age: 0,
        life: random(0.25, 0.6),
        size: random(1.6, 3.4),
        colour,
        isRing: false,
      });
  }

  /** What a light leaves behind. */
  trail(x: number, y: number, spread: number, colour: Colour): void {
    this.#add({
      x: x + random(-spread, spread),
      y: y + random(-spread, spread),
      vx: random(-6, 6),
      vy: random(-6, 6),
      age: 0,
      life: random(0.5, 1.3),
      size: random(1, 2.6),
      colour,
      isRing: false,
    });
  }

  ring(x: number, y: number, size: number, colour: Colour): void {
    const still = { vx: 0, vy: 0, age: 0, isRing: true };
    this.#add({ x, y, size, colour, life: 0.55, ...still });
  }

  #add(spark: Spark): void {
    if (!this.#still.matches && this.#sparks.length < MOST_SPARKS)
      this.#sparks.push(spark);
  }

  /** Let so many seconds pass, and draw what is left. */
  draw(sprites: Sprites, elapsed: number): void {
    const drag = Math.exp(-2.4 * elapsed);
    let kept = 0;
    for (const spark of this.#sparks) {
      spark.age += elapsed;
      if (spark.age >= spark.life) continue;
      this.#sparks[kept++] = spark;
      spark.vx *= drag;
      spark.vy *= drag;
      spark.x += spark.vx * elapsed;
      spark.y += spark.vy * elapsed;
      const left = 1 - spark.age / spark.life;
      const { x, y, size, colour } = spark;
      if (spark.isRing)
        sprites.add(
          Shape.RING,
          x,
          y,
          size * (2 - left),
          colour,
          left * left * 0.5,
        );
      else sprites.add(Shape.SPARK, x, y, size * (0.4 + left), colour, left);
    }
    this.#sparks.length = kept;
  }

  /** What drifts in the water, nearer and farther: it shows that one moves. */
  drawMotes(
    sprites: Sprites,
    x: number,
    y: number,
    halfWidth: number,
    halfHeight: number,
    time: number,
  ): void {
    for (const mote of this.#motes) {
      const drift = this.#still.matches ? 0 : time * 3 * mote.depth;
      // Deeper ones follow the eye.
      const dx = wrapped(mote.x + drift - x * mote.depth);
      const dy = wrapped(
        mote.y + Math.sin(time * 0.3 + mote.phase) * 8 - y * mote.depth,
      );
      if (Math.abs(dx) > halfWidth || Math.abs(dy) > halfHeight) continue;
      const twinkle = 0.14 + 0.1 * Math.sin(time * 1.3 + mote.phase);
      const size = 0.9 + 1.7 * mote.depth;
      sprites.add(Shape.SPARK, x + dx, y + dy, size, MOTE_COLOUR, twinkle);
    }
  }
}

/** The same place in the tile around 0. */
function wrapped(at: number): number {
  const inside = at % MOTE_TILE;
  return inside > MOTE_TILE / 2
    ? inside - MOTE_TILE
    : inside < -MOTE_TILE / 2
      ? inside + MOTE_TILE
      : inside;
}
