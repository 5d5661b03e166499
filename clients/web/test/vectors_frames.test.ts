import { describe, expect, test } from "vitest";
import { ProtocolError } from "../src/core/errors.js";
import type { Field } from "../src/core/fields.js";
import {
  decodeServerFrame,
  encodeCall,
  encodeHello,
  encodeLeave,
  encodeMessage,
  encodePing,
  encodeResume,
  type Payload,
  type ServerFrame,
} from "../src/core/frames.js";
import { parseJson } from "../src/core/json.js";
import { encodeInputs, encodeWrite } from "../src/core/play_frames.js";
import { input, Presence, type Kind } from "../src/core/schema.js";
import { decodeUtf8, encodeUtf8 } from "../src/core/values.js";
import { fromHex, fromVector, readVectors, titleOf, toHex, type Vector } from "./vectors.js";
import { schemaOf } from "./vectors_schema.js";

interface Decoded {
  readonly frame: string | null;
  readonly [key: string]: unknown;
}

const { vectors } = readVectors("frames");
const by = (from: string, verdict: string): (readonly [string, Vector])[] =>
  vectors
    .filter((vector) => vector["from"] === from && vector.verdict === verdict)
    .map((vector) => [titleOf(vector), vector]);

/** 0, or 1 + the tick. */
const seen = (tick: unknown): number => (tick === null ? 0 : (tick as number) + 1);

function payloadOf(decoded: Decoded): Payload {
  const bytes = fromHex(decoded["payload"] as string);
  return decoded["binary"] === true ? bytes : parseJson(decodeUtf8(bytes));
}

/** What the vectors call a frame, of what the client's decoder does. Payloads stay values. */
function described(frame: ServerFrame): Record<string, unknown> {
  switch (frame.type) {
    case "welcome": {
      const { tickRate, roomType, type: _, ...rest } = frame;
      return { frame: "welcome", ...rest, tick_rate: tickRate, type: roomType };
    }
    case "message":
      return { frame: frame.unreliable ? "unreliable" : "message", payload: frame.payload };
    case "pong": {
      const { ticking, type: _, ...rest } = frame;
      return { frame: "pong", ...rest, has_tick: ticking };
    }
    case "peers":
      return { frame: "peers", hears: frame.hears, heard_by: frame.heardBy };
    case "error":
      return { frame: "reply", call: frame.call, error: { code: frame.code, text: frame.text } };
    case "reply":
      return { frame: "reply", call: frame.call, error: null, payload: frame.payload };
    case "unknown":
      return { frame: null };
    default: {
      const { type, ...rest } = frame;
      return { frame: type, ...rest };
    }
  }
}

function expectation(decoded: Decoded): Record<string, unknown> {
  const { payload, binary, ...rest } = decoded;
  const carries = payload !== undefined && (rest["error"] ?? null) === null;
  return carries ? { ...rest, payload: payloadOf(decoded) } : rest;
}

describe("frames.json, from a server", () => {
  test.each(by("server", "valid"))("%s", (_, vector) => {
    expect(described(decodeServerFrame(fromHex(vector["hex"] as string)))).toStrictEqual(
      expectation(vector["decoded"] as Decoded),
    );
  });

  test.each(by("server", "refused"))("%s", (_, vector) => {
    expect(() => decodeServerFrame(fromHex(vector["hex"] as string))).toThrow(ProtocolError);
  });
});

