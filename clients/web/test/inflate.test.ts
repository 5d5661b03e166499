import { constants, deflateRawSync, inflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { ProtocolError } from "../src/core/errors.js";
import { inflateRaw } from "../src/core/inflate.js";

const LIMIT = 65_536;

/** Numbers that look random and are the same every time. */
function* randomBytes(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state >>> 24;
  }
}

function noise(seed: number, length: number): Uint8Array {
  const random = randomBytes(seed);
  return Uint8Array.from({ length }, () => random.next().value as number);
}

const SAMPLES: Readonly<Record<string, Uint8Array>> = {
  nothing: new Uint8Array(0),
  "one byte": Uint8Array.of(7),
  zeros: new Uint8Array(60_000),
  text: new TextEncoder().encode("the room sends what changed, and what changed is what the room sends. ".repeat(300)),
  noise: noise(1, 40_000),
  "little noise in much order": noise(2, 40_000).map((byte, at) => (at % 50 === 0 ? byte : at & 15)),
};

describe("inflate", () => {
  test.each(Object.entries(SAMPLES))("%s comes back as it was, however it was deflated", (_, data) => {
    for (const level of [0, 1, 6, 9]) {
      for (const strategy of [
        constants.Z_DEFAULT_STRATEGY,
        constants.Z_FIXED,
        constants.Z_HUFFMAN_ONLY,
        constants.Z_RLE,
      ]) {
        const inflated = inflateRaw(deflateRawSync(data, { level, strategy }), LIMIT);
        expect(Buffer.compare(inflated, data), `level ${level}, strategy ${strategy}`).toBe(0);
      }
    }
  });

  test("the limit is exact", () => {
    const deflated = deflateRawSync(new Uint8Array(LIMIT));
    expect(inflateRaw(deflated, LIMIT)).toHaveLength(LIMIT);
    expect(() => inflateRaw(deflated, LIMIT - 1)).toThrow(ProtocolError);
  });

  test("a cut or a byte more is refused", () => {
    const deflated = deflateRawSync(SAMPLES["text"]!);
    for (let length = 0; length < deflated.length; length++) {
      expect(() => inflateRaw(deflated.subarray(0, length), LIMIT)).toThrow(ProtocolError);
    }
    expect(() => inflateRaw(Uint8Array.of(...deflated, 0), LIMIT)).toThrow(ProtocolError);
  });

  test("what is damaged is accepted or refused as zlib does", () => {
    const deflated = new Uint8Array(deflateRawSync(SAMPLES["little noise in much order"]!.subarray(0, 500)));
    for (let seed = 1; seed <= 2_000; seed++) {
      const [at, byte] = [((seed * 7_919) >>> 0) % Math.min(deflated.length, 120), noise(seed, 1)[0]!];
      const damaged = deflated.slice();
      damaged[at] = byte;
      expect([seed, outcome(() => inflateRaw(damaged, LIMIT))]).toEqual([seed, outcome(() => zlibInflate(damaged))]);
    }
  });
});

/** zlib, which says nothing of data after its end by itself. */
function zlibInflate(data: Uint8Array): Uint8Array {
  const { buffer, engine } = inflateRawSync(data, { maxOutputLength: LIMIT, info: true } as object) as unknown as {
    buffer: Buffer;
    engine: { bytesWritten: number };
  };
  if (engine.bytesWritten !== data.length) throw new Error("surplus");
  return new Uint8Array(buffer);
}

function outcome(run: () => Uint8Array): string {
  try {
    return Buffer.from(run()).toString("hex");
  } catch {
    return "refused";
  }
}
