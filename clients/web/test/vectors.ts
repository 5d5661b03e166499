// Reads tests/protocol/vectors, which the server and the Python client run too.

import { readFileSync } from "node:fs";

/** One numbered example. What else it has depends on its file. */
export interface Vector {
  readonly id: string;
  readonly about?: string;
  readonly why?: string;
  readonly verdict: "valid" | "refused";
  readonly [key: string]: unknown;
}

export interface VectorFile {
  readonly vectors: readonly Vector[];
  readonly [key: string]: unknown;
}

export function readVectors(name: string): VectorFile {
  const url = new URL(`../../../tests/protocol/vectors/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(url, "utf8")) as VectorFile;
}

export function fromHex(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, "hex"));
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** A value as the vectors write it: bytes and odd numbers stand in objects. */
export function fromVector(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("$hex" in value) return fromHex(value.$hex as string);
  if ("$float" in value) return { nan: NaN, inf: Infinity, "-inf": -Infinity, "-0": -0 }[value.$float as string];
  if (Array.isArray(value)) return value.map(fromVector);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fromVector(inner)]));
}

export function titleOf(vector: Vector): string {
  return `${vector.id} ${vector.verdict}: ${vector.about ?? vector.why ?? String(vector["type"] ?? "")}`;
}
