// What a playing client sends besides messages: inputs and owner writes.

import { writeMask } from "./fields.js";
import { FrameType } from "./frames.js";
import { formatJson } from "./json.js";
import type { InputKind, Kind } from "./schema.js";
import { Writer } from "./values.js";

/** The most bytes a write frame may have. */
export const MAX_WRITE_BYTES = 65_600;

export interface InputEntry {
  readonly tick: number;
  /** 0, or 1 + (256 x tick - view). */
  readonly lag: number;
  /** Compact: an object with all fields of `kind`. Else any JSON. */
  readonly value: unknown;
}

/** Encode one to five inputs, the newest first. With a `kind` they are compact, else JSON. */
export function encodeInputs(entries: readonly InputEntry[], kind: InputKind | null): Uint8Array {
  const writer = new Writer()
    .u8(FrameType.INPUTS)
    .u8(kind === null ? 0 : 1)
    .u8(entries.length);
  entries.forEach((entry, index) => {
    const newer = entries[index - 1];
    writer.varint(newer === undefined ? entry.tick : newer.tick - entry.tick).varint(entry.lag);
    if (kind === null) writer.str(formatJson(entry.value));
    else
      writeFields(
        writer,
        kind,
        kind.fields.map((_, at) => at),
        entry.value as Readonly<Record<string, unknown>>,
      );
  });
  return writer.finish();
}

export interface OwnerWrite {
  readonly id: number;
  /** The number of `kind` in the schema. */
  readonly number: number;
  readonly kind: Kind;
  readonly values: Readonly<Record<string, unknown>>;
}

/**
 * Encode the writes of an owner, at least one, each with at least one field. `seen` is the version of the newest update
 * that was applied before they were made.
 */
export function encodeWrite(seen: number, writes: readonly OwnerWrite[]): Uint8Array {
  const writer = new Writer().u8(FrameType.WRITE).varint(seen).varint(writes.length);
  for (const { id, number, kind, values } of writes) {
    const present = kind.fields.flatMap((field, index) => (Object.hasOwn(values, field.name) ? [index] : []));
    writer.varint(id).varint(number);
    writeMask(writer, present);
    writeFields(writer, kind, present, values);
  }
  return writer.finish();
}

function writeFields(
  writer: Writer,
  kind: Pick<Kind, "fields" | "codecs">,
  present: readonly number[],
  values: Readonly<Record<string, unknown>>,
): void {
  for (const index of present) kind.codecs[index]!.write(writer, values[kind.fields[index]!.name]);
}
