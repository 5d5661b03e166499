// The client as a state machine: frames, times and calls in; frames, events and the next deadline out. It does no
// I/O and reads no clock. A shell carries out what `takeOutputs` returns, in order, after every call.
//
// A connection goes dialing -> greeting (hello and resume are sent) -> loading (welcome is in, the state is not) ->
// live. A lost socket goes to waiting and dialing again; a `reset` goes back to greeting on the socket there is. Both
// are one thing to a page: `disconnected`, then `restored` once a state is in. Times are in milliseconds.
//
// It is longer than other files here because it is one machine: what a frame means depends on all of its state.

import { CloseCode } from "../gen/codes.js";
import { UpdateAssembler } from "./assembler.js";
import { Backoff, parseReason, reconnectOf } from "./backoff.js";
import { Calls } from "./calls.js";
import { RoomClock } from "./clock.js";
import { closeError, PlayhallError, ProtocolError } from "./errors.js";
import {
  decodeServerFrame,
  encodeCall,
  encodeHello,
  encodeLeave,
  encodeMessage,
  encodePing,
  encodeResume,
  type ServerFrame,
  type Welcome,
} from "./frames.js";
import { Heartbeat } from "./heartbeat.js";
import type { CoreEvent, CoreOptions, Output, Status } from "./outputs.js";
import { Replica } from "./replica.js";
import { Stats } from "./stats.js";
import { Writes } from "./writes.js";

/** What `stats.received` counts a frame as. */
function categoryOf(frame: ServerFrame): string {
  if (frame.type === "message" && frame.unreliable) return "unreliable";
  return frame.type === "error" ? "reply" : frame.type;
}

type Phase = "idle" | "waiting" | "dialing" | "greeting" | "loading" | "live" | "closed";

const NORMAL_CLOSE = 1_000;
const ABNORMAL_CLOSE = 1_006;
/** A welcome, and then each part of the state, must come within this. The server's own limits are well below. */
const PROGRESS_MS = 30_000;
/** What was written and not sent goes out with a leave, but no more frames of it. */
const MAX_LAST_WRITES = 16;

export class ClientCore {
  readonly replica: Replica;
  readonly clock = new RoomClock();
  readonly stats = new Stats();
  readonly #options: CoreOptions;
  readonly #backoff: Backoff;
  readonly #heartbeat = new Heartbeat();
  readonly #updates: UpdateAssembler;
  readonly #writes: Writes;
  readonly #calls = new Calls();
  #outputs: Output[] = [];
  #phase: Phase = "idle";
  #status: Status = "connecting";
  #isAsleep = false;
  #player = "";
  #guestToken: string;
  #lastLoss = new PlayhallError(ABNORMAL_CLOSE, "Nothing answered.");

  // Of the connection there is
  #attempt = 0;
  #resets = 0;
  #welcomed: Welcome | null = null;

  // What is held, and outlives connections: it changes when an update is applied, never before
  #generation = 0;
  #version = 0;
  #tick = 0;

  // Deadlines
  #retryAt = Infinity;
  #connectBy = Infinity;
  #progressBy = Infinity;

