// Whatever bytes come: the decoders throw ProtocolError and nothing else, in time, and leave what is held as it was.
// The bytes are random and the same every time; PLAYHALL_FUZZ_ROUNDS makes more of them.

import { deflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { UpdateAssembler } from "../src/core/assembler.js";
import { ProtocolError } from "../src/core/errors.js";
import { decodeServerFrame } from "../src/core/frames.js";
import { inflateRaw } from "../src/core/inflate.js";
import { formatJson, parseJson } from "../src/core/json.js";
import { Replica } from "../src/core/replica.js";
import { decodeUtf8 } from "../src/core/values.js";
import { fromHex, readVectors } from "./vectors.js";
import { schemaOf } from "./vectors_schema.js";

const ROUNDS = Number(process.env["PLAYHALL_FUZZ_ROUNDS"] ?? 4_000);
const LIMIT = 65_536;

const updates = readVectors("updates");
const schema = schemaOf(updates["schema"]);
const UPDATES = updates.vectors.flatMap((vector) => [
  ...(vector["before"] as string[]),
  ...(vector["parts"] as string[]),
]);
const FRAMES = readVectors("frames")
  .vectors.filter((vector) => vector["from"] === "server")
  .map((vector) => vector["hex"] as string);
const SEEDS = [...UPDATES, ...FRAMES].map(fromHex);

/** Numbers that look random and are the same every time (mulberry32). */
class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** A whole number from 0 to below `below`. */
  next(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  }

  of<T>(items: readonly T[]): T {
    return items[this.next(items.length)]!;
  }

  bytes(most: number): Uint8Array {
    return Uint8Array.from({ length: this.next(most + 1) }, () => this.next(256));
  }
}

const PIECES = ["00", "01", "7f", "80", "ff", "ffffffff0f", "ffffffffffffff0f", "ffffffffffffffffffff", "8000"].map(
  fromHex,
);

/** A frame of the vectors that is cut, or has bytes put in, put over or cut out; or bytes alone. */
function damaged(chance: Chance): Uint8Array {
  if (chance.next(8) === 0) return Uint8Array.of(chance.next(24), ...chance.bytes(60));
  let data = [...chance.of(SEEDS)];
  for (let times = 1 + chance.next(3); times > 0; times--) {
    const at = chance.next(Math.min(data.length, 90) + 1);
    switch (chance.next(5)) {
      case 0:
        data = data.slice(0, at);
        break;
      case 1:
        if (at < data.length) data[at] = data[at]! ^ (1 << chance.next(8));
        break;
      case 2:
        data.splice(at, chance.next(6));
        break;
      default:
        data.splice(at, chance.next(3), ...(chance.next(2) === 0 ? chance.of(PIECES) : chance.bytes(6)));
    }
  }
  return Uint8Array.from(data);
}

/** What `read` gives, or undefined where it refuses. Any other error than ProtocolError fails the test. */
function readOrRefuse<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof ProtocolError) return undefined;
    throw error;
  }
}

function replica(): Replica {
  return new Replica({ write: () => undefined, patch: () => undefined });
}

