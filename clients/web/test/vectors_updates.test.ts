import { describe, expect, test } from "vitest";
import { UpdateAssembler } from "../src/core/assembler.js";
import { ProtocolError } from "../src/core/errors.js";
import { decodeServerFrame } from "../src/core/frames.js";
import { Replica } from "../src/core/replica.js";
import type { Schema } from "../src/core/schema.js";
import { fromHex, fromVector, readVectors, titleOf, type Vector } from "./vectors.js";
import { schemaOf } from "./vectors_schema.js";

const file = readVectors("updates");
const schema = schemaOf(file["schema"]);

const READ_ONLY = { write: () => undefined, patch: () => undefined };

/** A client after a welcome with version 0 and tick 40. */
class Holder {
  readonly replica = new Replica(READ_ONLY);
  readonly #updates: UpdateAssembler;
  readonly #player: string;
  #at = { version: 0, tick: 40 };

  constructor(ofSchema: Schema, player: string) {
    this.#updates = new UpdateAssembler(ofSchema, (id) => this.replica.get(id)?.kind);
    this.#updates.begin(0, 40);
    this.#player = player;
  }

  read(hex: string): void {
    const frame = decodeServerFrame(fromHex(hex));
    if (frame.type !== "update") throw new Error(`${frame.type} is no update`);
    const update = this.#updates.add(frame.data);
    if (update === null) return;
    this.replica.apply(update.operations, update.full, this.#player);
    this.#at = { version: update.version, tick: update.tick };
  }

  holds(): unknown {
    const ids = [0, 1, ...this.replica.heldIds()].filter((id) => this.replica.get(id) !== undefined);
    const entities = ids.map((id) => {
      const { kind, owner, values } = this.replica.get(id)!;
      return [
        id,
        { kind: kind.name, owner, fields: Object.fromEntries(kind.fields.map(({ name }, at) => [name, values[at]])) },
      ];
    });
    return { ...this.#at, entities: Object.fromEntries(entities) };
  }
}

function holderFor(vector: Vector): Holder {
  const holder = new Holder(schema, vector["player"] as string);
  for (const part of vector["before"] as string[]) holder.read(part);
  return holder;
}

const by = (verdict: string): (readonly [string, Vector])[] =>
  file.vectors.filter((vector) => vector.verdict === verdict).map((vector) => [titleOf(vector), vector]);

describe("updates.json", () => {
  test.each(by("valid"))("%s", (_, vector) => {
    const holder = holderFor(vector);
    for (const part of vector["parts"] as string[]) holder.read(part);
    expect(holder.holds()).toStrictEqual(fromVector(vector["after"]));
  });

  test.each(by("refused"))("%s", (_, vector) => {
    const holder = holderFor(vector);
    const parts = vector["parts"] as string[];
    for (const part of parts.slice(0, -1)) holder.read(part);
    const before = holder.holds();
    expect(() => holder.read(parts.at(-1)!)).toThrow(ProtocolError);
    expect(holder.holds()).toStrictEqual(before);
  });
});
