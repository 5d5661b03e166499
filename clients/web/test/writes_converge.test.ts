// Owner writes under any schedule: whatever the room and the player do, and however long frames take, the player's copy
// is the room's in the end. The room here keeps to docs/protocol/flow.md, Owner writes.

import { expect, test } from "vitest";
import { readMask } from "../src/core/fields.js";
import { FrameType } from "../src/core/frames.js";
import { Reader } from "../src/core/values.js";
import { Driver } from "./core_driver.js";
import { Pen, schema, update, welcome, type Sections } from "./server.js";

const WRITABLE = ["x", "label"] as const;
type Values = Record<(typeof WRITABLE)[number], unknown>;

interface Row {
  values: Values;
  owner: string;
  born: number;
  /** The version of the last change of owner. */
  handed: number;
  readonly correctedAt: Partial<Record<string, number>>;
  /** What the owner believes, since the last flush. */
  readonly believed: Partial<Record<string, unknown>>;
  readonly changed: Set<string>;
}

type Said = { [K in keyof Sections]-?: NonNullable<Sections[K]>[number][] };

function seeded(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

class Room {
  readonly rows = new Map<number, Row>();
  readonly #random: (below: number) => number;
  version = 1;
  #nextId = 2;
  readonly #left: number[] = [];
  readonly #entered = new Set<number>();

  constructor(random: (below: number) => number) {
    this.#random = random;
  }

  #value(field: string): unknown {
    return field === "x" ? this.#random(4) : "abcd"[this.#random(4)]!;
  }

  write(row: Row, field: (typeof WRITABLE)[number], value: unknown): void {
    if (row.values[field] === value) return;
    row.believed[field] ??= row.values[field];
    row.values[field] = value;
    row.changed.add(field);
  }

  /** Something that room code does. */
  act(): void {
    const ids = [...this.rows.keys()];
    const id = ids[this.#random(ids.length)];
    const what = this.#random(5);
    if (id === undefined || what === 0) {
      if (this.rows.size < 3) this.add(this.#nextId++);
    } else if (what === 1) {
      this.#left.push(id);
      this.rows.delete(id);
      this.#entered.delete(id);
      if (this.#random(2) === 0) this.add(id);
    } else if (what === 2) {
      const row = this.rows.get(id)!;
      row.owner = row.owner === "ann" ? "bob" : "ann";
      row.handed = this.version + 1;
    } else {
      const field = WRITABLE[this.#random(2)]!;
      this.write(this.rows.get(id)!, field, this.#value(field));
    }
  }

  add(id: number): void {
    const values = { x: this.#value("x"), label: this.#value("label") };
    const born = this.version + 1;
    const owner = this.#random(4) === 0 ? "bob" : "ann";
    this.rows.set(id, { values, owner, born, handed: 0, correctedAt: {}, believed: {}, changed: new Set() });
    this.#entered.add(id);
  }

  /** Take a write of ann's: as it is, as another value, or not at all. */
  take(frame: Uint8Array): void {
    const reader = new Reader(frame.subarray(1));
    const seen = reader.varint32();
    for (let left = reader.varint32(); left > 0; left--) {
      const row = this.rows.get(reader.varint32());
      const kind = schema.kinds[reader.varint32()]!;
      for (const index of readMask(reader, kind.fields.length)) {
        const value = kind.codecs[index]!.read(reader);
        const field = kind.fields[index]!.name as (typeof WRITABLE)[number];
        if (row === undefined || row.owner !== "ann" || seen < Math.max(row.born, row.handed)) continue;
        if (seen < (row.correctedAt[field] ?? 0)) continue;
        const says = this.#random(3);
        if (says === 0) this.write(row, field, value);
        else if (says === 1) this.write(row, field, this.#value(field));
        row.believed[field] = value;
      }
    }
    reader.end();
  }

  /** The update that brings ann from the last flush to this one. */
  flush(): Uint8Array {
    this.version++;
    const sections: Said = { leave: this.#left.splice(0), enter: [], change: [], patch: [], owner: [], correct: [] };
    for (const [id, row] of this.rows) this.#say(id, row, sections);
    this.#entered.clear();
    return update(sections);
  }

  #say(id: number, row: Row, sections: Said): void {
    const { x, label } = row.values;
    const isNew = this.#entered.has(id);
    const isHanded = row.handed === this.version && !isNew;
    if (isNew) sections.enter.push({ id, kind: Pen, values: [x, label, new Uint8Array(0), null, 0, 0] });
    else if (row.changed.size > 0) sections.change.push({ id, kind: Pen, values: pick(row, row.changed) });
    if (isNew || isHanded) sections.owner.push({ id, owner: row.owner });
    const corrected = WRITABLE.filter((field) => {
      if (isNew) return false;
      const differs = field in row.believed && row.believed[field] !== row.values[field];
      return isHanded || (row.owner === "ann" && differs);
    });
    for (const field of corrected) row.correctedAt[field] = this.version;
    if (corrected.length > 0) sections.correct.push({ id, kind: Pen, values: pick(row, corrected) });
    row.changed.clear();
    for (const field of WRITABLE) delete row.believed[field];
  }
}

function pick(row: Row, fields: Iterable<string>): Record<string, unknown> {
  return Object.fromEntries([...fields].map((field) => [field, row.values[field as "x"]]));
}

function play(seed: number): void {
  const random = seeded(seed);
  const room = new Room(random);
  const driver = new Driver();
  driver.open();
  driver.receive(welcome({ version: 1 }), update({}, { full: true, dv: 0, dt: 0 }));
  const [up, down]: [Uint8Array[], Uint8Array[]] = [[], []];

  const turn = (): void => {
    driver.endTurn();
    up.push(...driver.sentOf(FrameType.WRITE));
    driver.forget();
  };
  const tick = (frames: number): void => {
    for (const frame of up.splice(0, frames)) room.take(frame);
    down.push(room.flush());
  };
  const write = (): void => {
    const held = driver.core.replica.heldIds().map((id) => driver.core.replica.get(id)!);
    const own = held.filter(({ kind, owner }) => kind === Pen && owner === "ann");
    const cell = own[random(own.length)];
    if (cell === undefined) return;
    if (random(2) === 0) (cell.handle as Pen).x = random(4);
    else (cell.handle as Pen).label = "abcd"[random(4)]!;
  };

  for (let step = 0; step < 60; step++) {
    const what = random(6);
    if (what <= 1) write();
    else if (what === 2) room.act();
    else if (what === 3) tick(random(3));
    else if (what === 4) driver.receive(...down.splice(0, 1 + random(2)));
    else driver.pass([10, 50][random(2)]!);
    turn();
  }
  for (let rounds = 0; rounds < 4; rounds++) {
    driver.pass(50);
    turn();
    tick(up.length);
    driver.receive(...down.splice(0));
  }

  const seen = driver.core.replica.heldIds().map((id) => {
    const { owner, values } = driver.core.replica.get(id)!;
    return [id, owner, values[0], values[1]];
  });
  const expected = [...room.rows].map(([id, { owner, values }]) => [id, owner, values.x, values.label]);
  expect(seen, `seed ${seed}`).toEqual(expected.sort(([a], [b]) => (a as number) - (b as number)));
}

test(
  "a player's copy is the room's in the end, whatever was written and handed over meanwhile",
  { timeout: 30_000 },
  () => {
    for (let seed = 1; seed <= 200; seed++) play(seed);
  },
);
