// What has which colour.

import type { Colour } from "./sprites.js";

/** By species: lantern fish, dusk fish, reed fish, and the rare golden ones. */
const SPECIES: readonly Colour[] = [
  [0.2, 0.68, 1.0],
  [0.86, 0.32, 0.96],
  [0.25, 0.95, 0.6],
  [1.0, 0.74, 0.22],
];

export function speciesColour(species: number): Colour {
  return SPECIES[species % SPECIES.length]!;
}

/** A light's colour, as the page's styles take it. */
export function cssHue(hue: number): string {
  return `hsl(${Math.round((hue / 256) * 360)} 95% 76%)`;
}

const known = new Map<number, Colour>();

/** The same for the picture: bright, since it adds to the dark. */
export function hueColour(hue: number): Colour {
  let colour = known.get(hue);
  if (colour === undefined) {
    const part = (shift: number): number => {
      const k = (shift + (hue / 256) * 12) % 12;
      return 0.64 - 0.34 * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    };
    colour = [part(0), part(8), part(4)];
    known.set(hue, colour);
  }
  return colour;
}
