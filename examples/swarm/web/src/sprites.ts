// What one frame shows, as numbers for the graphics card. The arrays are used again for the next frame.

import { MOST_HALOS } from "./shaders.js";

export type Colour = readonly [red: number, green: number, blue: number];

export const Shape = { FISH: 0, GLOW: 1, SPARK: 2, RING: 3, LIGHT: 4 } as const;

export const MOST_SPRITES = 4_096;
/** Each sprite: place, angle and size; colour and strength; shape and phase. */
export const FLOATS = 10;

export class Sprites {
  readonly data = new Float32Array(MOST_SPRITES * FLOATS);
  count = 0;
  /** For each halo its place, how far it goes and how strong it is. */
  readonly halos = new Float32Array(MOST_HALOS * 4);
  readonly hues = new Float32Array(MOST_HALOS * 3);
  #haloCount = 0;

  clear(): void {
    this.count = 0;
    this.#haloCount = 0;
    this.halos.fill(1);
    for (let at = 3; at < this.halos.length; at += 4) this.halos[at] = 0;
  }

  /** Add one, with its place and half its length in units of the sea. What is too much is left out. */
  add(
    shape: number,
    x: number,
    y: number,
    size: number,
    [red, green, blue]: Colour,
    alpha: number,
    angle = 0,
    phase = 0,
  ): void {
    if (this.count === MOST_SPRITES) return;
    const { data } = this;
    const at = this.count++ * FLOATS;
    data[at] = x;
    data[at + 1] = y;
    data[at + 2] = angle;
    data[at + 3] = size;
    data[at + 4] = red;
    data[at + 5] = green;
    data[at + 6] = blue;
    data[at + 7] = alpha;
    data[at + 8] = shape;
    data[at + 9] = phase;
  }

  /** Have the water glow. So many as there is space for do. */
  addHalo(
    x: number,
    y: number,
    reach: number,
    colour: Colour,
    alpha: number,
  ): void {
    if (this.#haloCount === MOST_HALOS) return;
    const at = this.#haloCount++;
    this.halos.set([x, y, reach, alpha], at * 4);
    this.hues.set(colour, at * 3);
  }
}
