// JSON as the protocol knows it: what JSON.parse accepts, less what would not survive the way to Python and back.

import { ProtocolError } from "./errors.js";
import { hasLoneSurrogate } from "./values.js";

/** A JSON value as rooms send it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const MAX_NESTING = 512;
/** Number.prototype.toString writes an exponent from here on, and a number with an exponent is no integer. */
const EXPONENT_FROM = 1e21;

/** Whether a browser may have changed this number: an integer beyond 2^53 - 1, written as one. */
function isUnsafeInteger(value: number): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < EXPONENT_FROM;
}

/** Whether arrays and objects nest deeper than the protocol allows. Short text cannot, so it is not looked at. */
function nestsTooDeep(text: string): boolean {
  if (text.length <= 2 * MAX_NESTING) return false;
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (inString) {
      if (character === "\\") at++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "[" || character === "{") {
      if (++depth > MAX_NESTING) return true;
    } else if (character === "]" || character === "}") depth--;
  }
  return false;
}

const TEXTS = /"(?:[^"\\]|\\.)*"/g;
const NUMBERS = /-?\d+(\.\d+)?([eE][+-]?\d+)?/g;

/** Refuse numbers in JSON text that a double cannot hold, and integers that it would change. */
function checkNumbers(text: string): void {
  // Only an exponent or many digits can be too much, and most text has neither.
  if (!/\d[eE]|\d{16}/.test(text)) return;
  for (const [number, fraction, exponent] of text.replaceAll(TEXTS, "").matchAll(NUMBERS)) {
    const value = Number(number);
    if (!Number.isFinite(value)) throw new ProtocolError("JSON holds a number no double can");
    if (fraction === undefined && exponent === undefined && !Number.isSafeInteger(value)) {
      throw new ProtocolError("JSON holds an integer beyond 2^53 - 1");
    }
  }
}

/** Half a surrogate pair can come only as an escape: what is UTF-8 has none. Whole pairs may come so too. */
const ESCAPED_SURROGATE = /\\u[dD][89a-fA-F]/;

function holdsLoneSurrogate(value: Json): boolean {
  if (typeof value === "string") return hasLoneSurrogate(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, inner]) => hasLoneSurrogate(key) || holdsLoneSurrogate(inner as Json));
}

/** Parse JSON from the wire, or throw ProtocolError. */
export function parseJson(text: string): Json {
  if (nestsTooDeep(text)) throw new ProtocolError(`JSON nests over ${MAX_NESTING} deep`);
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    throw new ProtocolError("text is not JSON");
  }
  checkNumbers(text);
  if (ESCAPED_SURROGATE.test(text) && holdsLoneSurrogate(value)) {
    throw new ProtocolError("JSON holds half a surrogate pair");
  }
  return value;
}

// JSON.stringify leaves such values out of an object, which is what people expect, but makes null of them in an array.
function refuseUnsendable(this: unknown, key: string, value: unknown): unknown {
  const where = key === "" ? "the value" : `"${key}"`;
  if (hasLoneSurrogate(key) || (typeof value === "string" && hasLoneSurrogate(value))) {
    throw new RangeError(`${where} holds half a surrogate pair, which UTF-8 cannot carry`);
  }
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new TypeError(`${where} is ${value}, which JSON cannot carry`);
    if (isUnsafeInteger(value)) throw new RangeError(`${where} is an integer beyond 2^53 - 1`);
  }
  const isNothing = value === undefined || typeof value === "function" || typeof value === "symbol";
  if (isNothing && Array.isArray(this))
    throw new TypeError(`item ${key} of an array is ${typeof value}, which is not JSON`);
  return value;
}

/** The JSON text of `value`, or TypeError or RangeError for what would arrive as something else. */
export function formatJson(value: unknown): string {
  const text = JSON.stringify(value, refuseUnsendable) as string | undefined;
  if (text === undefined) throw new TypeError(`${typeof value} is not JSON`);
  if (nestsTooDeep(text)) throw new RangeError(`the value nests over ${MAX_NESTING} deep`);
  return text;
}

/** Make a parsed value read-only all the way down, and return it. */
export function deepFreeze(value: Json): Json {
  if (typeof value === "object" && value !== null) {
    for (const inner of Object.values(value)) deepFreeze(inner);
    Object.freeze(value);
  }
  return value;
}
