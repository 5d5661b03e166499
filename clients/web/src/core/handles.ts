// The objects pages hold: one class per kind, whose properties read a cell of the replica. What is written to them goes
// to the cell's home, which takes it or throws.

import type { Entity, Kind } from "./schema.js";

/** Takes what pages write to entities. Throws TypeError or RangeError, naming kind, id and field. */
export interface Home {
  write(cell: Cell, field: number, value: unknown): void;
  patch(cell: Cell, field: number, offset: number, bytes: Uint8Array): void;
}

/** One entity as the client holds it. */
export interface Cell {
  readonly id: number;
  readonly kind: Kind;
  owner: string | null;
  /** One value per field of the kind, in order. */
  readonly values: unknown[];
  readonly handle: Entity;
  readonly home: Home;
}

class Handle implements Entity {
  readonly #cell: Cell;

  constructor(cell: Cell) {
    this.#cell = cell;
  }

  get id(): number {
    return this.#cell.id;
  }

  get owner(): string | null {
    return this.#cell.owner;
  }

  get kind(): string {
    return this.#cell.kind.name;
  }

  patch(field: string, offset: number, bytes: Uint8Array): void {
    const { kind, id, home } = this.#cell;
    const index = kind.fields.findIndex(({ name }) => name === field);
    if (kind.fields[index]?.type !== "bytes") throw new TypeError(`${kind.name} ${id}: ${field} is no bytes field`);
    home.patch(this.#cell, index, offset, bytes);
  }

  toJSON(): Record<string, unknown> {
    const { id, owner, kind, values } = this.#cell;
    return {
      id,
      owner,
      kind: kind.name,
      ...Object.fromEntries(kind.fields.map(({ name }, index) => [name, values[index]])),
    };
  }

  static valueOf(handle: Handle, index: number): unknown {
    return handle.#cell.values[index];
  }

  static write(handle: Handle, index: number, value: unknown): void {
    handle.#cell.home.write(handle.#cell, index, value);
  }
}

const classes = new WeakMap<Kind, new (cell: Cell) => Handle>();

function classOf(kind: Kind): new (cell: Cell) => Handle {
  const known = classes.get(kind);
  if (known !== undefined) return known;
  const made = class extends Handle {};
  kind.fields.forEach(({ name }, index) => {
    const get = function (this: Handle): unknown {
      return Handle.valueOf(this, index);
    };
    const set = function (this: Handle, value: unknown): void {
      Handle.write(this, index, value);
    };
    Object.defineProperty(made.prototype, name, { get, set, enumerable: true, configurable: false });
  });
  classes.set(kind, made);
  return made;
}

/** Make a cell with its handle. The cell keeps `values`. */
export function makeCell(id: number, kind: Kind, values: unknown[], home: Home): Cell {
  const handle = undefined as never;
  const cell: { -readonly [K in keyof Cell]: Cell[K] } = { id, kind, owner: null, values, handle, home };
  cell.handle = Object.freeze(new (classOf(kind))(cell));
  return cell;
}
