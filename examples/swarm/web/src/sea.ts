// The picture: what is in sight, put together as sprites each frame.

import { hueColour, speciesColour } from "./colours.js";
import { Effects } from "./effects.js";
import { Renderer, type View } from "./renderer.js";
import {
  AGILITY,
  DASH,
  LEAST_GLOW,
  REACH,
  REACH_PER_ROOT,
  SIGHT,
  SIZE,
  SPEED,
  type Fish,
  type Light,
} from "./shared.gen.js";
import { Shape, Sprites, type Colour } from "./sprites.js";
import { Swimmer, TickLength } from "./swimmers.js";

/** How much of what is seen the window shows: more, the brighter the own light. */
const NEAR_SHARE = 0.8;
const FAR_SHARE = 0.94;
/** The eye runs ahead by so many units. */
const AHEAD = 16;
const FISH_SIZES = [6.4, 8, 7.2, 11.5];
const DANGER: Colour = [1, 0.25, 0.2];
/** Names nearer than this lie over each other, in the page's pixels. */
const LABEL_WIDTH = 84;
const LABEL_HEIGHT = 18;
/** As lights.py has it. */
const BRIGHTER = 1.2;

/** Where the player steers: each from -1 to 1. */
export interface Aim {
  readonly x: number;
  readonly y: number;
  readonly dash: boolean;
}

/** A name and where it goes, in the page's pixels. */
export interface Label {
  readonly id: number;
  readonly name: string;
  readonly hue: number;
  readonly x: number;
  readonly y: number;
}

export const reachOf = (glow: number): number =>
  REACH + REACH_PER_ROOT * Math.sqrt(glow);

interface Seen<T> {
  readonly entity: T;
  readonly swimmer: Swimmer;
}

export class Sea {
  readonly effects = new Effects();
  readonly #renderer: Renderer;
  readonly #sprites = new Sprites();
  readonly #fish = new Map<number, Seen<Fish>>();
  readonly #lights = new Map<number, Seen<Light>>();
  readonly #tickLength = new TickLength();
  readonly #still = matchMedia("(prefers-reduced-motion: reduce)");
  #own: Seen<Light> | undefined;
  #steeredX = 0;
  #steeredY = 0;
  #eyeX = SIZE / 2;
  #eyeY = SIZE / 2;
  #share = NEAR_SHARE;
  #glow = 0;
  #view: View | undefined;

  constructor(canvas: HTMLCanvasElement) {
    this.#renderer = new Renderer(canvas);
  }

  // What the room says

  ticked(tick: number): void {
    this.#tickLength.seen(tick, performance.now());
  }

  /** Forget everything: another life of the room begins. */
  clear(): void {
    this.#fish.clear();
    this.#lights.clear();
    this.#own = undefined;
  }

  fishCame(fish: Fish, tick: number): void {
    this.#fish.set(fish.id, this.#seen(fish, tick));
  }

  fishMoved(fish: Fish, tick: number): void {
    this.#told(this.#fish.get(fish.id), tick);
  }

  /** It is out of sight, or some light has caught it. Returns whether the own one has. */
  fishLeft(fish: Fish): boolean {
    const seen = this.#fish.get(fish.id);
    this.#fish.delete(fish.id);
    return seen !== undefined && this.#wasCaught(seen);
  }

  lightCame(light: Light, tick: number, isOwn: boolean): void {
    const seen = this.#seen(light, tick);
    this.#lights.set(light.id, seen);
    if (!isOwn) return;
    seen.swimmer.presence = 1;
    this.#own = seen;
    [this.#eyeX, this.#eyeY] = [light.x, light.y];
    this.#glow = light.glow;
  }

  lightMoved(light: Light, tick: number): void {
    this.#told(this.#lights.get(light.id), tick);
  }

  lightLeft(light: Light): void {
    this.#lights.delete(light.id);
    if (this.#own?.entity === light) this.#own = undefined;
  }

  #seen<T extends Fish | Light>(entity: T, tick: number): Seen<T> {
    const { id, x, y } = entity;
    return { entity, swimmer: new Swimmer(id, x, y, tick, performance.now()) };
  }

  #told(seen: Seen<Fish | Light> | undefined, tick: number): void {
    if (seen === undefined) return;
    const { entity, swimmer } = seen;
    const { ms } = this.#tickLength;
    swimmer.told(entity.x, entity.y, tick, performance.now(), ms);
  }

