// The shell: gives the core a connection, a clock and a timer, and tells the page what it says.

import { ClientCore } from "./core/core.js";
import { Entities, PresenceList } from "./core/entities.js";
import { PlayhallError } from "./core/errors.js";
import type { Payload } from "./core/frames.js";
import { Listeners } from "./core/listeners.js";
import type { CoreEvent, Output, Status } from "./core/outputs.js";
import { isPresence } from "./core/replica.js";
import type { CallKind, Calls, Schema } from "./core/schema.js";
import type { Stats } from "./core/stats.js";
import { CloseCode } from "./gen/codes.js";
import { GuestToken } from "./guest.js";
import { forgetReload } from "./reload.js";
import { Discovery } from "./transport/discovery.js";
import { simulated, type Simulation } from "./transport/simulate.js";
import type { Dial, Transport } from "./transport/transport.js";
import { websocketDialer } from "./transport/websocket.js";
import { VERSION } from "./version.js";

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_CALL_TIMEOUT_MS = 10_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** A connection that holds back more than this takes no more. */
const MAX_UNSENT_BYTES = 2 ** 20;
/**
 * Behind more than this, what may be lost is, and writes wait for newer ones. It is much because a browser counts all
 * that one turn has sent.
 */
const CLOGGED_BYTES = 2 ** 16;
/** How many messages that came before the first state wait for a listener. */
const MAX_EARLY_MESSAGES = 64;

/** What `connect` and `RoomClient` take. */
export interface ConnectOptions<State, Private, C extends Calls = Calls> {
  /** The site's origin, such as `location.origin`. */
  readonly url: string;
  readonly project: string;
  readonly room: string;
  /** From the module that `playhall gen` writes. */
  readonly schema: Schema<State, Private, unknown, C>;
  /** The type of room; `default` if not given. */
  readonly type?: string;
  /** The player's token, from your backend. Without one the player is a guest. */
  readonly token?: string;
  /** How long to try, in milliseconds, before the first connect fails; 30,000 if not given. */
  readonly timeout?: number;
  /** The room is being started, which may take some seconds. */
  readonly onWaking?: () => void;
  /** How to open connections; a WebSocket to the address `url` names if not given. */
  readonly dial?: Dial;
  /** Try the game on a bad network, during development: refused where `url` is not on this machine. */
  readonly simulate?: Simulation;
}

/** What `call` takes last. */
export interface CallOptions {
  /** How long to wait for the answer, in milliseconds; 10,000 if not given. */
  readonly timeoutMs?: number;
}

/** What `call` takes after the name: `args` may be left out where no field is required. */
type CallParameters<K> =
  K extends CallKind<infer Args>
    ? object extends Args
      ? [args?: Args, options?: CallOptions]
      : [args: Args, options?: CallOptions]
    : never;

type ReplyOf<K> = K extends CallKind<unknown, infer Reply> ? Reply : never;

interface Answer {
  readonly resolve: (answer: Payload) => void;
  readonly reject: (error: PlayhallError) => void;
}

/** The events of `room.on`, and what their listeners get. */
export interface RoomEvents {
  /** The room is being started, which may take some seconds. */
  waking: [];
  /** The connection or the room was lost. The client comes back by itself. */
  disconnected: [code: number];
  /** The client is back, with a whole state. */
  restored: [];
  /** The client is out for good; `error.code` says why. */
  closed: [error: PlayhallError];
  /** The room sent a message. */
  message: [message: Payload, unreliable: boolean];
  /** An update was applied, and all that follows from it was told. */
  tick: [tick: number];
  /** The room went to sleep; anything the player does wakes it. */
  sleep: [];
  /** The room woke. */
  wake: [];
  /** Where the room's voice chat is. */
  voice: [url: string, token: string];
  /** Players this one hears, and players who hear this one. */
  peers: [hears: readonly string[], heardBy: readonly string[]];
}

/**
 * Connect to a room; resolves once its whole state is in. Rejects with PlayhallError: at once where the answer is final,
 * else after `timeout`.
 */
export async function connect<State, Private, C extends Calls>(
  options: ConnectOptions<State, Private, C>,
): Promise<RoomClient<State, Private, C>> {
  const client = new RoomClient(options);
  await client.ready;
  return client;
}

/** One player in one room. It connects at once; listeners added before awaiting `ready` hear of the first state. */
export class RoomClient<State = unknown, Private = unknown, C extends Calls = Calls> {
  /** Resolves once the room's whole state is in; rejects with PlayhallError. */
  readonly ready: Promise<void>;
  /** What this client sees. */
  readonly entities: Entities;
  /** Who is in the room. */
  readonly presence: PresenceList;
  readonly #core: ClientCore;
  readonly #dial: Dial;
  readonly #guest: GuestToken;
  readonly #listeners = new Listeners<keyof RoomEvents, unknown[]>();
  readonly #calls = new Map<number, Answer>();
  readonly #earlyMessages: [Payload, boolean][] = [];
  #transport: Transport | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isTelling = false;
  #settle!: { resolve: () => void; reject: (error: PlayhallError) => void };