describe("whatever bytes come", () => {
  test("a frame is read or refused", () => {
    const chance = new Chance(1);
    for (let round = 0; round < ROUNDS; round++) {
      const data = damaged(chance);
      readOrRefuse(() => decodeServerFrame(data));
    }
  });

  test("a frame cut anywhere is read or refused, and an update cut anywhere is refused", () => {
    for (const whole of SEEDS) {
      for (let length = 0; length < whole.length; length++) {
        readOrRefuse(() => decodeServerFrame(whole.subarray(0, length)));
      }
    }
  });

  test("updates one after the other are applied whole or not at all", () => {
    const chance = new Chance(2);
    for (let round = 0; round < ROUNDS / 4; round++) {
      const held = replica();
      const assembler = new UpdateAssembler(schema, (id) => held.get(id)?.kind);
      assembler.begin(0, 0);
      for (let parts = 1 + chance.next(6); parts > 0; parts--) {
        const data = chance.next(2) === 0 ? fromHex(chance.of(UPDATES)) : damaged(chance);
        if (data[0] !== 4) continue;
        const before = JSON.stringify(held.heldIds());
        const update = readOrRefuse(() => assembler.add(data.subarray(1)));
        // What was decoded can be applied, all of it: decoding has checked what could be wrong.
        if (update) held.apply(update.operations, update.full, "ann");
        else expect(JSON.stringify(held.heldIds())).toBe(before);
        if (update === undefined) break;
      }
    }
  });

  test("deflated bytes are inflated or refused, and never to more than is allowed", () => {
    const chance = new Chance(3);
    for (let round = 0; round < ROUNDS / 4; round++) {
      const piece = chance.bytes(40);
      const plain = Buffer.concat(Array.from({ length: chance.next(60) }, () => piece));
      const packed = [...deflateRawSync(plain, { level: chance.of([0, 1, 6, 9]) })];
      packed.splice(chance.next(packed.length), chance.next(3), ...chance.bytes(3));
      const inflated = readOrRefuse(() => inflateRaw(Uint8Array.from(packed), 2_000));
      if (inflated !== undefined) expect(inflated.length).toBeLessThanOrEqual(2_000);
    }
  });

  test("JSON is parsed or refused, and what is parsed can be formatted", () => {
    const chance = new Chance(4);
    const alphabet = [
      ...'[]{}":,0123456789eE+-. truefalsn\\u',
      "\ud800",
      "\0",
      "é",
      "\u2028",
      '"a"',
      "1e400",
      "9007199254740993",
    ];
    for (let round = 0; round < ROUNDS; round++) {
      const text = Array.from({ length: chance.next(30) }, () => chance.of(alphabet)).join("");
      const utf8 = new TextEncoder().encode(text);
      const value = readOrRefuse(() => parseJson(decodeUtf8(utf8)));
      // JSON.stringify writes 1e16 as an integer, which is beyond what is safe, and -0 as 0.
      if (value === undefined || /\\u|[\ud800-\udfff]|\d[eE]|\d{16}|-0/i.test(text)) continue;
      expect(parseJson(formatJson(value))).toStrictEqual(value);
    }
  });
});

describe("what is made to hurt", () => {
  const bomb = deflateRawSync(Buffer.alloc(59 * 2 ** 20), { level: 9 });
  const JSON_FRAME = [5, 0];

  test.each([
    ["a message that inflates to 59 MB", [5, 2, ...bomb]],
    ["a reply that inflates to 59 MB", [11, 0, 2, ...bomb]],
    ["peers of a count that cannot be", [9, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ["10,000 lists in one another", [...JSON_FRAME, ...Buffer.from("[".repeat(10_000) + "]".repeat(10_000))]],
    ["60,000 lists that never end", [...JSON_FRAME, ...Buffer.from("[".repeat(60_000))]],
    ["objects in one another", [...JSON_FRAME, ...Buffer.from('{"a":'.repeat(10_000) + "1" + "}".repeat(10_000))]],
    ["a number of 60,000 digits", [...JSON_FRAME, ...Buffer.from("9".repeat(60_000))]],
    ["a text of 60,000 escapes that does not end", [...JSON_FRAME, ...Buffer.from('"' + "\\\\".repeat(30_000))]],
    ["nothing", []],
    ["what is too long", [5, 1, ...Buffer.alloc(LIMIT + 1)]],
  ])("%s is refused", (_, data) => {
    expect(() => decodeServerFrame(Uint8Array.from(data))).toThrow(ProtocolError);
  });

  test("numbers beside a text of 60,000 characters are looked at", () => {
    const text = `["${'\\"'.repeat(30_000)}",12345678901234567]`;
    expect(() => parseJson(text)).toThrow(ProtocolError);
    expect(parseJson(`["${'\\"'.repeat(30_000)}",1234567890123456]`)).toHaveLength(2);
  });

  test("an update that inflates to too much, or never ends, is refused", () => {
    const held = replica();
    const assembler = new UpdateAssembler(schema, (id) => held.get(id)?.kind);
    assembler.begin(0, 0);
    expect(() => assembler.add(Uint8Array.from([3, 1, 1, ...bomb]))).toThrow(ProtocolError);
    assembler.begin(0, 0);
    // 20,000 leaves a part, in few bytes: what counts is what they come to.
    const body = deflateRawSync(Uint8Array.from([1, 0xa0, 0x9c, 0x01, ...new Uint8Array(20_000).fill(9)]));
    const part = (first: number): Uint8Array => Uint8Array.from([2, first, 0, ...body]);
    let parts = 0;
    const flood = (): void => {
      for (; parts < 10_000; parts++) assembler.add(part(parts === 0 ? 1 : 0));
    };
    expect(flood).toThrow(ProtocolError);
    expect(parts * 20_000).toBeLessThanOrEqual(64 * 2 ** 20);
  });
});
