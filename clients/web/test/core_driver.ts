// Drives a ClientCore by hand, under a clock of its own, and keeps what it said.

import { ClientCore } from "../src/core/core.js";
import { FrameType } from "../src/core/frames.js";
import type { CoreEvent, CoreOptions, Output } from "../src/core/outputs.js";
import type { Happening } from "../src/core/replica.js";
import { Reader } from "../src/core/values.js";
import { fullState, schema, welcome, type WelcomeFields } from "./server.js";

export interface Resume {
  readonly reset: number;
  readonly generation: number;
  readonly version: number;
  readonly full: boolean;
  readonly ids: readonly number[];
}

export class Driver {
  readonly core: ClientCore;
  now = 1_000;
  readonly events: CoreEvent[] = [];
  readonly sent: Uint8Array[] = [];
  readonly closes: { code: number; reason: string }[] = [];
  readonly tokens: string[] = [];
  opens = 0;
  /** How often the core asked for a turn to send what was written. */
  turns = 0;

  constructor(options: Partial<CoreOptions> = {}) {
    this.core = new ClientCore({
      schema,
      project: "dots",
      room: "main",
      roomType: "",
      token: "",
      guestToken: "",
      session: new Uint8Array(16).fill(9),
      sdk: "test",
      timeoutMs: 30_000,
      random: () => 0.5,
      wrote: () => void this.turns++,
      ...options,
    });
    this.do((now) => this.core.start(now));
  }

  do<T>(step: (now: number) => T): T {
    const result = step(this.now);
    for (const output of this.core.takeOutputs()) this.#keep(output);
    return result;
  }

  #keep(output: Output): void {
    if (output.type === "open") this.opens++;
    else if (output.type === "send") this.sent.push(output.frame);
    else if (output.type === "close") this.closes.push({ code: output.code, reason: output.reason });
    else if (output.type === "token") this.tokens.push(output.token);
    else this.events.push(output.event);
  }

  receive(...frames: Uint8Array[]): void {
    for (const frame of frames) this.do((now) => this.core.received(frame, now));
  }

  open(): void {
    this.do((now) => this.core.opened(now));
  }

  lose(code = 1_006, reason = ""): void {
    this.do((now) => this.core.closed(code, reason, now));
  }

  /** Let time pass; what is due on the way happens when it is due. */
  pass(ms: number): void {
    const end = this.now + ms;
    for (let next = this.core.nextTimer(); next <= end; next = this.core.nextTimer()) {
      this.now = Math.max(this.now, next);
      this.do((now) => this.core.timer(now));
    }
    this.now = end;
  }

  /** Connect, be welcomed, and read a whole state. */
  join(fields: WelcomeFields = {}): void {
    this.open();
    this.receive(welcome(fields), fullState());
  }

  names(): string[] {
    return this.events.map(({ name }) => name);
  }

  /** End the turn of the page: what it wrote goes out, if that is due. */
  endTurn(): void {
    this.do((now) => this.core.timer(now));
  }

  /** Forget what was said so far. */
  forget(): void {
    this.events.length = this.sent.length = this.closes.length = this.tokens.length = 0;
    this.opens = 0;
  }

  sentOf(type: number): Uint8Array[] {
    return this.sent.filter((frame) => frame[0] === type);
  }

  resumes(): Resume[] {
    return this.sentOf(FrameType.RESUME).map(readResume);
  }

  /** What the updates since `forget` did: "enter dot 2", and for changes the fields. */
  happenings(): string[] {
    return this.events.flatMap((event) => (event.name === "updated" ? event.happenings.map(describeHappening) : []));
  }
}

function describeHappening({ event, cell, fields }: Happening): string {
  return [event, cell.kind.name, cell.id, ...fields].join(" ");
}

function readResume(frame: Uint8Array): Resume {
  const reader = new Reader(frame.subarray(1));
  const [reset, generation, version] = [reader.varint32(), reader.varint53(), reader.varint32()];
  const full = reader.u8() === 1;
  let id = 0;
  const ids = Array.from({ length: reader.varint32() }, () => (id += reader.varint32()));
  reader.end();
  return { reset, generation, version, full, ids };
}
