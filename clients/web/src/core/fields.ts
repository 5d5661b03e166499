// The field types of docs/protocol/values.md. A codec reads what the wire holds and writes what fits.

import { ProtocolError } from "./errors.js";
import { deepFreeze, formatJson, parseJson, type Json } from "./json.js";
import { encodeUtf8, type Reader, type Writer } from "./values.js";

/** What a field holds; the Python types of these names. */
export type FieldType =
  | "bool"
  | "u8"
  | "u16"
  | "u32"
  | "i8"
  | "i16"
  | "i32"
  | "f32"
  | "f64"
  | "q8"
  | "q16"
  | "str"
  | "bytes"
  | "json";

/** A field as the generated schema module declares it; `lo` and `hi` belong to `q8` and `q16`. */
export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly lo?: number;
  readonly hi?: number;
  readonly writable?: true;
  readonly ownerOnly?: true;
}

export const MAX_STR_BYTES = 16_384;
export const MAX_BYTES_BYTES = 49_152;
/** The most bytes that the fields of an entity may take together. */
export const MAX_ENTITY_BYTES = 61_376;

/** How values of one field travel. `write` throws TypeError or RangeError for a value that does not fit. */
export interface FieldCodec {
  readonly zero: unknown;
  read(reader: Reader): unknown;
  write(writer: Writer, value: unknown): void;
}

function asNumber(value: unknown): number {
  if (typeof value !== "number") throw new TypeError(`${typeof value} is not a number`);
  return value;
}

function integer(
  lo: number,
  hi: number,
  read: (reader: Reader) => number,
  write: (writer: Writer, value: number) => void,
): FieldCodec {
  return {
    zero: 0,
    read,
    write(writer, value) {
      const number = asNumber(value);
      if (!Number.isInteger(number)) throw new TypeError(`${number} is not an integer`);
      if (number < lo || number > hi) throw new RangeError(`${number} is not within ${lo} to ${hi}`);
      write(writer, number);
    },
  };
}

function float(read: (reader: Reader) => number, write: (writer: Writer, value: number) => void): FieldCodec {
  return {
    zero: 0,
    read,
    write(writer, value) {
      const number = asNumber(value);
      if (!Number.isFinite(number)) throw new RangeError(`${number} cannot be sent`);
      write(writer, number);
    },
  };
}

const F32: FieldCodec = float(
  (reader) => reader.f32(),
  (writer, value) => {
    if (!Number.isFinite(Math.fround(value))) throw new RangeError(`${value} does not fit a float of 32 bits`);
    writer.f32(value);
  },
);

const BOOL: FieldCodec = {
  zero: false,
  read(reader) {
    const byte = reader.u8();
    if (byte > 1) throw new ProtocolError(`${byte} is no bool`);
    return byte === 1;
  },
  write(writer, value) {
    if (typeof value !== "boolean") throw new TypeError(`${typeof value} is not a boolean`);
    writer.u8(value ? 1 : 0);
  },
};

function limited(bytes: Uint8Array, maxBytes: number): Uint8Array {
  if (bytes.length > maxBytes) throw new RangeError(`${bytes.length} bytes are over the limit of ${maxBytes}`);
  return bytes;
}

const STR: FieldCodec = {
  zero: "",
  read: (reader) => reader.str(MAX_STR_BYTES),
  write(writer, value) {
    if (typeof value !== "string") throw new TypeError(`${typeof value} is not a string`);
    writer.blob(limited(encodeUtf8(value), MAX_STR_BYTES));
  },
};

const BYTES: FieldCodec = {
  zero: new Uint8Array(0),
  read: (reader) => reader.blob(MAX_BYTES_BYTES),
  write(writer, value) {
    if (!(value instanceof Uint8Array)) throw new TypeError("the value is not a Uint8Array");
    writer.blob(limited(value, MAX_BYTES_BYTES));
  },
};

const JSON_TEXT: FieldCodec = {
  zero: null,
  read: (reader) => deepFreeze(parseJson(reader.str(MAX_STR_BYTES))),
  write(writer, value) {
    writer.blob(limited(encodeUtf8(formatJson(value as Json)), MAX_STR_BYTES));
  },
};

/** Steps of a quantised number; both sides must compute exactly this in doubles. */
function quantised(field: Field, steps: 255 | 65_535): FieldCodec {
  const { lo, hi } = field;
  if (lo === undefined || hi === undefined || !(lo < hi) || !Number.isFinite(lo) || !Number.isFinite(hi)) {
    throw new TypeError(`field ${field.name}: ${field.type} needs a finite lo below a finite hi`);
  }
  const valueOf = (step: number): number => (step === 0 ? lo : step === steps ? hi : lo + (hi - lo) * (step / steps));
  const stepOf = (value: number): number => Math.floor(((value - lo) / (hi - lo)) * steps + 0.5);
  return {
    zero: valueOf(stepOf(Math.min(Math.max(0, lo), hi))),
    read: (reader) => valueOf(steps === 255 ? reader.u8() : reader.u16()),
    write(writer, value) {
      const number = asNumber(value);
      if (!(number >= lo && number <= hi)) throw new RangeError(`${number} is not within ${lo} to ${hi}`);
      const step = stepOf(number);
      if (steps === 255) writer.u8(step);
      else writer.u16(step);
    },
  };
}

