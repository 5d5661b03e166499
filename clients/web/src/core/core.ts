// The client as a state machine: frames, times and calls in; frames, events and the next deadline out. It does no
// I/O and reads no clock. A shell carries out what `takeOutputs` returns, in order, after every call.
//
// A connection goes dialing -> greeting (hello and resume are sent) -> loading (welcome is in, the state is not) ->
// live. A lost socket goes to waiting and dialing again; a `reset` goes back to greeting on the socket there is. Both
// are one thing to a page: `disconnected`, then `restored` once a state is in. Times are in milliseconds.

import { CloseCode } from "../gen/codes.js";
import { Backoff, parseReason, reconnectOf } from "./backoff.js";
import { RoomClock } from "./clock.js";
import { closeError, PlayhallError, ProtocolError } from "./errors.js";
import {
  decodeServerFrame,
  encodeHello,
  encodeLeave,
  encodeMessage,
  encodePing,
  encodeResume,
  type Payload,
  type ServerFrame,
  type Welcome,
} from "./frames.js";
import { Heartbeat } from "./heartbeat.js";
import { Replica, type Happening } from "./replica.js";
import type { Schema } from "./schema.js";
import { Stats } from "./stats.js";
import { UpdateAssembler } from "./assembler.js";

export interface CoreOptions {
  readonly schema: Schema;
  readonly project: string;
  readonly room: string;
  /** Empty: `default`. */
  readonly roomType: string;
  /** The player's token; empty for a guest. */
  readonly token: string;
  /** What this guest was given before; empty for a new one. */
  readonly guestToken: string;
  /** 16 random bytes. */
  readonly session: Uint8Array;
  readonly sdk: string;
  /** How long the first connect may take, reconnects included. */
  readonly timeoutMs: number;
  /** Numbers from 0 up to 1. */
  readonly random: () => number;
}

/**
 * `connecting` and `waking` until the first state is in, then `connected` or `asleep`; `reconnecting` (or `waking`)
 * after a loss; `closed` for good.
 */
export type Status = "connecting" | "waking" | "connected" | "asleep" | "reconnecting" | "closed";

export type CoreEvent =
  | { readonly name: "ready" }
  | { readonly name: "waking" }
  | { readonly name: "disconnected"; readonly code: number }
  | { readonly name: "restored" }
  | { readonly name: "closed"; readonly error: PlayhallError }
  | { readonly name: "message"; readonly payload: Payload; readonly unreliable: boolean }
  | { readonly name: "updated"; readonly happenings: readonly Happening[]; readonly tick: number }
  | { readonly name: "sleep" }
  | { readonly name: "wake" }
  | { readonly name: "voice"; readonly url: string; readonly token: string }
  | { readonly name: "peers"; readonly hears: readonly string[]; readonly heardBy: readonly string[] };

export type Output =
  | { readonly type: "open" }
  | { readonly type: "send"; readonly frame: Uint8Array; readonly unreliable: boolean }
  | { readonly type: "close"; readonly code: number; readonly reason: string }
  /** Keep this guest token; empty: forget the one there is. */
  | { readonly type: "token"; readonly token: string }
  | { readonly type: "event"; readonly event: CoreEvent };

type Phase = "idle" | "waiting" | "dialing" | "greeting" | "loading" | "live" | "closed";

const NORMAL_CLOSE = 1_000;
const NO_ANSWER = 0;

export class ClientCore {
  readonly replica = new Replica();
  readonly clock = new RoomClock();
  readonly stats = new Stats();
  readonly #options: CoreOptions;
  readonly #backoff: Backoff;
  readonly #heartbeat = new Heartbeat();
  readonly #updates: UpdateAssembler;
  #outputs: Output[] = [];
  #phase: Phase = "idle";
  #isReady = false;
  /** A page was told `disconnected`, and not yet `restored`. */
  #isInterrupted = false;
  #isWaking = false;
  #isAsleep = false;
  #attempt = 0;
  #guestToken: string;
  #player = "";
  #generation = 0;
  #retryAt = Infinity;
  #connectBy = Infinity;
  #lastLoss = new PlayhallError(NO_ANSWER, "Nothing answered.");

  constructor(options: CoreOptions) {
    this.#options = options;
    this.#guestToken = options.guestToken;
    this.#backoff = new Backoff(options.random);
    this.#updates = new UpdateAssembler(options.schema, (id) => this.replica.get(id)?.kind);
  }

