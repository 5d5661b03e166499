// The objects pages hold: one class per kind, whose properties read a cell of the replica and refuse to be written.

import type { Entity, Kind } from "./schema.js";

/** One entity as the client holds it. */
export interface Cell {
  readonly id: number;
  readonly kind: Kind;
  owner: string | null;
  /** One value per field of the kind, in order. */
  readonly values: unknown[];
  readonly handle: Entity;
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
}

const classes = new WeakMap<Kind, new (cell: Cell) => Handle>();

function classOf(kind: Kind): new (cell: Cell) => Handle {
  const known = classes.get(kind);
  if (known !== undefined) return known;
  const made = class extends Handle {};
  const refuse = (name: string) => (): never => {
    throw new TypeError(
      `${kind.name}.${name} is the room's and cannot be written here; send the room a message instead`,
    );
  };
  kind.fields.forEach(({ name }, index) => {
    const get = function (this: Handle): unknown {
      return Handle.valueOf(this, index);
    };
    Object.defineProperty(made.prototype, name, { get, set: refuse(name), enumerable: true, configurable: false });
  });
  classes.set(kind, made);
  return made;
}

/** Make a cell with its handle. The cell keeps `values`. */
export function makeCell(id: number, kind: Kind, values: unknown[]): Cell {
  const cell: { -readonly [K in keyof Cell]: Cell[K] } = { id, kind, owner: null, values, handle: undefined as never };
  cell.handle = Object.freeze(new (classOf(kind))(cell));
  return cell;
}
