// Every frame of docs/protocol/frames.md: decoders for what a server sends, encoders for what a client sends.
// Updates are decoded in updates.ts, because they need to know what is held.

import { ProtocolError } from "./errors.js";
import { inflateRaw } from "./inflate.js";
import { formatJson, parseJson, type Json } from "./json.js";
import { decodeUtf8, encodeUtf8, Reader, Writer } from "./values.js";

export const PROTOCOL_VERSION = 1;
export const MAX_PAYLOAD_BYTES = 65_536;
export const MAX_RESUME_BYTES = 49_152;
const MAX_CALL_NAME_BYTES = 64;
const MAX_ERROR_TEXT_BYTES = 4_096;

export const FrameType = {
  HELLO: 1,
  WELCOME: 2,
  WAKING: 3,
  UPDATE: 4,
  MESSAGE: 5,
  UNRELIABLE: 6,
  VOICE: 7,
  PEERS: 9,
  CALL: 10,
  REPLY: 11,
  INPUTS: 12,
  ACK: 13,
  WRITE: 14,
  PING: 15,
  PONG: 16,
  RESET: 17,
  RESUME: 18,
  ASLEEP: 19,
  LEAVE: 20,
} as const;

/** The most bytes a frame of each type from a server may have. */
const LIMITS: Readonly<Record<number, number>> = {
  [FrameType.WELCOME]: 16_384,
  [FrameType.WAKING]: 1_024,
  [FrameType.UPDATE]: 61_440,
  [FrameType.MESSAGE]: 65_600,
  [FrameType.UNRELIABLE]: 65_600,
  [FrameType.VOICE]: 16_384,
  [FrameType.PEERS]: 65_536,
  [FrameType.REPLY]: 65_600,
  [FrameType.ACK]: 1_024,
  [FrameType.PONG]: 1_024,
  [FrameType.RESET]: 1_024,
  [FrameType.ASLEEP]: 1_024,
};

/** What a message, call or reply carries: JSON, or bytes. */
export type Payload = Json | Uint8Array;

export interface Welcome {
  readonly type: "welcome";
  readonly generation: number;
  readonly version: number;
  readonly tick: number;
  /** How far past `tick` the room is, in 1/256 of a tick. */
  readonly fraction: number;
  readonly resumed: boolean;
  readonly asleep: boolean;
  readonly tickRate: number;
  readonly player: string;
  readonly room: string;
  readonly roomType: string;
  readonly token: string;
}

export type ServerFrame =
  | Welcome
  | { readonly type: "waking" }
  | { readonly type: "update"; readonly data: Uint8Array }
  | { readonly type: "message"; readonly unreliable: boolean; readonly payload: Payload }
  | { readonly type: "voice"; readonly url: string; readonly token: string }
  | { readonly type: "peers"; readonly hears: readonly string[]; readonly heardBy: readonly string[] }
  | { readonly type: "reply"; readonly call: number; readonly payload: Payload }
  | { readonly type: "error"; readonly call: number; readonly code: number; readonly text: string }
  | { readonly type: "ack"; readonly tick: number; readonly input: number; readonly slack: number }
  | {
      readonly type: "pong";
      readonly nonce: number;
      readonly ticking: boolean;
      readonly tick: number;
      readonly fraction: number;
    }
  | { readonly type: "reset"; readonly number: number; readonly code: number }
  | { readonly type: "asleep"; readonly generation: number; readonly version: number }
  | { readonly type: "unknown" };

const FORMAT_BYTES = 1;
const FORMAT_DEFLATED = 2;

function readPayload(reader: Reader, format: number): Payload {
  const raw = reader.rest();
  const bytes = format & FORMAT_DEFLATED ? inflateRaw(raw, MAX_PAYLOAD_BYTES) : raw.slice();
  if (bytes.length > MAX_PAYLOAD_BYTES) throw new ProtocolError(`a payload is over ${MAX_PAYLOAD_BYTES} bytes`);
  return format & FORMAT_BYTES ? bytes : parseJson(decodeUtf8(bytes));
}

function readMessage(reader: Reader, unreliable: boolean): ServerFrame {
  const format = reader.u8();
  if (format > 3) throw new ProtocolError("a payload has an unknown format");
  return { type: "message", unreliable, payload: readPayload(reader, format) };
}

function readReply(reader: Reader): ServerFrame {
  const call = reader.varint32();
  const flags = reader.u8();
  if (flags > 4) throw new ProtocolError("a reply has unknown flags");
  if (flags < 4) return { type: "reply", call, payload: readPayload(reader, flags) };
  const code = reader.u16();
  if (reader.remaining > MAX_ERROR_TEXT_BYTES) throw new ProtocolError("an error's text is too long");
  return { type: "error", call, code, text: decodeUtf8(reader.rest()) };
}

const WELCOME_RESUMED = 1;
const WELCOME_ASLEEP = 2;

function readWelcome(reader: Reader): Welcome {
  const [generation, version, tick, fraction] = [reader.varint53(), reader.varint32(), reader.varint53(), reader.u8()];
  const flags = reader.u8();
  return {
    type: "welcome",
    generation,
    version,
    tick,
    fraction,
    resumed: (flags & WELCOME_RESUMED) !== 0,
    asleep: (flags & WELCOME_ASLEEP) !== 0,
    tickRate: reader.u8(),
    player: reader.str(),
    room: reader.str(),
    roomType: reader.str(),
    token: reader.str(),
  };
}