  get status(): Status {
    if (this.#phase === "closed") return "closed";
    if (this.#isWaking) return "waking";
    if (this.#phase === "live") return this.#isAsleep ? "asleep" : "connected";
    return this.#isReady ? "reconnecting" : "connecting";
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get player(): string {
    return this.#player;
  }

  get generation(): number {
    return this.#generation;
  }

  /** The tick of the newest update applied. */
  get tick(): number {
    return this.#updates.tick;
  }

  // What the shell calls

  start(now: number): void {
    this.#connectBy = now + this.#options.timeoutMs;
    this.#dial();
  }

  /** The transport that `open` asked for can carry frames. */
  opened(now: number): void {
    if (this.#phase !== "dialing") return;
    const { schema, project, room, roomType, token, session, sdk } = this.#options;
    const identity = { project, room, roomType, token: token || this.#guestToken, schemaHash: schema.hash, session, sdk };
    this.#send("hello", encodeHello({ ...identity, attempt: this.#attempt++ }));
    this.#resume(0);
    this.#heartbeat.start(now);
    this.timer(now);
  }

  /** A frame came. What does not follow the protocol closes the connection for good. */
  received(data: Uint8Array, now: number): void {
    if (this.#phase === "closed" || this.#phase === "waiting" || this.#phase === "dialing") return;
    this.#heartbeat.heard(now);
    try {
      const frame = decodeServerFrame(data);
      this.stats.count("received", frame.type, data.length);
      this.#handle(frame, now);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.violated(error.message);
    }
    this.timer(now);
  }

  /** The server did what the protocol forbids. */
  violated(reason: string): void {
    this.#output({ type: "close", code: CloseCode.PROTOCOL, reason });
    this.#finish(closeError(CloseCode.PROTOCOL, reason));
  }

  /** The transport is gone, or could not be opened. */
  closed(code: number, reason: string, now: number): void {
    if (this.#phase === "closed" || this.#phase === "waiting") return;
    const { retryAfterMs, text } = parseReason(reason);
    this.#heartbeat.stop();
    this.#lastLoss = closeError(code, text);
    if (code === CloseCode.UNAUTHENTICATED && this.#options.token === "" && this.#guestToken !== "") {
      this.#guestToken = "";
      this.#output({ type: "token", token: "" });
      this.#interrupt(code);
      this.#dial();
    } else if (reconnectOf(code) === "never") this.#finish(this.#lastLoss);
    else {
      this.#interrupt(code);
      this.#phase = "waiting";
      this.#retryAt = now + this.#backoff.next(code, retryAfterMs, now);
    }
  }

  /** Do what is due. Call at `nextTimer()`; early or often does no harm. */
  timer(now: number): void {
    if (!this.#isReady && now >= this.#connectBy && this.#phase !== "closed") {
      this.#output({ type: "close", code: NORMAL_CLOSE, reason: "" });
      this.#finish(this.#lastLoss);
    } else if (this.#phase === "waiting" && now >= this.#retryAt) this.#dial();
    else if (this.#heartbeat.isSilent(now)) {
      const reason = "nothing was heard for 15 s";
      this.#output({ type: "close", code: CloseCode.LIMIT_EXCEEDED, reason });
      this.closed(CloseCode.LIMIT_EXCEEDED, reason, now);
    } else {
      const nonce = this.#heartbeat.due(now);
      if (nonce !== null) this.#send("ping", encodePing(nonce), true);
    }
  }

  /** When `timer` is due next; Infinity for never. */
  nextTimer(): number {
    if (this.#phase === "closed") return Infinity;
    const retryAt = this.#phase === "waiting" ? this.#retryAt : Infinity;
    return Math.min(retryAt, this.#heartbeat.next(), this.#isReady ? Infinity : this.#connectBy);
  }

  takeOutputs(): Output[] {
    const outputs = this.#outputs;
    this.#outputs = [];
    return outputs;
  }

  // What pages call

  /** Send a message. False if there is no connection to take it: it is not kept. Throws before the first state is in. */
  send(payload: unknown, unreliable: boolean): boolean {
    if (!this.#isReady) throw new PlayhallError(NO_ANSWER, "send before the room is ready: await connect first");
    const frame = encodeMessage(payload, this.#updates.seen, unreliable);
    if (this.#phase !== "live" && this.#phase !== "loading") return false;
    this.#send(unreliable ? "unreliable" : "message", frame, unreliable);
    return true;
  }

  /** Leave on purpose: the room is told, and nothing comes back. */
  leave(): void {
    if (this.#phase === "closed") return;
    if (this.#isOpen()) this.#send("leave", encodeLeave());
    this.#output({ type: "close", code: NORMAL_CLOSE, reason: "" });
    this.#heartbeat.stop();
    this.#phase = "closed";
  }

  // Connecting

  #isOpen(): boolean {
    return this.#phase === "greeting" || this.#phase === "loading" || this.#phase === "live";
  }

  #dial(): void {
    this.#phase = "dialing";
    this.#isWaking = false;
    this.#output({ type: "open" });
  }

  /** Say what is held, as the first thing after hello and after each reset. */
  #resume(reset: number): void {
    const ids = this.#generation === 0 ? [] : this.replica.heldIds();
    const held = { generation: this.#generation, version: this.#generation === 0 ? 0 : this.#updates.version, ids };
    this.#send("resume", encodeResume(reset, held));
    this.#phase = "greeting";
  }

  /** What a lost socket and a lost room have in common. */
  #interrupt(code: number): void {
    this.#updates.abandon();
    this.#isWaking = false;
    if (!this.#isReady || this.#isInterrupted) return;
    this.#isInterrupted = true;
    this.#event({ name: "disconnected", code });
  }

  #finish(error: PlayhallError): void {
    this.#heartbeat.stop();
    this.#phase = "closed";
    this.#event({ name: "closed", error });
  }

  // Frames

  #handle(frame: ServerFrame, now: number): void {
    switch (frame.type) {
      case "waking":
        this.#isWaking = true;
        return this.#event({ name: "waking" });
      case "welcome":
        return this.#welcome(frame, now);
      case "pong": {
        const rtt = this.#heartbeat.roundTrip(frame.nonce, now);
        if (rtt !== null && frame.ticking && this.#generation !== 0) this.clock.sample(frame.tick, frame.fraction, rtt, now);
        return;
      }
      case "reset":
        this.#interrupt(frame.code);
        return this.#resume(frame.number);
      case "voice":
        return this.#event({ name: "voice", url: frame.url, token: frame.token });
      case "peers":
        return this.#event({ name: "peers", hears: frame.hears, heardBy: frame.heardBy });
      case "unknown":
        return;
      default:
        this.#inRoom(frame);
    }
  }

  #welcome(welcome: Welcome, now: number): void {
    const isHeld = welcome.generation === this.#generation;
    if (welcome.resumed && !isHeld) throw new ProtocolError("a resume goes on from a generation that is not held");
    this.#player = welcome.player;
    this.#generation = welcome.generation;
    this.#updates.begin(welcome.version, welcome.tick, welcome.resumed);
    this.clock.start(welcome.tick, welcome.fraction, welcome.tickRate, now);
    this.#backoff.connected(now);
    this.#phase = "loading";
    if (welcome.token !== "" && this.#options.token === "") {
      this.#guestToken = welcome.token;
      this.#output({ type: "token", token: welcome.token });
    }
    if (!welcome.asleep) return;
    if (!welcome.resumed) throw new ProtocolError("a sleeping room welcomes a client that holds nothing of it");
    this.#settle(true);
  }

  /** What only a room that welcomed this client may send. */
  #inRoom(frame: ServerFrame): void {
    if (this.#phase !== "loading" && this.#phase !== "live") throw new ProtocolError(`${frame.type} before welcome`);
    if (frame.type === "message") this.#event({ name: "message", payload: frame.payload, unreliable: frame.unreliable });
    else if (frame.type === "update") this.#update(frame.data);
    else if (frame.type === "asleep") {
      if (frame.generation !== this.#generation || frame.version !== this.#updates.version) {
        throw new ProtocolError("the room sleeps in a state this client does not hold");
      }
      this.#isAsleep = true;
      this.#event({ name: "sleep" });
    }
    // Replies and acks answer calls and inputs, and this client has sent none.
  }

  #update(data: Uint8Array): void {
    const update = this.#updates.add(data);
    if (update === null) return;
    const happenings = this.replica.apply(update.operations, update.full, this.#player);
    // The page hears what changed before it hears that all is well again.
    this.#event({ name: "updated", happenings, tick: this.#updates.tick });
    if (this.#phase === "loading") this.#settle(false);
  }

  /** The state is whole: the client is in the room. */
  #settle(isAsleep: boolean): void {
    const wasAsleep = this.#isAsleep;
    this.#phase = "live";
    this.#isWaking = false;
    this.#isAsleep = isAsleep;
    if (!this.#isReady) {
      this.#isReady = true;
      this.#event({ name: "ready" });
    } else if (this.#isInterrupted) {
      this.#isInterrupted = false;
      this.#event({ name: "restored" });
    }
    if (wasAsleep !== isAsleep) this.#event({ name: isAsleep ? "sleep" : "wake" });
  }

  #send(category: string, frame: Uint8Array, unreliable = false): void {
    this.stats.count("sent", category, frame.length);
    this.#output({ type: "send", frame, unreliable });
  }

  #event(event: CoreEvent): void {
    this.#output({ type: "event", event });
  }

  #output(output: Output): void {
    this.#outputs.push(output);
  }
}
