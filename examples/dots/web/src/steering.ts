// How a player says where to go: click, tap, drag, or hold the arrow keys.

import { SIZE } from "./shared.gen.js";

const KEYS: Readonly<Record<string, readonly [dx: number, dy: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
/** Units a second, while a key is held. */
const SPEED = 45;
/** How often a drag or a held key says where it is. */
const SAY_EVERY_MS = 60;

export interface Steering {
  /** Where the player's dot is, to walk on from; null before there is one. */
  readonly position: () => { x: number; y: number } | null;
  readonly move: (x: number, y: number, isTap: boolean) => void;
}

const within = (at: number): number => Math.min(Math.max(at, 0), SIZE);

/** Watch the board and the keyboard. */
export function steer(canvas: HTMLCanvasElement, steering: Steering): void {
  steerByPointer(canvas, steering);
  steerByKeys(canvas, steering);
}

function steerByPointer(canvas: HTMLCanvasElement, { move }: Steering): void {
  let saidAt = 0;
  const go = (event: PointerEvent, isTap: boolean): void => {
    saidAt = event.timeStamp;
    const box = canvas.getBoundingClientRect();
    const along = (at: number, from: number, length: number): number =>
      within(((at - from) / length) * SIZE);
    move(
      along(event.clientX, box.left, box.width),
      along(event.clientY, box.top, box.height),
      isTap,
    );
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    go(event, true);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (
      canvas.hasPointerCapture(event.pointerId) &&
      event.timeStamp - saidAt >= SAY_EVERY_MS
    )
      go(event, false);
  });
  // The last stretch of a drag is part of it; a tap has been said already.
  canvas.addEventListener("pointerup", (event) => {
    if (canvas.hasPointerCapture(event.pointerId) && dragged(event))
      go(event, false);
  });
  let downX = 0;
  let downY = 0;
  canvas.addEventListener(
    "pointerdown",
    (event) => ([downX, downY] = [event.clientX, event.clientY]),
  );
  const dragged = (event: PointerEvent): boolean =>
    Math.hypot(event.clientX - downX, event.clientY - downY) > 3;
}

function steerByKeys(
  canvas: HTMLCanvasElement,
  { position, move }: Steering,
): void {
  const held = new Set<string>();
  let at: { x: number; y: number } | null = null;
  let timer: ReturnType<typeof setInterval> | undefined;
  const step = (): void => {
    at ??= position();
    if (at === null) return;
    const directions = [...held].map((key) => KEYS[key]!);
    const dx = Math.sign(directions.reduce((sum, [x]) => sum + x, 0));
    const dy = Math.sign(directions.reduce((sum, [, y]) => sum + y, 0));
    if (dx === 0 && dy === 0) return;
    const length = (SPEED * SAY_EVERY_MS) / 1_000 / Math.hypot(dx, dy);
    at = { x: within(at.x + dx * length), y: within(at.y + dy * length) };
    move(at.x, at.y, false);
  };
  const release = (key?: string): void => {
    if (key === undefined) held.clear();
    else held.delete(key);
    if (held.size > 0) return;
    clearInterval(timer);
    timer = undefined;
    at = null;
  };
  addEventListener("keydown", (event) => {
    // Elsewhere the arrow keys have their own work: in a text, in a list that scrolls.
    const isForBoard =
      event.target === canvas || event.target === document.body;
    if (
      !(event.key in KEYS) ||
      !isForBoard ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey
    )
      return;
    event.preventDefault();
    if (event.repeat) return;
    held.add(event.key);
    step();
    timer ??= setInterval(step, SAY_EVERY_MS);
  });
  addEventListener("keyup", (event) => release(event.key));
  // No keyup comes to a page that is not looked at.
  addEventListener("blur", () => release());
}
