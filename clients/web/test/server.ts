// A server's side of the protocol, as far as tests of the client play it.

import { FrameType } from "../src/core/frames.js";
import { call, defineSchema, kind, type Entity, type Kind, type Schema } from "../src/core/schema.js";
import { formatJson } from "../src/core/json.js";
import { Writer } from "../src/core/values.js";

export interface Dot extends Entity {
  readonly x: number;
  readonly y: number;
  readonly wears: readonly string[];
}
export const Dot = kind<Dot>("dot", [
  { name: "x", type: "f32" },
  { name: "y", type: "f32" },
  { name: "wears", type: "json" },
]);

export interface Chunk extends Entity {
  readonly blocks: Uint8Array;
}
export const Chunk = kind<Chunk>("chunk", [{ name: "blocks", type: "bytes" }]);

export interface Board extends Entity {
  readonly moves: number;
}
export const Board = kind<Board>("board", [{ name: "moves", type: "u32" }]);

export interface Mine extends Entity {
  readonly moves: number;
  volume: number;
}
export const Mine = kind<Mine>("mine", [
  { name: "moves", type: "u32" },
  { name: "volume", type: "u8", writable: true },
]);

/** What a player draws with; its owner writes it. */
export interface Pen extends Entity {
  x: number;
  label: string;
  ink: Uint8Array;
  style: { readonly width: number } | null;
  level: number;
  readonly colour: number;
}
export const Pen = kind<Pen>("pen", [
  { name: "x", type: "f32", writable: true },
  { name: "label", type: "str", writable: true },
  { name: "ink", type: "bytes", writable: true },
  { name: "style", type: "json", writable: true },
  { name: "level", type: "q8", lo: 0, hi: 1, writable: true },
  { name: "colour", type: "u8" },
]);

export interface Buy {
  readonly item: "ring" | "halo";
  readonly count?: number;
}
export interface Wait {
  readonly seconds?: number;
}

export const schema = defineSchema({
  hash: "00112233445566778899aabbccddeeff",
  entities: [Dot, Chunk, Pen],
  state: Board,
  private: Mine,
  input: null,
  calls: {
    buy: call<Buy, number>(),
    wait: call<Wait, null>(),
  },
});

export const FIRST_PRESENCE = 2 ** 31;

export interface WelcomeFields {
  generation?: number;
  version?: number;
  tick?: number;
  resumed?: boolean;
  asleep?: boolean;
  tickRate?: number;
  player?: string;
  token?: string;
}

export function welcome(fields: WelcomeFields = {}): Uint8Array {
  const { generation = 7, version = 0, tick = 40, resumed = false, asleep = false, tickRate = 20 } = fields;
  return new Writer()
    .u8(FrameType.WELCOME)
    .varint(generation)
    .varint(version)
    .varint(tick)
    .u8(0)
    .u8((resumed ? 1 : 0) | (asleep ? 2 : 0))
    .u8(tickRate)
    .str(fields.player ?? "ann")
    .str("main")
    .str("default")
    .str(fields.token ?? "")
    .finish();
}

/** The sections of an update, each a list of entries. */
export interface Sections {
  leave?: readonly number[];
  enter?: readonly { id: number; kind: Kind; owned?: boolean; values: readonly unknown[] }[];
  change?: readonly { id: number; kind: Kind; values: Readonly<Record<string, unknown>> }[];
  patch?: readonly { id: number; field: number; offset: number; data: Uint8Array }[];
  owner?: readonly { id: number; owner: string }[];
  correct?: readonly { id: number; kind: Kind; values: Readonly<Record<string, unknown>> }[];
}

function writeMasked(writer: Writer, ofKind: Kind, values: Readonly<Record<string, unknown>>): void {
  const present = ofKind.fields.flatMap(({ name }, index) => (name in values ? [index] : []));
  writer.u8(present.reduce((mask, index) => mask | (1 << index), 0));
  for (const index of present) ofKind.codecs[index]!.write(writer, values[ofKind.fields[index]!.name]);
}

