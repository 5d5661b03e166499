// The values of docs/protocol/values.md: a reader that refuses what is not exactly right, and its writer.

import { ProtocolError } from "./errors.js";

export const VARINT32_MAX = 2 ** 32 - 1;
export const VARINT53_MAX = Number.MAX_SAFE_INTEGER;

// A byte order mark is text like any other here.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const utf8Encoder = new TextEncoder();
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Whether `text` holds half a surrogate pair, which no UTF-8 can carry. */
export function hasLoneSurrogate(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

/** The UTF-8 bytes of `text`, which must not hold half a surrogate pair (RangeError). */
export function encodeUtf8(text: string): Uint8Array {
  if (hasLoneSurrogate(text)) throw new RangeError("the text holds half a surrogate pair, which UTF-8 cannot carry");
  return utf8Encoder.encode(text);
}

/** The text of `bytes`; a ProtocolError if they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ProtocolError("text is not UTF-8");
  }
}

/** Reads one frame from the front. Every method throws ProtocolError rather than read past the end. */
export class Reader {
  readonly #data: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(data: Uint8Array) {
    this.#data = data;
    this.#view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  }

  get remaining(): number {
    return this.#data.length - this.#at;
  }

  /** Claims `count` bytes and returns where they start. */
  #take(count: number): number {
    const at = this.#at;
    if (count > this.#data.length - at) throw new ProtocolError("the frame ends too early");
    this.#at = at + count;
    return at;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2), true);
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  i8(): number {
    return this.#view.getInt8(this.#take(1));
  }

  i16(): number {
    return this.#view.getInt16(this.#take(2), true);
  }

  i32(): number {
    return this.#view.getInt32(this.#take(4), true);
  }

  f32(): number {
    return this.#view.getFloat32(this.#take(4), true);
  }

  f64(): number {
    return this.#view.getFloat64(this.#take(8), true);
  }

  varint32(): number {
    return this.#varint(5, VARINT32_MAX);
  }

  varint53(): number {
    return this.#varint(8, VARINT53_MAX);
  }

  // By multiplication, because bit operators stop at 32 bits. A sum that rounds is past the maximum anyway.
  #varint(maxBytes: number, max: number): number {
    let value = 0;
    let scale = 1;
    for (let count = 1; count <= maxBytes; count++) {
      const byte = this.u8();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (byte === 0 && count > 1) throw new ProtocolError("an integer is not in its shortest form");
        if (value > max) break;
        return value;
      }
      scale *= 128;
    }
    throw new ProtocolError("an integer is too big");
  }

  zigzag(): number {
    const value = this.varint32();
    return (value >>> 1) ^ -(value & 1);
  }

  /** A copy of the next `count` bytes: it stays good when the frame is gone. */
  bytes(count: number): Uint8Array {
    const at = this.#take(count);
    return this.#data.slice(at, at + count);
  }

  /** The next `count` bytes as they lie in the frame. */
  view(count: number): Uint8Array {
    const at = this.#take(count);
    return this.#data.subarray(at, at + count);
  }

  rest(): Uint8Array {
    return this.view(this.remaining);
  }

  blob(maxBytes: number): Uint8Array {
    return this.bytes(this.#length(maxBytes));
  }

  str(maxBytes = VARINT32_MAX): string {
    return decodeUtf8(this.view(this.#length(maxBytes)));
  }

  #length(maxBytes: number): number {
    const length = this.varint32();
    if (length > maxBytes) throw new ProtocolError(`a value of ${length} bytes is over its limit of ${maxBytes}`);
    return length;
  }

  /** The frame must be used up. */
  end(): void {
    if (this.remaining !== 0) throw new ProtocolError("the frame has surplus bytes");
  }
}

/** Writes one frame. Integers and bytes are the caller's to keep in range; text and lengths are checked. */
export class Writer {
  #data = new Uint8Array(64);
  #view = new DataView(this.#data.buffer);
  #length = 0;

  #grow(count: number): number {
    const at = this.#length;
    const needed = at + count;
    if (needed > this.#data.length) {
      const larger = new Uint8Array(Math.max(needed, this.#data.length * 2));
      larger.set(this.#data.subarray(0, at));
      this.#data = larger;
      this.#view = new DataView(larger.buffer);
    }
    this.#length = needed;
    return at;
  }

  u8(value: number): this {
    const at = this.#grow(1);
    this.#view.setUint8(at, value);
    return this;
  }

  u16(value: number): this {
    const at = this.#grow(2);
    this.#view.setUint16(at, value, true);
    return this;
  }

  u32(value: number): this {
    const at = this.#grow(4);
    this.#view.setUint32(at, value, true);
    return this;
  }

  f32(value: number): this {
    const at = this.#grow(4);
    this.#view.setFloat32(at, value, true);
    return this;
  }

  f64(value: number): this {
    const at = this.#grow(8);
    this.#view.setFloat64(at, value, true);
    return this;
  }

  varint(value: number): this {
    let left = value;
    while (left >= 0x80) {
      this.u8(left % 128 | 0x80);
      left = Math.floor(left / 128);
    }
    return this.u8(left);
  }

  zigzag(value: number): this {
    return this.varint(((value << 1) ^ (value >> 31)) >>> 0);
  }

  raw(bytes: Uint8Array): this {
    const at = this.#grow(bytes.length);
    this.#data.set(bytes, at);
    return this;
  }

  blob(bytes: Uint8Array): this {
    return this.varint(bytes.length).raw(bytes);
  }

  str(text: string): this {
    return this.blob(encodeUtf8(text));
  }

  /** A copy of what was written. */
  finish(): Uint8Array {
    return this.#data.slice(0, this.#length);
  }
}
