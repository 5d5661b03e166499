// State updates (docs/protocol/state.md): one part of bytes in, a list of operations out. Decoding checks all that
// could be wrong, so that applying cannot fail half way.

import { ProtocolError } from "./errors.js";
import { MAX_BYTES_BYTES, readMask } from "./fields.js";
import { inflateRaw } from "./inflate.js";
import type { Kind, Schema } from "./schema.js";
import { Reader } from "./values.js";

export const STATE_ID = 0;
export const PRIVATE_ID = 1;
export const FIRST_PRESENCE_ID = 2 ** 31;

const MAX_PART_BYTES = 61_440;
const MAX_OWNER_BYTES = 128;

const LAST = 1;
const DEFLATED = 2;
const FULL = 4;

const Section = { LEAVE: 1, ENTER: 2, CHANGE: 3, PATCH: 4, OWNER: 5, CORRECT: 6 } as const;

export type Operation =
  | { readonly op: "leave"; readonly id: number }
  /** `values` has every field, those not sent at their type's zero. */
  | {
      readonly op: "enter";
      readonly id: number;
      readonly kind: Kind;
      readonly owned: boolean;
      readonly values: unknown[];
    }
  | {
      readonly op: "change";
      readonly id: number;
      readonly fields: readonly number[];
      readonly values: readonly unknown[];
    }
  | {
      readonly op: "patch";
      readonly id: number;
      readonly field: number;
      readonly offset: number;
      readonly data: Uint8Array;
    }
  | { readonly op: "owner"; readonly id: number; readonly owner: string | null }
  | {
      readonly op: "correct";
      readonly id: number;
      readonly fields: readonly number[];
      readonly values: readonly unknown[];
    };

export interface Part {
  readonly last: boolean;
  readonly full: boolean;
  readonly dv: number;
  readonly dt: number;
  readonly operations: readonly Operation[];
  /** What it takes up: the inflated bytes, and ENTRY_BYTES for each operation. */
  readonly size: number;
}

/** What an operation takes up beside its bytes, of which a few may be all it has. */
const ENTRY_BYTES = 32;

/** The kind of the entity that is held under an id, or undefined. */
export type KindLookup = (id: number) => Kind | undefined;

/**
 * Decodes the parts of one update, in order. `held` tells what was held before it; what its own parts bring and
 * take is kept here.
 */
export class UpdateDecoder {
  readonly #schema: Schema;
  readonly #held: KindLookup;
  readonly #brought = new Map<number, Kind | undefined>();
  #full = false;
  #first = true;

  constructor(schema: Schema, held: KindLookup) {
    this.#schema = schema;
    this.#held = held;
  }

  /** Decode the next part from what follows the frame's type, or throw ProtocolError. */
  decode(data: Uint8Array): Part {
    const reader = new Reader(data);
    const flags = reader.u8();
    if (flags > (LAST | DEFLATED | FULL)) throw new ProtocolError("an update has unknown flags");
    const full = (flags & FULL) !== 0;
    if (full && !this.#first) throw new ProtocolError("a later part of an update starts a full state");
    const dv = reader.varint32();
    const dt = reader.varint53();
    if (!this.#first && (dv !== 0 || dt !== 0)) throw new ProtocolError("a later part of an update moves on");
    if (full) this.#full = true;
    this.#first = false;
    const body = reader.rest();
    const headBytes = 1 + data.length - body.length;
    const sections = flags & DEFLATED ? inflateRaw(body, MAX_PART_BYTES - headBytes) : body;
    const operations = this.#sections(new Reader(sections));
    const size = sections.length + ENTRY_BYTES * operations.length;
    return { last: (flags & LAST) !== 0, full, dv, dt, operations, size };
  }

  #sections(reader: Reader): Operation[] {
    const operations: Operation[] = [];
    let before = 0;
    while (reader.remaining > 0) {
      const section = reader.u8();
      if (section <= before || section > Section.CORRECT)
        throw new ProtocolError("an update's sections are out of order");
      before = section;
      const count = reader.varint32();
      if (count === 0) throw new ProtocolError("an update has an empty section");
      for (let entry = 0; entry < count; entry++) operations.push(this.#entry(section, reader));
    }
    return operations;
  }

  #entry(section: number, reader: Reader): Operation {
    const id = reader.varint32();
    if (section === Section.LEAVE) {
      this.#brought.set(id, undefined);
      return { op: "leave", id };
    }
    if (section === Section.ENTER) return this.#enter(id, reader);
    const kind = this.#kindOf(id);
    switch (section) {
      case Section.CHANGE:
        return { op: "change", id, ...readFields(reader, kind) };
      case Section.PATCH:
        return readPatch(reader, id, kind);
      case Section.OWNER: {
        const owner = reader.str(MAX_OWNER_BYTES);
        return { op: "owner", id, owner: owner === "" ? null : owner };
      }
      default:
        return { op: "correct", id, ...readFields(reader, kind) };
    }
  }

  #kindOf(id: number): Kind {
    const kind = this.#brought.has(id) || this.#full ? this.#brought.get(id) : this.#held(id);
    if (kind === undefined) throw new ProtocolError(`an update changes entity ${id}, which is not held`);
    return kind;
  }

  #enter(id: number, reader: Reader): Operation {
    const head = reader.varint32();
    const owned = head % 2 === 1;
    const kind = this.#schema.kinds[Math.floor(head / 2)];
    if (kind === undefined || !this.#fits(id, Math.floor(head / 2)) || kind.hidden) {
      throw new ProtocolError(`entity ${id} enters as kind ${Math.floor(head / 2)}, which it cannot be`);
    }
    const values = kind.fields.map((field, index) => {
      const codec = kind.codecs[index]!;
      return field.ownerOnly && !owned ? codec.zero : codec.read(reader);
    });
    this.#brought.set(id, kind);
    return { op: "enter", id, kind, owned, values };
  }

  /** Whether an id and a kind's number belong together: the singletons and presence have theirs. */
  #fits(id: number, number: number): boolean {
    const { entities, state, kinds } = this.#schema;
    if (id >= FIRST_PRESENCE_ID) return number === kinds.length - 1;
    if (id > PRIVATE_ID) return number < entities.length;
    const single = entities.length + (id === PRIVATE_ID && state !== null ? 1 : 0);
    return number === single && (id === STATE_ID ? state : this.#schema.private) !== null;
  }
}

function readFields(reader: Reader, kind: Kind): { fields: number[]; values: unknown[] } {
  const fields = readMask(reader, kind.fields.length);
  return { fields, values: fields.map((index) => kind.codecs[index]!.read(reader)) };
}

function readPatch(reader: Reader, id: number, kind: Kind): Operation {
  const field = reader.u8();
  if (kind.fields[field]?.type !== "bytes") throw new ProtocolError("a patch names a field that is no bytes");
  const offset = reader.varint32();
  const data = reader.blob(MAX_BYTES_BYTES);
  if (offset + data.length > MAX_BYTES_BYTES) throw new ProtocolError("a patch makes a field too big");
  return { op: "patch", id, field, offset, data };
}
