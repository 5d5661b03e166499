// What the schema module that `playhall gen` writes is made of (docs/protocol/typescript-schema.md).

import { type Field, type FieldCodec, codecOf } from "./fields.js";

/**
 * What every entity has besides the fields of its kind. Entities are the room's: pages read them, and write only the
 * writable fields of those this player owns, private state among them.
 */
export interface Entity {
  /** Its number, the same for all. */
  readonly id: number;
  /** The player who owns it, or null: the room. */
  readonly owner: string | null;
  /** The name of its kind. */
  readonly kind: string;
  /**
   * Write bytes into a writable `bytes` field of an entity this player owns; a gap is filled with zeros. The field then
   * holds a new array.
   */
  patch(field: string, offset: number, bytes: Uint8Array): void;
}

declare const TYPE: unique symbol;

/** A kind of entity. `T` is what one looks like. */
export interface Kind<T extends Entity = Entity> {
  readonly name: string;
  readonly fields: readonly Field[];
  readonly codecs: readonly FieldCodec[];
  readonly hidden: boolean;
  readonly [TYPE]?: T;
}

/** The compact input of a room. */
export interface InputKind<T = unknown> {
  readonly name: string;
  readonly fields: readonly Field[];
  readonly codecs: readonly FieldCodec[];
  readonly [TYPE]?: T;
}

/** A call that the room answers. `Args` is what is sent, `Reply` what comes back. */
export interface CallKind<Args = unknown, Reply = unknown> {
  readonly [TYPE]?: [Args, Reply];
}

/** The calls of a schema, by name. */
export type Calls = Readonly<Record<string, CallKind>>;

/** What page and room must agree on: the `schema` of the module that `playhall gen` writes. */
export interface Schema<State = unknown, Private = unknown, Input = unknown, C extends Calls = Calls> {
  /** 32 hexadecimal digits; the room's build must have the same. */
  readonly hash: string;
  readonly entities: readonly Kind[];
  readonly state: Kind | null;
  readonly private: Kind | null;
  readonly input: InputKind | null;
  /** Every kind at its number, presence last. */
  readonly kinds: readonly Kind[];
  /** For their types: the room may know other ones. */
  readonly calls: C;
  readonly [TYPE]?: [State, Private, Input];
}

type EntityOf<K> = K extends Kind<infer T> ? T : null;
type InputOf<K> = K extends InputKind<infer T> ? T : null;

/** The fields every room has without declaring them: who is there. */
export interface PresenceEntry extends Entity {
  readonly player: string;
  /** At most 64 characters; empty if it has none. */
  readonly name: string;
  /** JSON of at most 1 KB, null at first. */
  readonly status: unknown;
  /** False for up to 10 s after the last connection was lost. */
  readonly connected: boolean;
}

export const Presence = kind<PresenceEntry>("playhall_presence", [
  { name: "player", type: "str" },
  { name: "name", type: "str" },
  { name: "status", type: "json" },
  { name: "connected", type: "bool" },
]);

/** Called by the generated module, for each kind. */
export function kind<T extends Entity>(
  name: string,
  fields: readonly Field[],
  options: { hidden?: boolean } = {},
): Kind<T> {
  return Object.freeze({ name, fields, codecs: fields.map(codecOf), hidden: options.hidden ?? false });
}

/** Called by the generated module, for the input. */
export function input<T>(name: string, fields: readonly Field[]): InputKind<T> {
  return Object.freeze({ name, fields, codecs: fields.map(codecOf) });
}

/** Called by the generated module, for each call. */
export function call<Args, Reply>(): CallKind<Args, Reply> {
  return Object.freeze({});
}

/** Called by the generated module, last. */
export function defineSchema<
  S extends Kind | null,
  P extends Kind | null,
  I extends InputKind | null,
  C extends Calls = {},
>(declared: {
  hash: string;
  entities: readonly Kind[];
  state: S;
  private: P;
  input: I;
  calls?: C;
}): Schema<EntityOf<S>, EntityOf<P>, InputOf<I>, C> {
  if (!/^[0-9a-f]{32}$/.test(declared.hash)) throw new TypeError("a schema's hash has 32 hexadecimal digits");
  const singles = [declared.state, declared.private].filter((single): single is NonNullable<S | P> => single !== null);
  const calls = declared.calls ?? ({} as C);
  return Object.freeze({ ...declared, calls, kinds: [...declared.entities, ...singles, Presence] });
}
