// A bad network, made up: for trying a game on one during development. It is the `Net` of the Python SDK, in the browser.

import { FrameType } from "../core/frames.js";
import type { Dial, Transport, TransportHandlers } from "./transport.js";

/** What the network between this client and its room is like. */
export interface Simulation {
  /** There and back: every frame takes half of it. To open a connection takes one more. 0 if not given. */
  readonly rttMs?: number;
  /** Each frame takes up to so many milliseconds longer. It reorders nothing. 0 if not given. */
  readonly jitterMs?: number;
  /**
   * The chance of a frame to be lost, from 0 up to but not 1. An unreliable message is gone; anything else is sent again
   * `rttMs` + 200 ms later, and what was sent after it waits. 0 if not given.
   */
  readonly loss?: number;
  /** What the chances are drawn from: the same seed makes the same network. Another each time, if not given. */
  readonly seed?: number;
}

const RETRANSMIT_MS = 200;
const MAX_RETRANSMITS = 10;
const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** `dial` over such a network. RangeError for what no network can be, TypeError unless `url` is on this machine. */
export function simulated(dial: Dial, simulation: Simulation, url: string): Dial {
  if (!LOOPBACK.test(new URL(url).hostname)) {
    throw new TypeError(`simulate is for development on this machine: ${url} is not a loopback address`);
  }
  const { rttMs = 0, jitterMs = 0, loss = 0, seed = Math.floor(Math.random() * 2 ** 32) } = simulation;
  for (const [name, ms] of Object.entries({ rttMs, jitterMs })) {
    if (!(ms >= 0 && ms < Infinity)) throw new RangeError(`simulate.${name} is milliseconds, 0 or more, not ${ms}`);
  }
  if (!(loss >= 0 && loss < 1)) throw new RangeError(`simulate.loss is a chance, from 0 up to but not 1, not ${loss}`);
  const net: Net = { rttMs, jitterMs, loss, random: seeded(seed) };
  return (handlers) => new SimulatedTransport(dial, net, handlers);
}

interface Net extends Required<Omit<Simulation, "seed">> {
  readonly random: () => number;
}

/** Numbers from 0 up to 1, the same for the same seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One direction of a connection. */
class Pipe {
  readonly #net: Net;
  /** What is under way, by when it arrives. */
  readonly #waiting: { readonly at: number; readonly arrive: () => void }[] = [];
  #reliableAt = 0;
  #unreliableAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(net: Net) {
    this.#net = net;
  }

  /** Send what always arrives, in order. */
  sendReliable(arrive: () => void): void {
    let late = 0;
    for (let tries = 0; tries < MAX_RETRANSMITS && this.#isLost(); tries++) late += this.#net.rttMs + RETRANSMIT_MS;
    this.#reliableAt = Math.max(this.#reliableAt, this.#arrival() + late);
    this.#put(this.#reliableAt, arrive);
  }

  sendUnreliable(arrive: () => void): void {
    if (this.#isLost()) return;
    this.#unreliableAt = Math.max(this.#unreliableAt, this.#arrival());
    this.#put(this.#unreliableAt, arrive);
  }

  sendFrame(frame: Uint8Array, arrive: () => void): void {
    if (frame[0] === FrameType.UNRELIABLE) this.sendUnreliable(arrive);
    else this.sendReliable(arrive);
  }

  #isLost(): boolean {
    return this.#net.loss > 0 && this.#net.random() < this.#net.loss;
  }

  #arrival(): number {
    return performance.now() + this.#net.rttMs / 2 + this.#net.jitterMs * this.#net.random();
  }

  #put(at: number, arrive: () => void): void {
    const before = this.#waiting.filter((each) => each.at <= at).length;
    this.#waiting.splice(before, 0, { at, arrive });
    this.#arm();
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const [first] = this.#waiting;
    if (first !== undefined) this.#timer = setTimeout(() => this.#run(), Math.max(0, first.at - performance.now()));
  }

  #run(): void {
    const now = performance.now();
    while (this.#waiting[0] !== undefined && this.#waiting[0].at <= now) this.#waiting.shift()!.arrive();
    this.#arm();
  }
}

class SimulatedTransport implements Transport {
  readonly #up: Pipe;
  readonly #down: Pipe;
  #inner: Transport | null = null;
  #opening: ReturnType<typeof setTimeout>;
  #isDone = false;

  constructor(dial: Dial, net: Net, handlers: TransportHandlers) {
    this.#up = new Pipe(net);
    this.#down = new Pipe(net);
    const tell =
      (say: () => void): (() => void) =>
      () =>
        this.#isDone ? undefined : say();
    this.#opening = setTimeout(() => {
      this.#inner = dial({
        opened: tell(() => handlers.opened()),
        received: (frame) =>
          this.#down.sendFrame(
            frame,
            tell(() => handlers.received(frame)),
          ),
        violated: (reason) => this.#down.sendReliable(tell(() => handlers.violated(reason))),
        closed: (code, reason) => this.#down.sendReliable(tell(() => handlers.closed(code, reason))),
      });
    }, net.rttMs);
  }

  send(frame: Uint8Array, mayBeLost: boolean): void {
    this.#up.sendFrame(frame, () => this.#inner?.send(frame, mayBeLost));
  }

  get unsentBytes(): number {
    return this.#inner?.unsentBytes ?? 0;
  }

  close(code: number, reason: string): void {
    clearTimeout(this.#opening);
    this.#isDone = true;
    this.#up.sendReliable(() => this.#inner?.close(code, reason));
  }
}
