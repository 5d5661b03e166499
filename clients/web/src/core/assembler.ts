// Puts the parts of an update together, and tells the version and tick it leads to.

import { ProtocolError } from "./errors.js";
import type { Schema } from "./schema.js";
import { UpdateDecoder, type KindLookup, type Operation, type Part } from "./updates.js";
import { VARINT32_MAX, VARINT53_MAX } from "./values.js";

/** The most that the parts of an update may add up to: the largest state a room may have, and some. */
const MAX_UPDATE_BYTES = 64 * 2 ** 20;

/** One whole update. */
export interface Update {
  readonly full: boolean;
  /** What the client holds once the update is applied. */
  readonly version: number;
  readonly tick: number;
  readonly operations: readonly Operation[];
}

export class UpdateAssembler {
  readonly #schema: Schema;
  readonly #held: KindLookup;
  #version = 0;
  #tick = 0;
  #afterWelcome = false;
  #decoder: UpdateDecoder | null = null;
  #parts: Part[] = [];
  #pendingBytes = 0;

  constructor(schema: Schema, held: KindLookup) {
    this.#schema = schema;
    this.#held = held;
  }

  /** A welcome: the next update's version and tick are told from these. */
  begin(version: number, tick: number): void {
    this.abandon();
    this.#version = version;
    this.#tick = tick;
    this.#afterWelcome = true;
  }

  /** The connection is gone: parts without their last never happened. */
  abandon(): void {
    this.#decoder = null;
    this.#parts = [];
    this.#pendingBytes = 0;
  }

  /** Take the next part; the whole update if it was the last, else null. */
  add(data: Uint8Array): Update | null {
    this.#decoder ??= new UpdateDecoder(this.#schema, this.#held);
    const part = this.#decoder.decode(data);
    this.#pendingBytes += part.size;
    if (this.#pendingBytes > MAX_UPDATE_BYTES) throw new ProtocolError("an update never ends");
    if (this.#parts.length === 0) this.#checkStart(part);
    this.#parts.push(part);
    return part.last ? this.#complete() : null;
  }

  #checkStart(part: Part): void {
    if (part.dv === 0 && !this.#afterWelcome) throw new ProtocolError("an update leads to no newer version");
    if (this.#version + part.dv > VARINT32_MAX) throw new ProtocolError("a version is too big");
    if (this.#tick + part.dt > VARINT53_MAX) throw new ProtocolError("a tick is too big");
  }

  #complete(): Update {
    const { full, dv, dt } = this.#parts[0]!;
    const operations = this.#parts.flatMap((part) => part.operations);
    this.begin(this.#version + dv, this.#tick + dt);
    this.#afterWelcome = false;
    return { full, version: this.#version, tick: this.#tick, operations };
  }
}