/** The body of a part: sections in the order the protocol wants. */
export function body(sections: Sections, ofSchema: Schema = schema): Uint8Array {
  const writer = new Writer();
  const section = <T>(number: number, entries: readonly T[] | undefined, write: (entry: T) => void): void => {
    if (entries === undefined || entries.length === 0) return;
    writer.u8(number).varint(entries.length);
    entries.forEach(write);
  };
  section(1, sections.leave, (id) => void writer.varint(id));
  section(2, sections.enter, ({ id, kind: ofKind, owned = false, values }) => {
    writer.varint(id).varint(ofSchema.kinds.indexOf(ofKind) * 2 + (owned ? 1 : 0));
    values.forEach((value, index) => ofKind.codecs[index]!.write(writer, value));
  });
  section(3, sections.change, ({ id, kind: ofKind, values }) => writeMasked(writer.varint(id), ofKind, values));
  section(
    4,
    sections.patch,
    ({ id, field, offset, data }) => void writer.varint(id).u8(field).varint(offset).blob(data),
  );
  section(5, sections.owner, ({ id, owner }) => void writer.varint(id).str(owner));
  section(6, sections.correct, ({ id, kind: ofKind, values }) => writeMasked(writer.varint(id), ofKind, values));
  return writer.finish();
}

export interface PartFields {
  last?: boolean;
  full?: boolean;
  deflated?: boolean;
  dv?: number;
  dt?: number;
}

export function part(partBody: Uint8Array, fields: PartFields = {}): Uint8Array {
  const { last = true, full = false, deflated = false, dv = 1, dt = 1 } = fields;
  const flags = (last ? 1 : 0) | (deflated ? 2 : 0) | (full ? 4 : 0);
  return new Writer().u8(FrameType.UPDATE).u8(flags).varint(dv).varint(dt).raw(partBody).finish();
}

export function update(sections: Sections, fields: PartFields = {}): Uint8Array {
  return part(body(sections), fields);
}

export function presence(id: number, player: string, name = ""): NonNullable<Sections["enter"]>[number] {
  return { id, kind: schema.kinds.at(-1)!, values: [player, name, null, true] };
}

/** What ann sees first: shared and private state, a dot of hers and one of bob's, and who is there. */
export function fullState(fields: PartFields = {}): Uint8Array {
  return update(
    {
      enter: [
        { id: 0, kind: Board, values: [3] },
        { id: 1, kind: Mine, owned: true, values: [1, 5] },
        { id: 2, kind: Dot, values: [10, 20, []] },
        { id: 3, kind: Dot, values: [30, 40, ["ring"]] },
        presence(FIRST_PRESENCE, "ann", "Ann"),
      ],
      owner: [
        { id: 2, owner: "ann" },
        { id: 3, owner: "bob" },
      ],
    },
    { full: true, dv: 0, dt: 0, ...fields },
  );
}

export function message(text: string): Uint8Array {
  return new Writer().u8(FrameType.MESSAGE).u8(0).raw(new TextEncoder().encode(text)).finish();
}

export function unreliable(text: string): Uint8Array {
  return new Writer().u8(FrameType.UNRELIABLE).u8(0).raw(new TextEncoder().encode(text)).finish();
}

export function reply(call: number, value: unknown): Uint8Array {
  return new Writer()
    .u8(FrameType.REPLY)
    .varint(call)
    .u8(0)
    .raw(new TextEncoder().encode(formatJson(value)))
    .finish();
}

export function refusal(call: number, code: number, text: string): Uint8Array {
  return new Writer().u8(FrameType.REPLY).varint(call).u8(4).u16(code).raw(new TextEncoder().encode(text)).finish();
}

export function pong(nonce: number, tick: number, fraction = 0): Uint8Array {
  return new Writer().u8(FrameType.PONG).u32(nonce).u8(1).varint(tick).u8(fraction).finish();
}

export function reset(number: number, code: number): Uint8Array {
  return new Writer().u8(FrameType.RESET).varint(number).u16(code).finish();
}

export function asleep(generation: number, version: number): Uint8Array {
  return new Writer().u8(FrameType.ASLEEP).varint(generation).varint(version).finish();
}

export function voice(url: string, token: string): Uint8Array {
  return new Writer().u8(FrameType.VOICE).str(url).str(token).finish();
}

export function peers(hears: readonly string[], heardBy: readonly string[]): Uint8Array {
  const writer = new Writer().u8(FrameType.PEERS);
  for (const players of [hears, heardBy]) {
    writer.varint(players.length);
    for (const player of players) writer.str(player);
  }
  return writer.finish();
}

export const waking = Uint8Array.of(FrameType.WAKING);