function encode(decoded: Decoded): Uint8Array {
  switch (decoded.frame) {
    case "hello": {
      const {
        project,
        room,
        token,
        attempt,
        sdk,
        type: roomType,
        schema: schemaHash,
      } = decoded as unknown as Record<string, string>;
      const session = fromHex(decoded["session"] as string);
      return encodeHello({
        project,
        room,
        token,
        sdk,
        roomType,
        schemaHash,
        session,
        attempt: Number(attempt),
      } as never);
    }
    case "resume": {
      const held = { generation: decoded["generation"], version: decoded["version"], ids: decoded["held"] };
      return encodeResume(decoded["reset"] as number, held as never, decoded["full"] as boolean);
    }
    case "message":
    case "unreliable":
      return encodeMessage(payloadOf(decoded), seen(decoded["seen"]), decoded.frame === "unreliable");
    case "call":
      return encodeCall(
        decoded["call"] as number,
        seen(decoded["seen"]),
        decoded["name"] as string,
        payloadOf(decoded),
      );
    case "inputs": {
      const entries = decoded["entries"] as { tick: number; view: number | null; input: string }[];
      return encodeInputs(
        entries.map(({ tick, view, input }) => ({
          tick,
          lag: lag(tick, view),
          value: parseJson(decodeUtf8(fromHex(input))),
        })),
        null,
      );
    }
    case "ping":
      return encodePing(decoded["nonce"] as number);
    case "leave":
      return encodeLeave();
    default:
      throw new Error(`there is no client frame ${decoded.frame}`);
  }
}

const lag = (tick: number, view: number | null): number => (view === null ? 0 : 1 + 256 * tick - view);

/** The frames that may have grown at their end; the client writes what it knows. */
const OPEN = ["hello", "resume", "ping", "leave"];

describe("frames.json, from a client", () => {
  test.each(by("client", "valid"))("%s", (_, vector) => {
    const decoded = vector["decoded"] as Decoded;
    const frame = toHex(encode(decoded));
    if (OPEN.includes(decoded.frame!)) expect((vector["hex"] as string).startsWith(frame)).toBe(true);
    else expect(frame).toBe(vector["hex"]);
  });

  test("a call's name, a payload and a number that may not be sent are refused before they are", () => {
    expect(() => encodeMessage(new Uint8Array(65_537), 0, false)).toThrow(RangeError);
    expect(() => encodeMessage("x".repeat(65_535), 0, false)).toThrow(RangeError);
    expect(encodeMessage("x".repeat(65_534), 0, false)).toHaveLength(65_539);
    expect(() => encodeCall(1, 0, "n".repeat(65), {})).toThrow(RangeError);
    for (const value of [NaN, Infinity, 2 ** 53, undefined, () => 1]) {
      expect(() => encodeMessage({ value: [value] }, 0, false), String(value)).toThrow(Error);
    }
    expect(() => encodeMessage(undefined, 0, false)).toThrow(TypeError);
    expect(() => encodeMessage({ text: "\ud800" }, 0, false)).toThrow(RangeError);
    expect(() => encodeUtf8("\udc00")).toThrow(RangeError);
  });
});

describe("inputs.json and writes.json", () => {
  const inputs = readVectors("inputs");
  const fields = (inputs["input"] as [string, Field["type"]][]).map(([name, type]) => ({ name, type }));

  test.each(
    inputs.vectors.filter(({ verdict }) => verdict === "valid").map((vector) => [titleOf(vector), vector] as const),
  )("%s", (_, vector) => {
    const entries = vector["decoded"] as { tick: number; view: number | null; fields: unknown }[];
    const frame = encodeInputs(
      entries.map(({ tick, view, fields: value }) => ({ tick, lag: lag(tick, view), value })),
      input("control", fields),
    );
    expect(toHex(frame)).toBe(vector["hex"]);
  });

  const schema = schemaOf(readVectors("updates")["schema"]);
  const numberOf = (name: string): number => [...schema.kinds].findIndex((kind) => kind.name === name);

  test.each(
    readVectors("writes")
      .vectors.filter(({ verdict }) => verdict === "valid")
      .map((vector) => [titleOf(vector), vector] as const),
  )("%s", (_, vector) => {
    const entries = vector["decoded"] as { id: number; kind: string; fields: Record<string, unknown> }[];
    const frame = encodeWrite(
      vector["seen"] as number,
      entries.map(({ id, kind, fields: values }) => {
        const number = numberOf(kind);
        return {
          id,
          number,
          kind: schema.kinds[number] as Kind,
          values: fromVector(values) as Record<string, unknown>,
        };
      }),
    );
    expect(toHex(frame)).toBe(vector["hex"]);
    expect(schema.kinds.at(-1)).toBe(Presence);
  });
});
