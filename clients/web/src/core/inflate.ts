// Raw DEFLATE (RFC 1951), inflated in one call. The browser's DecompressionStream answers later, and a frame must
// take effect before the next one is read, so the client has its own: 150 lines, no tables kept but the fixed ones.
//
// It accepts and refuses what zlib does: no set of codes may be over-subscribed, and none incomplete but a single
// distance code; the last block must end where the data does.

import { ProtocolError } from "./errors.js";

const MAX_BITS = 15;
const END_OF_BLOCK = 256;
const CODE_LENGTH_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** Base value and number of extra bits of each length and distance symbol. */
const LENGTHS = ranges([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0], 3);
const DISTANCES = ranges(
  [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13],
  1,
);
// The last length symbol is 258 alone, which the one before it could reach too.
(LENGTHS.at(-1) as Range).base = 258;

interface Range {
  base: number;
  readonly extra: number;
}

function ranges(extras: readonly number[], first: number): Range[] {
  let base = first;
  return extras.map((extra) => {
    const range = { base, extra };
    base += 1 << extra;
    return range;
  });
}

/** A canonical Huffman code: how many codes have each length, and the symbols in code order. */
interface Huffman {
  readonly counts: Uint16Array;
  readonly symbols: Uint16Array;
}

function huffman(lengths: Uint8Array, incompleteAllowed: boolean): Huffman {
  const counts = new Uint16Array(MAX_BITS + 1);
  for (const length of lengths) counts[length]!++;
  counts[0] = 0;
  let left = 1;
  for (let bits = 1; bits <= MAX_BITS; bits++) {
    left = left * 2 - counts[bits]!;
    if (left < 0) throw new ProtocolError("compressed data has too many codes");
  }
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (left > 0 && !(incompleteAllowed && (total === 0 || (total === 1 && counts[1] === 1)))) {
    throw new ProtocolError("compressed data has an incomplete set of codes");
  }
  const offsets = new Uint16Array(MAX_BITS + 2);
  for (let bits = 1; bits <= MAX_BITS; bits++) offsets[bits + 1] = offsets[bits]! + counts[bits]!;
  const symbols = new Uint16Array(total);
  lengths.forEach((length, symbol) => {
    if (length !== 0) symbols[offsets[length]!++] = symbol;
  });
  return { counts, symbols };
}

const FIXED_LITERALS = huffman(
  Uint8Array.from({ length: 288 }, (_, symbol) => (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8)),
  false,
);
const FIXED_DISTANCES = huffman(new Uint8Array(32).fill(5), false);

class Inflater {
  readonly #data: Uint8Array;
  readonly #limit: number;
  #at = 0;
  #bits = 0;
  #bitCount = 0;
  #out: Uint8Array;
  #length = 0;

  constructor(data: Uint8Array, limit: number) {
    this.#data = data;
    this.#limit = limit;
    this.#out = new Uint8Array(Math.min(limit, data.length * 4));
  }

  run(): Uint8Array {
    let last: number;
    do {
      last = this.#take(1);
      const type = this.#take(2);
      if (type === 0) this.#stored();
      else if (type === 1) this.#compressed(FIXED_LITERALS, FIXED_DISTANCES);
      else if (type === 2) this.#dynamic();
      else throw new ProtocolError("compressed data has a block of an unknown type");
    } while (last === 0);
    if (this.#at !== this.#data.length) throw new ProtocolError("compressed data goes on after its end");
    return this.#out.slice(0, this.#length);
  }

  #take(count: number): number {
    while (this.#bitCount < count) {
      if (this.#at === this.#data.length) throw new ProtocolError("compressed data ends too early");
      this.#bits |= this.#data[this.#at++]! << this.#bitCount;
      this.#bitCount += 8;
    }
    const value = this.#bits & ((1 << count) - 1);
    this.#bits >>>= count;
    this.#bitCount -= count;
    return value;
  }

  /** Read one symbol, a bit at a time: codes are in order of length, so the counts alone tell where a code ends. */
  #symbol(code: Huffman): number {
    let value = 0;
    let first = 0;
    let index = 0;
    for (let bits = 1; bits <= MAX_BITS; bits++) {
      value |= this.#take(1);
      const count = code.counts[bits]!;
      if (value - count < first) return code.symbols[index + value - first]!;
      index += count;
      first = (first + count) << 1;
      value <<= 1;
    }
    throw new ProtocolError("compressed data has a code that means nothing");
  }

