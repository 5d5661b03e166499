// The picture: every dot on its way to where the room says it is.

import { elided, placeLabels } from "./labels.js";
import { SIZE } from "./shared.gen.js";

/** How fast a dot closes in: after this long, two thirds of the way is done. */
const EASE_MS = 70;
const RIPPLE_MS = 500;
const GRID_STEP = 10;
const FONT =
  "600 13px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const LABEL_HEIGHT = 20;
/** A name takes no more of the board's width than this share. */
const LABEL_SHARE = 0.45;

/** What is drawn of one player. */
export interface Shown {
  readonly id: number;
  readonly x: number;
  readonly y: number;
  readonly colour: string;
  readonly name: string;
  readonly isMine: boolean;
  /** Still there, but the player's connection is lost. */
  readonly isAway: boolean;
}

interface Point {
  x: number;
  y: number;
}

export class Board {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #dots: () => readonly Shown[];
  /** Where each dot is drawn, on its way to where it is. */
  #drawn = new Map<number, Point>();
  #ripple: (Point & { readonly at: number; readonly colour: string }) | null =
    null;
  #lastFrame = 0;
  #size = 0;
  readonly #still = matchMedia("(prefers-reduced-motion: reduce)");

  /** `dots` is asked for what there is, each frame. */
  constructor(canvas: HTMLCanvasElement, dots: () => readonly Shown[]) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d")!;
    this.#dots = dots;
    new ResizeObserver(() => this.#resize()).observe(canvas);
    this.#resize();
    requestAnimationFrame((now) => this.#frame(now));
  }

  /** As many pixels as the screen has, whatever the zoom. */
  #resize(): void {
    this.#size = this.#canvas.clientWidth;
    const pixels = Math.round(this.#size * devicePixelRatio);
    if (this.#canvas.width === pixels) return;
    this.#canvas.width = this.#canvas.height = pixels;
  }

  /** Show where the player wants to go. */
  ripple(x: number, y: number, colour: string): void {
    if (!this.#still.matches)
      this.#ripple = { x, y, colour, at: performance.now() };
  }

  #frame(now: number): void {
    // The ratio changes when the window moves to another screen, and no resize tells of it.
    this.#resize();
    const dots = this.#dots();
    this.#ease(dots, now - this.#lastFrame);
    this.#lastFrame = now;
    this.#draw(dots, now);
    requestAnimationFrame((next) => this.#frame(next));
  }

  #ease(dots: readonly Shown[], elapsed: number): void {
    const share = this.#still.matches ? 1 : 1 - Math.exp(-elapsed / EASE_MS);
    const drawn = new Map<number, Point>();
    for (const { id, x, y } of dots) {
      const at = this.#drawn.get(id) ?? { x, y };
      drawn.set(id, {
        x: at.x + (x - at.x) * share,
        y: at.y + (y - at.y) * share,
      });
    }
    this.#drawn = drawn;
  }

  #draw(dots: readonly Shown[], now: number): void {
    const context = this.#context;
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, this.#size, this.#size);
    this.#drawGrid();
    this.#drawRipple(now);
    const radius = Math.min(13, Math.max(8, this.#size / 60));
    const scale = this.#size / SIZE;
    // Dots at the edge stay whole.
    const inside = (at: number): number =>
      Math.min(Math.max(at * scale, radius + 4), this.#size - radius - 4);
    const placed = dots.map((dot) => {
      const { x, y } = this.#drawn.get(dot.id)!;
      return { dot, x: inside(x), y: inside(y) };
    });
    placed.sort((a, b) => Number(a.dot.isMine) - Number(b.dot.isMine));
    for (const { dot, x, y } of placed) this.#drawDot(dot, x, y, radius);
    this.#drawLabels(placed.reverse(), radius);
  }

  #drawGrid(): void {
    const context = this.#context;
    const step = (this.#size / SIZE) * GRID_STEP;
    context.fillStyle = "rgb(255 255 255 / 13%)";
    for (let x = step; x < this.#size - 1; x += step) {
      for (let y = step; y < this.#size - 1; y += step)
        context.fillRect(Math.round(x) - 1, Math.round(y) - 1, 2, 2);
    }
  }

  #drawRipple(now: number): void {
    if (this.#ripple === null) return;
    const age = (now - this.#ripple.at) / RIPPLE_MS;
    if (age >= 1) return void (this.#ripple = null);
    const context = this.#context;
    const scale = this.#size / SIZE;
    context.globalAlpha = 1 - Math.max(0, age);
    context.strokeStyle = this.#ripple.colour;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(
      this.#ripple.x * scale,
      this.#ripple.y * scale,
      6 + 22 * Math.max(0, age),
      0,
      2 * Math.PI,
    );
    context.stroke();
    context.globalAlpha = 1;
  }

  #drawDot(
    { colour, isMine, isAway }: Shown,
    x: number,
    y: number,
    radius: number,
  ): void {
    const context = this.#context;
    context.globalAlpha = isAway ? 0.45 : 1;
    context.fillStyle = colour;
    context.shadowColor = colour;
    context.shadowBlur = radius * 1.8 * devicePixelRatio;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
    context.shadowBlur = 0;
    if (isMine) {
      context.strokeStyle = "white";
      context.lineWidth = 2.5;
      context.beginPath();
      context.arc(x, y, radius + 1, 0, 2 * Math.PI);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  #drawLabels(
    placed: readonly { dot: Shown; x: number; y: number }[],
    radius: number,
  ): void {
    const context = this.#context;
    context.font = FONT;
    context.textBaseline = "middle";
    const measure = (text: string): number => context.measureText(text).width;
    const widest = this.#size * LABEL_SHARE;
    const sized = placed.map(({ dot, x, y }) => {
      const text = elided(dot.name, widest, measure);
      return { x, y, text, width: measure(text) + 14 };
    });
    placeLabels(sized, radius, LABEL_HEIGHT, this.#size).forEach(
      (box, index) => {
        if (box === null) return;
        const { dot } = placed[index]!;
        const { text } = sized[index]!;
        context.globalAlpha = dot.isAway ? 0.6 : 1;
        context.fillStyle = "rgb(18 19 28 / 82%)";
        context.beginPath();
        context.roundRect(
          box.x,
          box.y,
          box.width,
          box.height,
          LABEL_HEIGHT / 2,
        );
        context.fill();
        context.fillStyle = dot.isMine ? "white" : "#d9ddf0";
        context.fillText(text, box.x + 7, box.y + LABEL_HEIGHT / 2 + 0.5);
        context.globalAlpha = 1;
      },
    );
  }
}
