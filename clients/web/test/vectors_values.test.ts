import { describe, expect, test } from "vitest";
import { parseReason } from "../src/core/backoff.js";
import { ProtocolError } from "../src/core/errors.js";
import { codecOf, readMask, writeMask, type Field, type FieldCodec } from "../src/core/fields.js";
import { Reader, Writer } from "../src/core/values.js";
import { fromHex, fromVector, readVectors, titleOf, toHex, type Vector } from "./vectors.js";

/** How each type that is no field type travels. */
const PLAIN: Readonly<Record<string, Pick<FieldCodec, "read" | "write">>> = {
  varint32: { read: (reader) => reader.varint32(), write: (writer, value) => writer.varint(value as number) },
  varint53: { read: (reader) => reader.varint53(), write: (writer, value) => writer.varint(value as number) },
  zigzag: { read: (reader) => reader.zigzag(), write: (writer, value) => writer.zigzag(value as number) },
  str: { read: (reader) => reader.str(), write: (writer, value) => writer.str(value as string) },
};

function codecFor(vector: Vector): Pick<FieldCodec, "read" | "write"> {
  const type = vector["type"] as string;
  if (type === "mask") {
    return {
      read: (reader) => readMask(reader, vector["fields"] as number),
      write: (writer, value) => writeMask(writer, value as number[]),
    };
  }
  const plain = PLAIN[type];
  if (plain !== undefined && vector["field"] !== true) return plain;
  const range = "lo" in vector ? { lo: vector["lo"] as number, hi: vector["hi"] as number } : {};
  return codecOf({ name: "value", type: type as Field["type"], ...range });
}

function decode(vector: Vector): unknown {
  const reader = new Reader(fromHex(vector["hex"] as string));
  const value = codecFor(vector).read(reader);
  reader.end();
  return value;
}

describe("values.json", () => {
  const { vectors } = readVectors("values");

  test.each(vectors.filter(({ verdict }) => verdict === "valid").map((vector) => [titleOf(vector), vector] as const))(
    "%s",
    (_, vector) => {
      const value = fromVector(vector["value"]);
      expect(decode(vector)).toStrictEqual(value);
      const writer = new Writer();
      if (vector["client"] === "refused") expect(() => codecFor(vector).write(writer, value)).toThrow(RangeError);
      else {
        codecFor(vector).write(writer, value);
        expect(toHex(writer.finish())).toBe(vector["hex"]);
      }
    },
  );

  test.each(vectors.filter(({ verdict }) => verdict === "refused").map((vector) => [titleOf(vector), vector] as const))(
    "%s",
    (_, vector) => {
      expect(() => decode(vector)).toThrow(ProtocolError);
    },
  );
});

describe("close.json", () => {
  test.each(readVectors("close").vectors.map((vector) => [titleOf(vector), vector] as const))("%s", (_, vector) => {
    expect(parseReason(vector["reason"] as string)).toStrictEqual({
      retryAfterMs: vector["retry_after_ms"] ?? 0,
      text: vector["text"],
    });
  });
});