  constructor(options: ConnectOptions<State, Private, C>) {
    const { url, project, room, schema, type = "", token = "", timeout = DEFAULT_TIMEOUT_MS } = options;
    this.#guest = new GuestToken(project);
    this.#core = new ClientCore({
      schema,
      project,
      room,
      roomType: type,
      token,
      guestToken: token === "" ? this.#guest.load() : "",
      session: crypto.getRandomValues(new Uint8Array(16)),
      sdk: `playhall-web/${VERSION}`,
      timeoutMs: timeout,
      random: Math.random,
      wrote: () => queueMicrotask(() => this.#runTimer()),
    });
    const dial = options.dial ?? websocketDialer(new Discovery(url, project, Math.random));
    this.#dial = options.simulate === undefined ? dial : simulated(dial, options.simulate, url);
    this.entities = new Entities(this.#core.replica, schema.kinds, () => this.#core.player);
    this.presence = new PresenceList(this.#core.replica, (status) => this.#core.setStatus(status));
    this.ready = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    // Whoever listens to `closed` instead of awaiting this has been told.
    this.ready.catch(() => undefined);
    if (options.onWaking !== undefined) this.on("waking", options.onWaking);
    this.#do((now) => this.#core.start(now));
  }

  /** `open` once the first state is in; `reconnecting` while a lost room comes back; `closed` for good. */
  get status(): Status {
    return this.#core.status;
  }

  /** The room sleeps: what is seen is exact, and anything the player does wakes it. */
  get asleep(): boolean {
    return this.#core.isAsleep;
  }

  /** This player's id; empty before `ready`. */
  get player(): string {
    return this.#core.player;
  }

  /** Which life of the room this is: it changes when the room wakes or moves. */
  get generation(): number {
    return this.#core.generation;
  }

  /** The tick of the newest update applied. */
  get tick(): number {
    return this.#core.tick;
  }

  /** The room's tick now, as far as can be told from here, with its fraction. */
  serverTick(): number {
    return this.#core.serverTick(performance.now());
  }

  /** The round trip in milliseconds; 0 before it is known. */
  get rtt(): number {
    return this.#core.clock.rtt;
  }

  /** Bytes sent and received, by kind of frame. */
  get stats(): Stats {
    return this.#core.stats;
  }

  /** Shared state; null if the schema has none, and before `ready`. A new object after `restored`. */
  get state(): State {
    return (this.#core.replica.state?.handle ?? null) as State;
  }

  /** This player's private state; null if the schema has none, and before `ready`. */
  get private(): Private {
    return (this.#core.replica.private?.handle ?? null) as Private;
  }

  /** Listen; returns the function that stops it. Messages sent in `on_join` wait for the first listener. */
  on<E extends keyof RoomEvents>(event: E, callback: (...args: RoomEvents[E]) => void): () => void {
    const remove = this.#listeners.add(event, callback as (...args: unknown[]) => void);
    if (event === "message" && this.#earlyMessages.length > 0) queueMicrotask(() => this.#tellEarlyMessages());
    return remove;
  }

  /**
   * Send a JSON value, or a Uint8Array, to the room. An `unreliable` one may be lost or overtaken. Returns false while
   * the client is coming back: the message is dropped, as one on its way when the connection broke would be; and for an
   * unreliable one while the connection is backed up. Throws before `ready` and once closed, while over a megabyte waits
   * to leave, and for what cannot be sent (over 65,536 bytes, or no JSON).
   */
  send(message: unknown, options: { unreliable?: boolean } = {}): boolean {
    const unreliable = options.unreliable ?? false;
    if (unreliable && this.#isClogged) return false;
    this.#checkUnsent();
    return this.#do(() => this.#core.send(message, unreliable));
  }

  get #unsentBytes(): number {
    return this.#transport?.unsentBytes ?? 0;
  }

  get #isClogged(): boolean {
    return this.#unsentBytes > CLOGGED_BYTES;
  }

  #checkUnsent(): void {
    if (this.#unsentBytes <= MAX_UNSENT_BYTES) return;
    throw new PlayhallError(CloseCode.LIMIT_EXCEEDED, "The connection does not take what was sent before.");
  }

  /**
   * Ask the room, and resolve to its reply; what the room changed to answer is seen by then. Rejects with PlayhallError:
   * code 422 where room code refused or failed, 404 where the room knows no such call, 429 over 32 calls without an
   * answer, and 0 where no answer came: in time, or before the connection or the room was lost or left. Whether the room
   * did what it was asked is unknown then, and nothing is asked twice. While the client is coming back a call fails at
   * once. Throws as `send` does.
   */
  call<N extends keyof C & string>(name: N, ...rest: CallParameters<C[N]>): Promise<ReplyOf<C[N]>> {
    const [args = {}, { timeoutMs = DEFAULT_CALL_TIMEOUT_MS } = {}] = rest as [unknown?, CallOptions?];
    this.#checkUnsent();
    const call = this.#core.call(name, args, timeoutMs, performance.now());
    const answered = new Promise<unknown>((resolve, reject) => this.#calls.set(call, { resolve, reject }));
    this.#carryOut();
    return answered as Promise<ReplyOf<C[N]>>;
  }

  /** The same as `on("tick", callback)`. */
  onTick(callback: (tick: number) => void): () => void {
    return this.on("tick", callback);
  }

  /** Leave the room on purpose. What was written is sent, the room is told, and the client says nothing more. */
  leave(): void {
    this.#do((now) => this.#core.leave(now));
    this.#settle.reject(new PlayhallError(0, "The room was left before it was ready."));
  }

  /** Run one step of the core, and carry out what it says. */
  #do<T>(step: (now: number) => T): T {
    const result = step(performance.now());
    this.#carryOut();
    return result;
  }

  /** A callback may call back in (send, leave): what that brings is carried out in its turn, not in between. */
  #carryOut(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      for (let outputs = this.#core.takeOutputs(); outputs.length > 0; outputs = this.#core.takeOutputs()) {
        for (const output of outputs) this.#perform(output);
      }
    } finally {
      this.#isTelling = false;
    }
    this.#rearm();
  }

