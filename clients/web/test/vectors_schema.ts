// The schema that the vectors of updates and writes are about, as its file describes it.

import type { Field, FieldType } from "../src/core/fields.js";
import { defineSchema, kind, type Kind, type Schema } from "../src/core/schema.js";

type Described = readonly [name: string, type: FieldType, ...rest: (number | "writable" | "owner_only")[]];

function fieldOf([name, type, ...rest]: Described): Field {
  const [lo, hi] = rest.filter((each) => typeof each === "number");
  return {
    name,
    type,
    ...(lo !== undefined && hi !== undefined ? { lo, hi } : {}),
    ...(rest.includes("writable") ? { writable: true as const } : {}),
    ...(rest.includes("owner_only") ? { ownerOnly: true as const } : {}),
  };
}

export function schemaOf(described: unknown): Schema {
  const {
    entities,
    state,
    private: own,
    kinds,
  } = described as {
    entities: string[];
    state: string;
    private: string;
    kinds: Record<string, Described[]>;
  };
  const made = new Map<string, Kind>(
    Object.entries(kinds).map(([name, fields]) => [name, kind(name, fields.map(fieldOf))]),
  );
  const get = (name: string): Kind => made.get(name)!;
  return defineSchema({
    hash: "0".repeat(32),
    entities: entities.map(get),
    state: get(state),
    private: get(own),
    input: null,
  });
}
