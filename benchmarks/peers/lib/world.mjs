// The rules of the world that every peer runs. game/world.py has the same.
export const WORLD = 2000;
export const RADIUS = 150;
export const TICK_MS = 50;
export const NPCS = 2000;
const PLAYER_STEP = 5;
const NPC_STEP = 2;
const CELL = 150;
const COLS = Math.ceil(WORLD / CELL);

const wrap = (v) => (v < 0 ? v + WORLD : v >= WORLD ? v - WORLD : v);

/** 64 unit directions, never along an axis, so that x and y both change every tick. */
export const DIRS = Array.from({ length: 64 }, (_, i) => {
  const angle = ((i + 0.5) / 64) * Math.PI * 2;
  return { dx: Math.fround(Math.cos(angle)), dy: Math.fround(Math.sin(angle)) };
});

export function stepPlayer(r) {
  r.x = wrap(r.x + r.dx * PLAYER_STEP);
  r.y = wrap(r.y + r.dy * PLAYER_STEP);
}

export function stepNpc(r) {
  r.x = wrap(r.x + r.vx);
  r.y = wrap(r.y + r.vy);
}

export function makeNpcs(n) {
  return Array.from({ length: n }, (_, i) => {
    const angle = Math.random() * Math.PI * 2;
    const [vx, vy] = [Math.cos(angle) * NPC_STEP, Math.sin(angle) * NPC_STEP];
    return { x: Math.random() * WORLD, y: Math.random() * WORLD, vx, vy, hp: 100, key: "n" + i };
  });
}

/** A uniform grid over records with x and y, made anew by counting sort. */
export class Grid {
  constructor() {
    this.start = new Int32Array(COLS * COLS + 1);
    this.cell = new Int32Array(0);
    this.items = [];
    this.found = [];
  }

  build(records) {
    const n = records.length;
    const start = this.start.fill(0);
    if (this.cell.length < n) this.cell = new Int32Array(n * 2);
    for (let i = 0; i < n; i++) {
      const r = records[i];
      const c = ((r.y / CELL) | 0) * COLS + ((r.x / CELL) | 0);
      this.cell[i] = c;
      start[c + 1]++;
    }
    for (let i = 0; i < COLS * COLS; i++) start[i + 1] += start[i];
    const next = start.slice();
    this.items.length = n;
    for (let i = 0; i < n; i++) this.items[next[this.cell[i]]++] = records[i];
  }

  /** What is at most RADIUS away. The array is used again by the next query. */
  query(x, y) {
    const found = this.found;
    const x0 = Math.max(0, ((x - RADIUS) / CELL) | 0);
    const x1 = Math.min(COLS - 1, ((x + RADIUS) / CELL) | 0);
    const y0 = Math.max(0, ((y - RADIUS) / CELL) | 0);
    const y1 = Math.min(COLS - 1, ((y + RADIUS) / CELL) | 0);
    let k = 0;
    for (let cy = y0; cy <= y1; cy++) {
      const end = this.start[cy * COLS + x1 + 1];
      for (let i = this.start[cy * COLS + x0]; i < end; i++) {
        const r = this.items[i];
        const dx = r.x - x;
        const dy = r.y - y;
        if (dx * dx + dy * dy <= RADIUS * RADIUS) found[k++] = r;
      }
    }
    found.length = k;
    return found;
  }
}