function readPlayers(reader: Reader): string[] {
  const count = reader.varint32();
  // Each takes a byte at least, so a count that cannot be true is refused before anything is made for it.
  if (count > reader.remaining) throw new ProtocolError("the frame ends too early");
  return Array.from({ length: count }, () => reader.str());
}

function readPong(reader: Reader): ServerFrame {
  const nonce = reader.u32();
  const ticking = (reader.u8() & 1) !== 0;
  return { type: "pong", nonce, ticking, tick: reader.varint53(), fraction: reader.u8() };
}

function readReset(reader: Reader): ServerFrame {
  const number = reader.varint32();
  const code = reader.u16();
  if (number === 0) throw new ProtocolError("resets count from 1");
  return { type: "reset", number, code };
}

/** Decode one frame from a server, all of it, or throw ProtocolError. A type that is not known is "unknown". */
export function decodeServerFrame(data: Uint8Array): ServerFrame {
  const reader = new Reader(data);
  const type = reader.u8();
  const limit = LIMITS[type];
  if (limit === undefined) return { type: "unknown" };
  if (data.length > limit) throw new ProtocolError(`a frame of type ${type} is over ${limit} bytes`);
  // Frames that may grow at their end are not asked whether they are used up; the others use `rest`.
  switch (type) {
    case FrameType.WELCOME:
      return readWelcome(reader);
    case FrameType.WAKING:
      return { type: "waking" };
    case FrameType.UPDATE:
      return { type: "update", data: reader.rest() };
    case FrameType.MESSAGE:
      return readMessage(reader, false);
    case FrameType.UNRELIABLE:
      return readMessage(reader, true);
    case FrameType.VOICE:
      return { type: "voice", url: reader.str(), token: reader.str() };
    case FrameType.PEERS:
      return { type: "peers", hears: readPlayers(reader), heardBy: readPlayers(reader) };
    case FrameType.REPLY:
      return readReply(reader);
    case FrameType.ACK:
      return { type: "ack", tick: reader.varint53(), input: reader.varint53(), slack: reader.zigzag() };
    case FrameType.PONG:
      return readPong(reader);
    case FrameType.RESET:
      return readReset(reader);
    default:
      return { type: "asleep", generation: reader.varint53(), version: reader.varint32() };
  }
}

export interface Hello {
  readonly project: string;
  readonly room: string;
  readonly roomType: string;
  readonly token: string;
  readonly schemaHash: string;
  /** 16 bytes. */
  readonly session: Uint8Array;
  readonly attempt: number;
  readonly sdk: string;
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}

export function encodeHello(hello: Hello): Uint8Array {
  return new Writer()
    .u8(FrameType.HELLO)
    .u16(PROTOCOL_VERSION)
    .str(hello.project)
    .str(hello.room)
    .str(hello.roomType)
    .str(hello.token)
    .raw(fromHex(hello.schemaHash))
    .raw(hello.session)
    .varint(hello.attempt)
    .str(hello.sdk)
    .finish();
}

/** What a client holds of a room. Nothing: generation and version 0, no ids. */
export interface Held {
  readonly generation: number;
  readonly version: number;
  /** Ascending, without 0 and 1. */
  readonly ids: readonly number[];
}

function writeResume(reset: number, held: Held, wantFull: boolean): Uint8Array {
  const writer = new Writer().u8(FrameType.RESUME).varint(reset).varint(held.generation).varint(held.version);
  const ids = wantFull ? [] : held.ids;
  writer.u8(wantFull ? 1 : 0).varint(ids.length);
  let before = 0;
  for (const id of ids) {
    writer.varint(id - before);
    before = id;
  }
  return writer.finish();
}

/** Asks for the full state where the ids would pass the frame's limit, or `wantFull` says so. */
export function encodeResume(reset: number, held: Held, wantFull = false): Uint8Array {
  const frame = writeResume(reset, held, wantFull);
  return frame.length <= MAX_RESUME_BYTES ? frame : writeResume(reset, held, true);
}

function writePayload(writer: Writer, payload: unknown): Uint8Array {
  const isBytes = payload instanceof Uint8Array;
  const bytes = isBytes ? payload : encodeUtf8(formatJson(payload));
  if (bytes.length > MAX_PAYLOAD_BYTES) {
    throw new RangeError(`the payload has ${bytes.length} bytes; ${MAX_PAYLOAD_BYTES} is the most`);
  }
  return writer
    .u8(isBytes ? FORMAT_BYTES : 0)
    .raw(bytes)
    .finish();
}

/** `seen` is 0, or 1 + the tick of the newest update applied. TypeError or RangeError for what cannot be sent. */
export function encodeMessage(payload: unknown, seen: number, unreliable: boolean): Uint8Array {
  const type = unreliable ? FrameType.UNRELIABLE : FrameType.MESSAGE;
  return writePayload(new Writer().u8(type).varint(seen), payload);
}

export function encodeCall(call: number, seen: number, name: string, payload: unknown): Uint8Array {
  const nameBytes = encodeUtf8(name);
  if (nameBytes.length > MAX_CALL_NAME_BYTES)
    throw new RangeError(`a call's name has at most ${MAX_CALL_NAME_BYTES} bytes`);
  return writePayload(new Writer().u8(FrameType.CALL).varint(call).varint(seen).blob(nameBytes), payload);
}

export function encodePing(nonce: number): Uint8Array {
  return new Writer().u8(FrameType.PING).u32(nonce).finish();
}

export function encodeLeave(): Uint8Array {
  return Uint8Array.of(FrameType.LEAVE);
}