  #wasCaught({ entity, swimmer }: Seen<Fish>): boolean {
    for (const seen of this.#lights.values()) {
      const { x, y } = seen.swimmer;
      const far = Math.hypot(x - swimmer.x, y - swimmer.y);
      if (far > reachOf(seen.entity.glow) + 14) continue;
      const colour = speciesColour(entity.species);
      this.effects.burst(swimmer.x, swimmer.y, x, y, colour);
      return seen === this.#own;
    }
    return false;
  }

  // Frames

  /** Draw everything as it is now, `elapsed` milliseconds after the last time. */
  draw(now: number, elapsed: number, aim: Aim): void {
    this.#swim(now, elapsed, aim);
    const view = this.#look(now, elapsed);
    this.#view = view;
    const sprites = this.#sprites;
    sprites.clear();
    this.effects.drawMotes(
      sprites,
      view.x,
      view.y,
      view.halfWidth,
      view.halfHeight,
      view.time,
    );
    for (const seen of this.#fish.values()) this.#drawFish(seen, view);
    for (const seen of this.#lights.values()) this.#drawLight(seen, view);
    this.effects.draw(sprites, elapsed / 1_000);
    this.#renderer.draw(view, sprites);
  }

  #swim(now: number, elapsed: number, aim: Aim): void {
    const tickMs = this.#tickLength.ms;
    for (const { swimmer } of this.#fish.values())
      swimmer.swim(elapsed, now, tickMs);
    for (const seen of this.#lights.values())
      if (seen !== this.#own) seen.swimmer.swim(elapsed, now, tickMs);
    if (this.#own !== undefined) this.#swimOwn(this.#own, now, elapsed, aim);
  }

  /** The own light does not wait for the room to say what the player has just steered. */
  #swimOwn(
    { swimmer, entity }: Seen<Light>,
    now: number,
    elapsed: number,
    aim: Aim,
  ): void {
    const dash = aim.dash && entity.glow > LEAST_GLOW ? DASH : 1;
    const weight = 1 - 0.25 * Math.min(1, entity.glow / 1_500);
    const speed =
      ((SPEED * dash * weight) / 1_000) * (50 / this.#tickLength.ms);
    const share = 1 - Math.exp((-AGILITY * elapsed) / 1_000);
    this.#steeredX += (aim.x * speed - this.#steeredX) * share;
    this.#steeredY += (aim.y * speed - this.#steeredY) * share;
    swimmer.swimAsSteered(
      this.#steeredX,
      this.#steeredY,
      elapsed,
      now,
      this.#tickLength.ms,
    );
    swimmer.x = Math.min(Math.max(swimmer.x, 0), SIZE);
    swimmer.y = Math.min(Math.max(swimmer.y, 0), SIZE);
  }

  /** Where the eye is. It follows the own light. */
  #look(now: number, elapsed: number): View {
    const own = this.#own;
    const ahead = this.#still.matches ? 0 : AHEAD / (SPEED / 1_000);
    if (own !== undefined) {
      const share = 1 - Math.exp(-elapsed / 160);
      const { x, y } = own.swimmer;
      this.#eyeX += (x + this.#steeredX * ahead * 0.6 - this.#eyeX) * share;
      this.#eyeY += (y + this.#steeredY * ahead * 0.6 - this.#eyeY) * share;
      const wide = Math.min(1, Math.sqrt(own.entity.glow / 900));
      const wanted = NEAR_SHARE + (FAR_SHARE - NEAR_SHARE) * wide;
      this.#share += (wanted - this.#share) * (1 - Math.exp(-elapsed / 900));
    }
    const { innerWidth: width, innerHeight: height } = window;
    const scale = (SIGHT * this.#share) / Math.hypot(width, height);
    return {
      x: this.#eyeX,
      y: this.#eyeY,
      halfWidth: width * scale,
      halfHeight: height * scale,
      ownX: own?.swimmer.x ?? -1e5,
      ownY: own?.swimmer.y ?? -1e5,
      tint: own === undefined ? [0, 0, 0] : hueColour(own.entity.hue),
      time: now / 1_000,
    };
  }

  #drawFish({ entity, swimmer }: Seen<Fish>, view: View): void {
    const { x, y, angle, phase, presence } = swimmer;
    const size = FISH_SIZES[entity.species % FISH_SIZES.length]!;
    if (!isInView(view, x, y, size)) return;
    // In the dark they glimmer; near the own light they shine.
    const near = ((x - view.ownX) ** 2 + (y - view.ownY) ** 2) / 14_000;
    const alpha = (0.5 + 0.75 * Math.exp(-near)) * presence;
    const colour = speciesColour(entity.species);
    const own = 1 + ((entity.id * 7) % 11) / 28 - 0.18;
    this.#sprites.add(
      Shape.FISH,
      x,
      y,
      size * own,
      colour,
      alpha,
      angle,
      phase,
    );
    if (entity.species === 3)
      this.#sprites.add(Shape.GLOW, x, y, 24, colour, 0.2 * presence);
  }

  #drawLight(seen: Seen<Light>, view: View): void {
    const { entity, swimmer } = seen;
    const isOwn = seen === this.#own;
    const { x, y, presence } = swimmer;
    const reach = reachOf(entity.glow);
    const size = reach * 1.75 + 7;
    if (!isInView(view, x, y, reach * 5)) return;
    const colour = hueColour(entity.hue);
    const pulse = 1 + 0.035 * Math.sin(view.time * 2.2 + swimmer.phase);
    this.#sprites.addHalo(x, y, reach * 2.6 + 14, colour, presence);
    this.#sprites.add(
      Shape.LIGHT,
      x,
      y,
      size * pulse,
      colour,
      presence,
      view.time * 0.22 + entity.id,
    );
    const speed = Math.hypot(swimmer.vx, swimmer.vy) * 1_000;
    if (Math.random() * 260 < speed * (entity.is_dashing ? 2.2 : 1))
      this.effects.trail(x, y, reach * 0.4, colour);
    if (isOwn) this.#drawOwn(x, y, reach, entity.glow);
    else if (entity.glow > this.#ownGlow() * BRIGHTER)
      this.#sprites.add(Shape.RING, x, y, reach * 1.12, DANGER, 0.34);
  }

  #ownGlow(): number {
    return this.#own?.entity.glow ?? Infinity;
  }

  /** The own reach; a ring runs outward as the light grows. */
  #drawOwn(x: number, y: number, reach: number, glow: number): void {
    this.#sprites.add(Shape.RING, x, y, reach * 1.12, [1, 1, 1], 0.3);
    if (glow > this.#glow + 4) {
      const { hue } = this.#own!.entity;
      this.effects.ring(x, y, reach * 1.1, hueColour(hue));
      this.#glow = glow;
    }
    this.#glow = Math.min(this.#glow, glow);
  }

  /** Names of the lights in sight, the brightest first, none over another. The own one needs none. */
  labels(most: number): Label[] {
    const view = this.#view;
    if (view === undefined) return [];
    const named = [...this.#lights.values()]
      .filter((seen) => seen !== this.#own && seen.entity.name !== "")
      .filter(({ swimmer: { x, y } }) => isInView(view, x, y, 0))
      .sort((a, b) => b.entity.glow - a.entity.glow);
    const labels: Label[] = [];
    for (const { entity, swimmer } of named) {
      if (labels.length === most) break;
      const { id, name, hue } = entity;
      const below = swimmer.y + reachOf(entity.glow) * 1.2;
      const label = { id, name, hue, ...onPage(view, swimmer.x, below) };
      if (!labels.some((other) => isOver(label, other))) labels.push(label);
    }
    return labels;
  }

  /** Where the own light is drawn, in the page's pixels, to steer from. */
  ownOnPage(): { x: number; y: number } {
    const view = this.#view;
    const { innerWidth: width, innerHeight: height } = window;
    if (view === undefined || this.#own === undefined)
      return { x: width / 2, y: height / 2 };
    return onPage(view, this.#own.swimmer.x, this.#own.swimmer.y);
  }
}

/** Where a place in the sea is, in the page's pixels. */
function onPage(view: View, x: number, y: number): { x: number; y: number } {
  return {
    x: ((x - view.x) / view.halfWidth + 1) * 0.5 * window.innerWidth,
    y: ((y - view.y) / view.halfHeight + 1) * 0.5 * window.innerHeight,
  };
}

const isOver = (a: Label, b: Label): boolean =>
  Math.abs(a.x - b.x) < LABEL_WIDTH && Math.abs(a.y - b.y) < LABEL_HEIGHT;

function isInView(view: View, x: number, y: number, margin: number): boolean {
  return (
    Math.abs(x - view.x) < view.halfWidth + margin &&
    Math.abs(y - view.y) < view.halfHeight + margin
  );
}