  constructor(options: CoreOptions) {
    this.#options = options;
    this.#guestToken = options.guestToken;
    this.#backoff = new Backoff(options.random);
    this.#writes = new Writes(options.schema, (cell) => this.replica.get(cell.id) === cell, options.wrote);
    this.replica = new Replica(this.#writes);
    this.#updates = new UpdateAssembler(options.schema, (id) => this.replica.get(id)?.kind);
  }

  get status(): Status {
    return this.#status;
  }

  /** The room sleeps: what is held is exact, and anything the player does wakes it. */
  get isAsleep(): boolean {
    return this.#isAsleep;
  }

  get player(): string {
    return this.#player;
  }

  get generation(): number {
    return this.#generation;
  }

  /** The tick of the newest update applied. */
  get tick(): number {
    return this.#tick;
  }

  /** The room's tick now; a sleeping room's stands still. */
  serverTick(now: number): number {
    return this.#isAsleep || this.#generation === 0 ? this.#tick : this.clock.tick(now);
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
    const identity = {
      project,
      room,
      roomType,
      token: token || this.#guestToken,
      schemaHash: schema.hash,
      session,
      sdk,
    };
    this.#send("hello", encodeHello({ ...identity, attempt: this.#attempt++ }));
    this.#resets = 0;
    this.#resume(now);
    this.#heartbeat.start(now);
    this.timer(now);
  }

  /** A frame came. What does not follow the protocol closes the connection for good. `isClogged` as for `timer`. */
  received(data: Uint8Array, now: number, isClogged = false): void {
    if (!this.#isOpen()) return;
    this.#heartbeat.heard(now);
    try {
      const frame = decodeServerFrame(data);
      this.stats.count("received", categoryOf(frame), data.length);
      this.#handle(frame, now);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.violated(error.message);
    }
    // A page in the background gets its timers late, but its frames in time.
    this.timer(now, isClogged);
  }

  /** The server did what the protocol forbids. */
  violated(reason: string): void {
    if (this.#isOpen()) this.#stop(CloseCode.PROTOCOL, reason, closeError(CloseCode.PROTOCOL, reason));
  }

  /** The transport is gone, or could not be opened. */
  closed(code: number, reason: string, now: number): void {
    if (!this.#isOpen() && this.#phase !== "dialing") return;
    const { retryAfterMs, text } = parseReason(reason);
    const error = closeError(code, text);
    if (code === CloseCode.UNAUTHENTICATED && this.#options.token === "" && this.#guestToken !== "")
      this.#startOver(code);
    else if (reconnectOf(code) === "never") this.#finish(error);
    else {
      this.#lastLoss = error;
      this.#interrupt(code);
      this.#heartbeat.stop();
      this.#phase = "waiting";
      this.#retryAt = now + this.#backoff.next(code, retryAfterMs, now);
    }
  }

  /**
   * Do what is due. Call at `nextTimer()`; early or often does no harm. While the connection `isClogged` writes wait: what
   * is unsent goes on to be replaced by what is newer.
   */
  timer(now: number, isClogged = false): void {
    for (const call of this.#calls.late(now)) this.#fail(call, "was not answered in time");
    if (now >= this.#connectBy) this.#stop(NORMAL_CLOSE, "", this.#lastLoss);
    else if (now >= this.#retryAt) this.#dial();
    else if (this.#heartbeat.isSilent(now)) this.#drop("nothing was heard for 15 s", now);
    else if (now >= this.#progressBy) this.#drop("no state came for 30 s", now);
    else {
      const nonce = this.#heartbeat.due(now);
      if (nonce !== null) this.#send("ping", encodePing(nonce), true);
      if (now < this.#writes.next()) return;
      if (isClogged) this.#writes.postpone(now);
      else this.#sendWrites(now);
    }
  }

  /** When `timer` is due next; Infinity for never. */
  nextTimer(): number {
    return Math.min(
      this.#retryAt,
      this.#connectBy,
      this.#progressBy,
      this.#heartbeat.next(),
      this.#writes.next(),
      this.#calls.next(),
    );
  }

  takeOutputs(): Output[] {
    const outputs = this.#outputs;
    this.#outputs = [];
    return outputs;
  }

  // What pages call

  /** Send a message. False while coming back: it is dropped. Throws before the first state, and once closed. */
  send(payload: unknown, unreliable: boolean): boolean {
    this.#checkJoined("send");
    const frame = encodeMessage(payload, this.#seen(), unreliable);
    if (this.#status !== "open") return false;
    this.#send(unreliable ? "unreliable" : "message", frame, unreliable);
    return true;
  }

  /**
   * Call a handler of the room. Returns the number under which `answered` or `failed` will speak of it, once. Throws
   * before the first state, once closed, and for what cannot be sent.
   */
  call(name: string, args: unknown, timeoutMs: number, now: number): number {
    this.#checkJoined("call");
    if (!(timeoutMs > 0)) throw new RangeError(`${timeoutMs} ms is no time to wait for an answer`);
    const call = this.#calls.claim();
    const frame = encodeCall(call, this.#seen(), name, args);
    this.#calls.wait(call, name, now + timeoutMs);
    if (this.#status === "open") this.#send("call", frame);
    else this.#fail(call, "was not sent: the client is coming back");
    return call;
  }

  #checkJoined(what: string): void {
    if (this.#status !== "connecting" && this.#status !== "closed") return;
    throw new PlayhallError(0, `The client is ${this.#status} and cannot ${what}.`);
  }

  #seen(): number {
    return this.#phase === "live" ? this.#tick + 1 : 0;
  }

  /** Set the player's own status. Throws before the first state, and once closed. */
  setStatus(status: unknown): void {
    const own = this.replica.presenceOf(this.#player);
    if (own === undefined || this.#status === "closed") {
      throw new PlayhallError(0, "The player is not in the room, and has no status.");
    }
    this.#writes.setStatus(own, status);
  }

  /** Leave on purpose: the room is told, after what was written, and nothing comes back. */
  leave(now: number): void {
    if (this.#phase === "closed") return;
    for (let frames = 0; frames < MAX_LAST_WRITES && this.#writes.next() !== Infinity; frames++) this.#sendWrites(now);
    if (this.#isOpen()) this.#send("leave", encodeLeave());
    this.#output({ type: "close", code: NORMAL_CLOSE, reason: "" });
    this.#end();
  }

  // Connecting, and coming back

  #isOpen(): boolean {
    return this.#phase === "greeting" || this.#phase === "loading" || this.#phase === "live";
  }

  #dial(): void {
    this.#phase = "dialing";
    this.#retryAt = Infinity;
    this.#output({ type: "open" });
  }

  /** Say what is held, as the first thing after hello and after each reset, and wait for a welcome. */
  #resume(now: number): void {
    const ids = this.#generation === 0 ? [] : this.replica.heldIds();
    this.#send("resume", encodeResume(this.#resets, { generation: this.#generation, version: this.#version, ids }));
    this.#phase = "greeting";
    this.#welcomed = null;
    this.#progressBy = now + PROGRESS_MS;
  }

  /** What a lost socket and a lost room have in common. */
  #interrupt(code: number): void {
    this.#updates.abandon();
    this.#progressBy = Infinity;
    this.#isAsleep = false;
    this.#writes.drop();
    this.#failCalls("was lost with the connection");
    if (this.#status !== "open") return;
    this.#status = "reconnecting";
    this.#event({ name: "disconnected", code });
  }

  /** The guest token that was kept is no good any more: come again, as a new guest. */
  #startOver(code: number): void {
    this.#guestToken = "";
    this.#output({ type: "token", token: "" });
    this.#interrupt(code);
    this.#heartbeat.stop();
    this.#dial();
  }

  /** Give up on a transport that is of no use any more. */
  #drop(why: string, now: number): void {
    this.#output({ type: "close", code: NORMAL_CLOSE, reason: why });
    this.closed(ABNORMAL_CLOSE, why, now);
  }

  /** Close what there is, and report that it is over. */
  #stop(code: number, reason: string, error: PlayhallError): void {
    this.#output({ type: "close", code, reason });
    this.#finish(error);
  }

  #finish(error: PlayhallError): void {
    this.#end();
    this.#event({ name: "closed", error });
  }

  #end(): void {
    this.#phase = "closed";
    this.#status = "closed";
    this.#isAsleep = false;
    this.#writes.end();
    this.#failCalls("has no answer: the client is closed");
    this.#heartbeat.stop();
    this.#retryAt = this.#connectBy = this.#progressBy = Infinity;
  }

  // Frames

  #handle(frame: ServerFrame, now: number): void {
    switch (frame.type) {
      case "waking":
        return this.#event({ name: "waking" });
      case "welcome":
        return this.#welcome(frame, now);
      case "update":
        return this.#update(frame.data, this.#inRoom("an update"), now);
      case "message":
        // An unreliable one may come late, from before a reset.
        if (frame.unreliable && this.#welcomed === null) return;
        this.#inRoom("a message");
        return this.#event({ name: "message", payload: frame.payload, unreliable: frame.unreliable });
      case "reply":
        this.#inRoom("a reply");
        if (this.#calls.end(frame.call) !== undefined)
          this.#event({ name: "answered", call: frame.call, answer: frame.payload });
        return;
      case "error":
        this.#inRoom("a reply");
        if (this.#calls.end(frame.call) !== undefined)
          this.#event({ name: "failed", call: frame.call, error: new PlayhallError(frame.code, frame.text) });
        return;
      case "pong": {
        const rtt = this.#heartbeat.roundTrip(frame.nonce, now);
        // A tick from before the welcome may be another generation's.
        if (rtt !== null && frame.ticking && this.#welcomed !== null)
          this.clock.sample(frame.tick, frame.fraction, rtt, now);
        return;
      }
      case "reset":
        return this.#reset(frame.number, frame.code, now);
      case "asleep":
        return this.#sleep(frame.generation, frame.version);
      case "voice":
        return this.#event({ name: "voice", url: frame.url, token: frame.token });
      case "peers":
        return this.#event({ name: "peers", hears: frame.hears, heardBy: frame.heardBy });
      // Acks answer inputs, and this client sends none. Unknown frames are a newer server's.
    }
  }

  /** What only a room that welcomed this client may send. */
  #inRoom(what: string): Welcome {
    if (this.#welcomed === null) throw new ProtocolError(`${what} came before a welcome`);
    return this.#welcomed;
  }

  #welcome(welcome: Welcome, now: number): void {
    if (this.#phase !== "greeting" && !this.#isAsleep) throw new ProtocolError("a welcome came that nothing asked for");
    const goesOn = welcome.resumed || welcome.asleep;
    if (goesOn && welcome.generation !== this.#generation) {
      throw new ProtocolError("a welcome goes on from a generation that is not held");
    }
    if (welcome.tickRate === 0) throw new ProtocolError("a room has no ticks");
    this.#welcomed = welcome;
    this.#player = welcome.player;
    // Where a sleeping room wakes, the socket stays; what was written to the state that goes is not sent.
    this.#writes.drop();
    this.#updates.begin(welcome.version, welcome.tick);
    this.clock.start(welcome.tick, welcome.fraction, welcome.tickRate, now);
    if (welcome.token !== "" && this.#options.token === "") {
      this.#guestToken = welcome.token;
      this.#output({ type: "token", token: welcome.token });
    }
    this.#phase = "loading";
    this.#progressBy = now + PROGRESS_MS;
    // A sleeping room sends no update: what is held is exact.
    if (welcome.asleep) this.#settle(true, now);
  }

  #update(data: Uint8Array, welcome: Welcome, now: number): void {
    if (this.#phase === "loading") this.#progressBy = now + PROGRESS_MS;
    const update = this.#updates.add(data);
    if (update === null) return;
    if (this.#phase === "loading" && !welcome.resumed && !update.full && !this.replica.isEmpty) {
      throw new ProtocolError("a state came in part, of which nothing is held");
    }
    const happenings = this.replica.apply(update.operations, update.full, this.#player);
    this.#writes.settle(update.operations, update.full);
    this.#generation = welcome.generation;
    this.#version = update.version;
    this.#tick = update.tick;
    this.#event({ name: "updated", happenings, tick: update.tick });
    if (this.#phase === "loading") this.#settle(false, now);
  }

  /** The state is the room's: the client is in. */
  #settle(isAsleep: boolean, now: number): void {
    const was = this.#status;
    this.#phase = "live";
    this.#writes.open(this.#player, this.#welcomed!.tickRate);
    this.#status = "open";
    this.#isAsleep = isAsleep;
    this.#connectBy = this.#progressBy = Infinity;
    this.#backoff.connected(now);
    this.#event({ name: was === "connecting" ? "ready" : was === "reconnecting" ? "restored" : "wake" });
  }

  /** The room is gone and the socket is not: all is as if it were, but for the wait. */
  #reset(number: number, code: number, now: number): void {
    if (number <= this.#resets) throw new ProtocolError(`reset ${number} came after reset ${this.#resets}`);
    if (reconnectOf(code) === "never") return this.#stop(NORMAL_CLOSE, "", closeError(code, ""));
    this.#resets = number;
    this.#interrupt(code);
    this.#resume(now);
  }

  #sleep(generation: number, version: number): void {
    this.#inRoom("a sleep");
    if (generation !== this.#generation || version !== this.#version) {
      throw new ProtocolError("the room sleeps in a state this client does not hold");
    }
    if (this.#isAsleep) return;
    this.#isAsleep = true;
    this.#event({ name: "sleep" });
  }

  #sendWrites(now: number): void {
    this.#send("write", this.#writes.take(this.#version, now));
  }

  #failCalls(why: string): void {
    for (const call of this.#calls.all()) this.#fail(call, why);
  }

  /** There was no answer, and it is unknown whether the room did what it was asked. */
  #fail(call: number, why: string): void {
    this.#event({ name: "failed", call, error: new PlayhallError(0, `The call "${this.#calls.end(call)}" ${why}.`) });
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
