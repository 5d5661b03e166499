// What this player writes: the writable fields of its entities and private state, and its status. A write shows at once
// and waits to be sent, at most once per room tick. Times are in milliseconds.

import { isSame, MAX_BYTES_BYTES, MAX_ENTITY_BYTES, patched, sizeOf } from "./fields.js";
import type { Cell, Home } from "./handles.js";
import { formatJson } from "./json.js";
import { encodeWrite, MAX_WRITE_BYTES, type OwnerWrite } from "./play_frames.js";
import { Presence, type Schema } from "./schema.js";
import { PRIVATE_ID, type Operation } from "./updates.js";
import { encodeUtf8, Reader, Writer } from "./values.js";

export const MAX_STATUS_BYTES = 1_024;
const STATUS = Presence.fields.findIndex(({ name }) => name === "status");
/** The head of a write frame, and of an entry in it with the longest mask. */
const HEAD_BYTES = 11;
const ENTRY_BYTES = 47;

interface Unsent {
  readonly cell: Cell;
  readonly fields: Set<number>;
}

export class Writes implements Home {
  readonly #schema: Schema;
  readonly #isHeld: (cell: Cell) => boolean;
  readonly #wrote: () => void;
  /** Which fields of which entity wait to be sent, in the order of first writes. */
  readonly #unsent = new Map<number, Unsent>();
  #player = "";
  #isOpen = false;
  #isOver = false;
  #tickMs = 0;
  #sentAt = -Infinity;

  /** `wrote` is called when something begins to wait: `send` is due at the end of the turn, or later. */
  constructor(schema: Schema, isHeld: (cell: Cell) => boolean, wrote: () => void) {
    this.#schema = schema;
    this.#isHeld = isHeld;
    this.#wrote = wrote;
  }

  /** The client is in the room, as this player. */
  open(player: string, tickRate: number): void {
    this.#player = player;
    this.#tickMs = 1_000 / tickRate;
    this.#isOpen = true;
  }

  /** The room is lost: what was not sent never will be. */
  drop(): void {
    this.#isOpen = false;
    this.#unsent.clear();
  }

  /** The client is done for good: nothing may be written any more. */
  end(): void {
    this.drop();
    this.#isOver = true;
  }

  // What pages do

  write(cell: Cell, field: number, value: unknown): void {
    this.#check(cell, field);
    this.#set(cell, field, value);
  }

  patch(cell: Cell, field: number, offset: number, bytes: Uint8Array): void {
    this.#check(cell, field);
    if (!(bytes instanceof Uint8Array)) throw new TypeError(`${nameOf(cell, field)}: the patch is not a Uint8Array`);
    if (!Number.isInteger(offset) || offset < 0 || offset + bytes.length > MAX_BYTES_BYTES) {
      throw new RangeError(`${nameOf(cell, field)}: a patch of ${bytes.length} bytes does not fit at ${offset}`);
    }
    this.#set(cell, field, patched(cell.values[field] as Uint8Array, offset, bytes));
  }

  /** Set the status in the player's own presence entry. RangeError if it is over 1 KB as JSON. */
  setStatus(cell: Cell, status: unknown): void {
    const { length } = encodeUtf8(formatJson(status));
    if (length > MAX_STATUS_BYTES) {
      throw new RangeError(`the status has ${length} bytes as JSON; ${MAX_STATUS_BYTES} is the most`);
    }
    this.#set(cell, STATUS, status);
  }