const CODECS: Readonly<Record<Exclude<FieldType, "q8" | "q16">, FieldCodec>> = {
  bool: BOOL,
  u8: integer(
    0,
    0xff,
    (reader) => reader.u8(),
    (writer, value) => writer.u8(value),
  ),
  u16: integer(
    0,
    0xffff,
    (reader) => reader.u16(),
    (writer, value) => writer.u16(value),
  ),
  u32: integer(
    0,
    0xffff_ffff,
    (reader) => reader.u32(),
    (writer, value) => writer.u32(value),
  ),
  i8: integer(
    -0x80,
    0x7f,
    (reader) => reader.i8(),
    (writer, value) => writer.u8(value),
  ),
  i16: integer(
    -0x8000,
    0x7fff,
    (reader) => reader.i16(),
    (writer, value) => writer.u16(value),
  ),
  i32: integer(
    -0x8000_0000,
    0x7fff_ffff,
    (reader) => reader.i32(),
    (writer, value) => writer.u32(value),
  ),
  f32: F32,
  f64: float(
    (reader) => reader.f64(),
    (writer, value) => writer.f64(value),
  ),
  str: STR,
  bytes: BYTES,
  json: JSON_TEXT,
};

/** The codec of `field`; TypeError for a declaration that makes no sense. */
export function codecOf(field: Field): FieldCodec {
  if (field.type === "q8") return quantised(field, 255);
  if (field.type === "q16") return quantised(field, 65_535);
  const codec: FieldCodec | undefined = CODECS[field.type];
  if (codec === undefined) throw new TypeError(`field ${field.name}: there is no type ${String(field.type)}`);
  return codec;
}

const SIZES: Readonly<Partial<Record<FieldType, number>>> = {
  ...{ bool: 1, u8: 1, i8: 1, q8: 1, u16: 2, i16: 2, q16: 2 },
  ...{ u32: 4, i32: 4, f32: 4, f64: 8 },
};

/** How many bytes a value that a field holds takes on the wire. */
export function sizeOf(type: FieldType, value: unknown): number {
  const fixed = SIZES[type];
  if (fixed !== undefined) return fixed;
  const bytes =
    value instanceof Uint8Array ? value : encodeUtf8(type === "json" ? JSON.stringify(value) : String(value));
  return bytes.length + (bytes.length < 2 ** 7 ? 1 : bytes.length < 2 ** 14 ? 2 : 3);
}

/** Whether two values of one field are the same: floats by their bits, bytes and JSON by what is in them. */
export function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    return a.length === b.length && a.every((byte, at) => byte === b[at]);
  }
  const keys = Object.keys(a);
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isSame(left[key], right[key]))
  );
}

/** A copy of `old` with `data` at `offset`; a gap is filled with zeros. */
export function patched(old: Uint8Array, offset: number, data: Uint8Array): Uint8Array {
  const made = new Uint8Array(Math.max(old.length, offset + data.length));
  made.set(old);
  made.set(data, offset);
  return made;
}

const MASK_BITS = 7;

/** Read which of `fieldCount` fields are present, as their indices in order. */
export function readMask(reader: Reader, fieldCount: number): number[] {
  const present: number[] = [];
  for (let base = 0; ; base += MASK_BITS) {
    const byte = reader.u8();
    for (let bit = 0; bit < MASK_BITS; bit++) {
      if ((byte >> bit) & 1) present.push(base + bit);
    }
    if (byte < 0x80) {
      if (byte === 0) throw new ProtocolError(base === 0 ? "a mask is empty" : "a mask ends in an empty byte");
      break;
    }
    if (base + MASK_BITS >= fieldCount) throw new ProtocolError("a mask is longer than its kind");
  }
  if (present.at(-1)! >= fieldCount) throw new ProtocolError("a mask names a field the kind has not");
  return present;
}

/** Write the mask of the fields whose indices are in `present`: ascending, at least one. */
export function writeMask(writer: Writer, present: readonly number[]): void {
  const bytes = new Uint8Array(Math.floor(present.at(-1)! / MASK_BITS) + 1);
  for (const index of present) bytes[Math.floor(index / MASK_BITS)]! |= 1 << index % MASK_BITS;
  for (let at = 0; at < bytes.length - 1; at++) bytes[at]! |= 0x80;
  writer.raw(bytes);
}
