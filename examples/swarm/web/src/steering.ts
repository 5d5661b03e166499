// How a player says where to swim: by the pointer, a finger, or keys.

import type { Aim } from "./sea.js";

const KEYS: Readonly<Record<string, readonly [dx: number, dy: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  a: [-1, 0],
  d: [1, 0],
  w: [0, -1],
  s: [0, 1],
};
/** A pointer so far from the light, in pixels, means full speed; one nearer than DEAD means none. */
const FULL = 150;
const DEAD = 16;

/** Watches pointer, fingers and keys. `aim` is asked each frame. */
export class Steering {
  readonly #from: () => { x: number; y: number };
  readonly #held = new Set<string>();
  readonly #fingers = new Map<number, { x: number; y: number }>();
  #pointer: { x: number; y: number } | null = null;
  #isDashing = false;

  /** `from` is where the light is on the page; `dash` a button for those without a keyboard. */
  constructor(
    canvas: HTMLCanvasElement,
    dash: HTMLElement,
    from: () => { x: number; y: number },
  ) {
    this.#from = from;
    this.#watchPointer(canvas);
    this.#watchDash(dash);
    this.#watchKeys(canvas);
    // Nothing tells a page that is not looked at of what is let go.
    addEventListener("blur", () => this.#release());
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#release();
    });
  }

  #release(): void {
    this.#held.clear();
    this.#fingers.clear();
    this.#pointer = null;
    this.#isDashing = false;
  }

  #watchPointer(canvas: HTMLCanvasElement): void {
    const at = ({
      clientX,
      clientY,
    }: PointerEvent): { x: number; y: number } => ({
      x: clientX,
      y: clientY,
    });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse") {
        if (event.button === 0) this.#isDashing = true;
        this.#pointer = at(event);
      } else {
        this.#fingers.set(event.pointerId, at(event));
      }
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") this.#pointer = at(event);
      else if (this.#fingers.has(event.pointerId))
        this.#fingers.set(event.pointerId, at(event));
    });
    const up = (event: PointerEvent): void => {
      if (event.pointerType === "mouse") this.#isDashing = false;
      this.#fingers.delete(event.pointerId);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    document.documentElement.addEventListener("pointerleave", () => {
      this.#pointer = null;
    });
  }

  #watchDash(button: HTMLElement): void {
    button.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      button.setPointerCapture(event.pointerId);
      this.#isDashing = true;
    });
    for (const end of ["pointerup", "pointercancel"])
      button.addEventListener(end, () => (this.#isDashing = false));
  }

  #watchKeys(canvas: HTMLCanvasElement): void {
    addEventListener("keydown", (event) => {
      const isForSea =
        event.target === canvas || event.target === document.body;
      if (!isForSea || event.ctrlKey || event.metaKey || event.altKey) return;
      const key = named(event.key);
      if (!(key in KEYS) && key !== " ") return;
      event.preventDefault();
      this.#held.add(key);
    });
    addEventListener("keyup", (event) => this.#held.delete(named(event.key)));
  }

  /** Where to swim now. Keys come before the pointer. */
  aim(): Aim {
    const dash =
      this.#isDashing || this.#held.has(" ") || this.#fingers.size > 1;
    let x = 0;
    let y = 0;
    for (const key of this.#held) {
      const [dx, dy] = KEYS[key] ?? [0, 0];
      x += dx;
      y += dy;
    }
    if (x !== 0 || y !== 0) {
      const length = Math.hypot(x, y);
      return { x: x / length, y: y / length, dash };
    }
    return { ...this.#towardsPointer(), dash };
  }

  #towardsPointer(): { x: number; y: number } {
    const [finger] = this.#fingers.values();
    const to = finger ?? this.#pointer;
    if (to === null) return { x: 0, y: 0 };
    const from = this.#from();
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const far = Math.hypot(dx, dy);
    if (far < DEAD) return { x: 0, y: 0 };
    const length = Math.min(1, (far - DEAD) / (FULL - DEAD));
    return { x: (dx / far) * length, y: (dy / far) * length };
  }
}

/** Letters are the same with Shift. */
const named = (key: string): string =>
  key.length === 1 ? key.toLowerCase() : key;
