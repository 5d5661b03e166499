import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FrameType } from "../src/core/frames.js";
import { RoomClient, type Dial, type Transport, type TransportHandlers } from "../src/index.js";
import { simulated, type Simulation } from "../src/transport/simulate.js";
import { schema } from "./server.js";

const LOCAL = "http://127.0.0.1:7350";

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => vi.useRealTimers());

const frame = (type: number, number: number): Uint8Array => Uint8Array.of(type, number);
const reliable = (number: number): Uint8Array => frame(FrameType.MESSAGE, number);
const unreliable = (number: number): Uint8Array => frame(FrameType.UNRELIABLE, number);

/** A connection over a made-up network, and what came out at either end, by when. */
class Line {
  readonly start = performance.now();
  readonly told: [at: number, what: string | number][] = [];
  readonly arrived: [at: number, what: string | number][] = [];
  readonly transport: Transport;
  inner!: TransportHandlers;

  constructor(simulation: Simulation) {
    const tell = (what: string | number): void => void this.told.push([performance.now() - this.start, what]);
    const arrive = (what: string | number): void => void this.arrived.push([performance.now() - this.start, what]);
    const dial: Dial = (handlers) => {
      this.inner = handlers;
      arrive("dial");
      return {
        unsentBytes: 3,
        send: (data) => arrive(data[1]!),
        close: (code) => arrive(`close ${code}`),
      };
    };
    this.transport = simulated(
      dial,
      simulation,
      LOCAL,
    )({
      opened: () => tell("opened"),
      received: (data) => tell(data[1]!),
      violated: () => tell("violated"),
      closed: (code) => tell(`closed ${code}`),
    });
  }

  open(): void {
    vi.advanceTimersByTime(100);
    this.inner.opened();
    this.arrived.length = this.told.length = 0;
  }
}

describe("[DEV-04] a simulated network", () => {
  test("takes half a round trip each way, and one more to open", () => {
    const line = new Line({ rttMs: 100 });
    expect(line.transport.unsentBytes).toBe(0);
    vi.advanceTimersByTime(99);
    expect(line.arrived).toEqual([]);
    vi.advanceTimersByTime(1);
    line.inner.opened();
    expect([line.arrived, line.told, line.transport.unsentBytes]).toEqual([[[100, "dial"]], [[100, "opened"]], 3]);
    line.transport.send(reliable(1), false);
    vi.advanceTimersByTime(49);
    expect(line.arrived).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(line.arrived.at(-1)).toEqual([150, 1]);
    line.inner.received(unreliable(2));
    line.inner.violated("text");
    line.inner.closed(4_007, "");
    vi.advanceTimersByTime(50);
    expect(line.told.slice(1)).toEqual([
      [200, 2],
      [200, "violated"],
      [200, "closed 4007"],
    ]);
  });

  test("jitter delays each frame by up to so much, and reorders none", () => {
    const line = new Line({ rttMs: 100, jitterMs: 40, seed: 1 });
    line.open();
    for (let number = 0; number < 200; number++) {
      line.transport.send(reliable(number), false);
      line.inner.received(unreliable(number));
      vi.advanceTimersByTime(10);
    }
    vi.advanceTimersByTime(100);
    for (const came of [line.arrived, line.told]) {
      expect(came.map(([, number]) => number)).toEqual(Array.from({ length: 200 }, (_, number) => number));
      const waits = came.map(([at, number]) => at - 100 - 10 * (number as number));
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(50);
      expect(Math.max(...waits)).toBeLessThanOrEqual(91);
      expect(Math.max(...waits) - Math.min(...waits)).toBeGreaterThan(20);
    }
  });

  test("loss takes unreliable messages, and makes all else late, in order", () => {
    const line = new Line({ rttMs: 100, loss: 0.3, seed: 2 });
    line.open();
    for (let number = 0; number < 250; number++) {
      for (const one of [reliable(number), unreliable(number)]) {
        line.transport.send(one, one[0] === FrameType.UNRELIABLE);
        line.inner.received(one);
      }
    }
    vi.advanceTimersByTime(60_000);
    for (const came of [line.arrived, line.told]) {
      const reliables = came.filter(([at]) => at > 150).map(([, number]) => number);
      const prompt = came.filter(([at]) => at === 150).map(([, number]) => number as number);
      expect(came.length).toBeGreaterThan(250 + 140);
      expect(came.length).toBeLessThan(250 + 210);
      expect(reliables).toEqual([...reliables].sort((a, b) => (a as number) - (b as number)));
      expect(new Set([...reliables, ...prompt]).size).toBe(250);
    }
  });

  test("is the same for the same seed", () => {
    const run = (seed: number): unknown => {
      const line = new Line({ rttMs: 50, jitterMs: 30, loss: 0.2, seed });
      line.open();
      for (let number = 0; number < 50; number++) line.transport.send(unreliable(number), true);
      vi.advanceTimersByTime(1_000);
      return line.arrived;
    };
    expect(run(7)).toEqual(run(7));
    expect(run(7)).not.toEqual(run(8));
  });

  test("what was sent before a close arrives before it, and nothing is told after it", () => {
    const line = new Line({ rttMs: 100 });
    line.open();
    line.inner.received(reliable(1));
    line.transport.send(reliable(2), false);
    line.transport.close(1_000, "");
    line.inner.received(reliable(3));
    line.inner.closed(1_000, "");
    vi.advanceTimersByTime(1_000);
    expect(line.told).toEqual([]);
    expect(line.arrived.map(([, what]) => what)).toEqual([2, "close 1000"]);
    const early = new Line({ rttMs: 100 });
    early.transport.close(1_000, "");
    vi.advanceTimersByTime(1_000);
    expect(early.arrived).toEqual([]);
  });

  test("is refused for a room that is not on this machine, and for numbers that are no network", () => {
    const connect = (url: string, simulate: Simulation): RoomClient =>
      new RoomClient({ url, project: "dots", room: "main", schema, simulate, dial: () => new Line({}).transport });
    for (const url of ["https://game.example", "http://10.0.0.1:7350", "http://127.0.0.1.example", "http://[::2]"]) {
      expect(() => connect(url, { rttMs: 100 }), url).toThrow("not a loopback address");
    }
    for (const url of ["http://localhost:1", "http://app.localhost", "http://127.8.9.1", "http://[::1]:7350"]) {
      connect(url, { rttMs: 100 }).leave();
    }
    for (const wrong of [{ rttMs: -1 }, { jitterMs: NaN }, { rttMs: Infinity }, { loss: 1 }, { loss: -0.1 }]) {
      expect(() => connect(LOCAL, wrong)).toThrow(RangeError);
    }
  });

  test("is what connect goes over", async () => {
    const dialed = vi.fn();
    const room = new RoomClient({
      url: LOCAL,
      project: "dots",
      room: "main",
      schema,
      simulate: { rttMs: 80 },
      dial: (handlers) => {
        dialed(performance.now());
        handlers.opened();
        return { unsentBytes: 0, send: () => undefined, close: () => undefined };
      },
    });
    expect(dialed).not.toHaveBeenCalled();
    vi.advanceTimersByTime(80);
    expect(dialed).toHaveBeenCalledOnce();
    room.leave();
  });
});