  /** Make room for `count` more bytes; over the limit is refused before it is allocated. */
  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed > this.#limit) throw new ProtocolError(`compressed data inflates to over ${this.#limit} bytes`);
    if (needed <= this.#out.length) return;
    const larger = new Uint8Array(Math.min(this.#limit, Math.max(needed, this.#out.length * 2)));
    larger.set(this.#out);
    this.#out = larger;
  }

  #stored(): void {
    this.#bits = 0;
    this.#bitCount = 0;
    const length = this.#take(16);
    if (this.#take(16) !== (length ^ 0xffff)) throw new ProtocolError("compressed data has a damaged block");
    if (length > this.#data.length - this.#at) throw new ProtocolError("compressed data ends too early");
    this.#reserve(length);
    this.#out.set(this.#data.subarray(this.#at, this.#at + length), this.#length);
    this.#at += length;
    this.#length += length;
  }

  #dynamic(): void {
    const literalCount = this.#take(5) + 257;
    const distanceCount = this.#take(5) + 1;
    if (literalCount > 286 || distanceCount > 30) throw new ProtocolError("compressed data has too many symbols");
    const codeLengths = new Uint8Array(19);
    for (let left = this.#take(4) + 4, at = 0; at < left; at++) codeLengths[CODE_LENGTH_ORDER[at]!] = this.#take(3);
    const lengths = this.#codeLengths(huffman(codeLengths, false), literalCount + distanceCount);
    if (lengths[END_OF_BLOCK] === 0) throw new ProtocolError("compressed data has a block without an end");
    this.#compressed(huffman(lengths.subarray(0, literalCount), true), huffman(lengths.subarray(literalCount), true));
  }

  #codeLengths(code: Huffman, count: number): Uint8Array {
    const lengths = new Uint8Array(count);
    for (let at = 0; at < count; ) {
      const symbol = this.#symbol(code);
      if (symbol < 16) {
        lengths[at++] = symbol;
        continue;
      }
      if (symbol === 16 && at === 0) throw new ProtocolError("compressed data repeats a length before the first");
      const value = symbol === 16 ? lengths[at - 1]! : 0;
      const times = symbol === 16 ? 3 + this.#take(2) : symbol === 17 ? 3 + this.#take(3) : 11 + this.#take(7);
      if (at + times > count) throw new ProtocolError("compressed data has too many lengths");
      lengths.fill(value, at, at + times);
      at += times;
    }
    return lengths;
  }

  #compressed(literals: Huffman, distances: Huffman): void {
    for (;;) {
      const symbol = this.#symbol(literals);
      if (symbol < END_OF_BLOCK) {
        this.#reserve(1);
        this.#out[this.#length++] = symbol;
      } else if (symbol === END_OF_BLOCK) return;
      else this.#copy(this.#value(LENGTHS[symbol - 257]), this.#value(DISTANCES[this.#symbol(distances)]));
    }
  }

  #value(range: Range | undefined): number {
    if (range === undefined) throw new ProtocolError("compressed data has a symbol that means nothing");
    return range.base + this.#take(range.extra);
  }

  // Byte by byte: the source may overlap what is being written.
  #copy(length: number, distance: number): void {
    if (distance > this.#length) throw new ProtocolError("compressed data points before its start");
    this.#reserve(length);
    for (let end = this.#length + length; this.#length < end; this.#length++) {
      this.#out[this.#length] = this.#out[this.#length - distance]!;
    }
  }
}

/** Inflate all of `data`, which must give at most `limit` bytes; ProtocolError otherwise. */
export function inflateRaw(data: Uint8Array, limit: number): Uint8Array {
  return new Inflater(data, limit).run();
}