  #check(cell: Cell, field: number): void {
    const where = nameOf(cell, field);
    if (this.#isOver) throw new TypeError(`${where} cannot be written: the client is closed`);
    if (!this.#isHeld(cell)) throw new TypeError(`${where} cannot be written: the entity has left`);
    if (!cell.kind.fields[field]!.writable) {
      throw new TypeError(`${where} is the room's and cannot be written here; send the room a message instead`);
    }
    if (cell.owner !== this.#player) {
      throw new TypeError(`${where} cannot be written: the entity is ${cell.owner ?? "the room"}'s`);
    }
  }

  /** Hold what the room will hold, as the codec makes it: rounded, copied and frozen. */
  #set(cell: Cell, field: number, value: unknown): void {
    const codec = cell.kind.codecs[field]!;
    try {
      const writer = new Writer();
      codec.write(writer, value);
      const bytes = writer.finish();
      const written = codec.read(new Reader(bytes));
      if (isSame(written, cell.values[field])) return;
      checkSize(cell, field, bytes.length);
      cell.values[field] = written;
    } catch (error) {
      const { message } = error as Error;
      throw new (error instanceof RangeError ? RangeError : TypeError)(`${nameOf(cell, field)}: ${message}`);
    }
    if (this.#isOpen) this.#note(cell, field);
  }

  #note(cell: Cell, field: number): void {
    const isFirst = this.#unsent.size === 0;
    let entry = this.#unsent.get(cell.id);
    if (entry === undefined) this.#unsent.set(cell.id, (entry = { cell, fields: new Set() }));
    entry.fields.add(field);
    if (isFirst) this.#wrote();
  }

  // What the core does

  /** An update was applied: writes to what it corrected, handed over or took away will not be sent. */
  settle(operations: readonly Operation[], full: boolean): void {
    if (full) this.#unsent.clear();
    for (const operation of operations) {
      if (operation.op === "correct") this.#forget(operation.id, operation.fields);
      else if (operation.op !== "change" && operation.op !== "patch") this.#unsent.delete(operation.id);
    }
  }

  #forget(id: number, corrected: readonly number[]): void {
    const fields = this.#unsent.get(id)?.fields;
    for (const field of corrected) fields?.delete(field);
    if (fields?.size === 0) this.#unsent.delete(id);
  }

  /** When `take` is due; Infinity for never. */
  next(): number {
    return this.#unsent.size === 0 ? Infinity : this.#sentAt + this.#tickMs;
  }

  /** `take` is due a tick from now. */
  postpone(now: number): void {
    this.#sentAt = now;
  }

  /**
   * The frame to send now; something must wait. What does not fit it waits for the next. `seen` is the version of the
   * newest update applied.
   */
  take(seen: number, now: number): Uint8Array {
    this.postpone(now);
    const writes: OwnerWrite[] = [];
    let left = MAX_WRITE_BYTES - HEAD_BYTES;
    for (const [id, { cell, fields }] of this.#unsent) {
      left -= ENTRY_BYTES + [...fields].reduce((sum, field) => sum + fieldSize(cell, field), 0);
      if (left < 0) break;
      this.#unsent.delete(id);
      const { kind } = cell;
      const values = Object.fromEntries([...fields].map((field) => [kind.fields[field]!.name, cell.values[field]]));
      writes.push({ id, number: this.#numberOf(cell), kind, values });
    }
    return encodeWrite(seen, writes);
  }

  /** A kind listed twice has two numbers: one as an entity's, one as private state's. */
  #numberOf({ id, kind }: Cell): number {
    const { kinds, entities, state } = this.#schema;
    return id === PRIVATE_ID ? entities.length + (state === null ? 0 : 1) : kinds.indexOf(kind);
  }
}

function nameOf({ kind, id }: Cell, field: number): string {
  return `${kind.name} ${id}: ${kind.fields[field]!.name}`;
}

function fieldSize({ kind, values }: Cell, field: number): number {
  return sizeOf(kind.fields[field]!.type, values[field]);
}

/** RangeError where an entity would be too large for the room, with so many bytes in a field. */
function checkSize(cell: Cell, field: number, bytes: number): void {
  if (bytes <= fieldSize(cell, field)) return;
  const others = [...cell.values.keys()].filter((other) => other !== field);
  const size = others.reduce((sum, other) => sum + fieldSize(cell, other), bytes);
  if (size > MAX_ENTITY_BYTES)
    throw new RangeError(`the entity would have ${size} bytes; ${MAX_ENTITY_BYTES} is the most`);
}