  #rearm(): void {
    clearTimeout(this.#timer);
    const at = this.#core.nextTimer();
    if (at === Infinity) return;
    const wait = Math.min(LONGEST_TIMER_MS, Math.max(0, at - performance.now()));
    this.#timer = setTimeout(() => this.#runTimer(), wait);
  }

  #runTimer(): void {
    this.#do((now) => this.#core.timer(now, this.#isClogged));
  }

  #perform(output: Output): void {
    switch (output.type) {
      case "open":
        return this.#open();
      case "send":
        return this.#transport?.send(output.frame, output.unreliable);
      case "close":
        this.#transport?.close(output.code, output.reason);
        this.#transport = null;
        return;
      case "token":
        return this.#guest.save(output.token);
      case "event":
        return this.#tell(output.event);
    }
  }

  #open(): void {
    this.#transport = this.#dial({
      opened: () => this.#do((now) => this.#core.opened(now)),
      received: (frame) => this.#do((now) => this.#core.received(frame, now, this.#isClogged)),
      violated: (reason) => this.#do(() => this.#core.violated(reason)),
      closed: (code, reason) => this.#do((now) => this.#core.closed(code, reason, now)),
    });
  }

  #tell(event: CoreEvent): void {
    switch (event.name) {
      case "ready":
        forgetReload();
        return this.#settle.resolve();
      case "updated":
        for (const happening of event.happenings) if (!isPresence(happening.cell)) this.entities.tell(happening);
        for (const happening of event.happenings) if (isPresence(happening.cell)) this.presence.tell(happening);
        return this.#listeners.emit("tick", event.tick);
      case "message":
        return this.#tellMessage(event.payload, event.unreliable);
      case "answered":
        return this.#answer(event.call).resolve(event.answer);
      case "failed":
        return this.#answer(event.call).reject(event.error);
      case "disconnected":
        return this.#listeners.emit("disconnected", event.code);
      case "closed":
        this.#settle.reject(event.error);
        return this.#listeners.emit("closed", event.error);
      case "voice":
        return this.#listeners.emit("voice", event.url, event.token);
      case "peers":
        return this.#listeners.emit("peers", event.hears, event.heardBy);
      default:
        return this.#listeners.emit(event.name);
    }
  }

  #answer(call: number): Answer {
    const answer = this.#calls.get(call)!;
    this.#calls.delete(call);
    return answer;
  }

  #tellMessage(payload: Payload, unreliable: boolean): void {
    if (this.#listeners.has("message")) {
      this.#tellEarlyMessages();
      this.#listeners.emit("message", payload, unreliable);
    } else if (this.#core.status === "connecting" && this.#earlyMessages.length < MAX_EARLY_MESSAGES) {
      this.#earlyMessages.push([payload, unreliable]);
    }
  }

  #tellEarlyMessages(): void {
    for (const [payload, unreliable] of this.#earlyMessages.splice(0))
      this.#listeners.emit("message", payload, unreliable);
  }
}
