import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Discovery } from "../src/transport/discovery.js";
import type { TransportHandlers } from "../src/transport/transport.js";
import { websocketDialer } from "../src/transport/websocket.js";

/** What the browser's WebSocket does, by hand. */
class FakeSocket {
  static readonly OPEN = 1;
  static made: FakeSocket[] = [];
  readyState = 0;
  binaryType = "";
  bufferedAmount = 0;
  readonly sent: unknown[] = [];
  readonly closed: unknown[] = [];
  onopen: () => void = () => undefined;
  onmessage: (event: { data: unknown }) => void = () => undefined;
  onclose: (event: { code: number; reason: string }) => void = () => undefined;

  readonly url: string;

  constructor(url: string) {
    this.url = url;
    FakeSocket.made.push(this);
  }

  open(): void {
    this.readyState = FakeSocket.OPEN;
    this.onopen();
  }

  send(data: unknown): void {
    this.sent.push(data);
  }

  close(...args: unknown[]): void {
    this.closed.push(args);
  }
}

const answers: { status: number; body: unknown }[] = [];
const asked: string[] = [];

function handlers(): TransportHandlers & { told: unknown[] } {
  const told: unknown[] = [];
  return {
    told,
    opened: () => told.push("opened"),
    received: (frame) => told.push([...frame]),
    violated: () => told.push("violated"),
    closed: (code, reason) => told.push([code, reason]),
  };
}

const dialer = (random = 0): ReturnType<typeof websocketDialer> =>
  websocketDialer(new Discovery("https://game.test", "dots", () => random));

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  FakeSocket.made = [];
  answers.length = asked.length = 0;
  answers.push({ status: 200, body: { websocket: ["ws://a", "ws://b"], webtransport: [] } });
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("fetch", async (url: URL, { signal }: { signal: AbortSignal }) => {
    asked.push(url.href);
    signal.throwIfAborted();
    const { status, body } = answers.length > 1 ? answers.shift()! : answers[0]!;
    return new Response(JSON.stringify(body), { status });
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Let answers arrive: some promises deep, and none of them waits for time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));
}

describe("discovery", () => {
  test("asks the site for the project's addresses, takes one at random, and keeps the answer for a minute", async () => {
    const dial = dialer(0.5);
    dial(handlers());
    await settle();
    dial(handlers());
    await settle();
    expect(asked).toEqual(["https://game.test/v1/projects/dots/endpoints"]);
    expect(FakeSocket.made.map(({ url }) => url)).toEqual(["ws://b", "ws://b"]);
    vi.advanceTimersByTime(60_001);
    dial(handlers());
    await settle();
    expect(asked).toHaveLength(2);
  });

  test("tries another address after one failed, and asks again when none is left", async () => {
    const dial = dialer();
    for (let attempt = 0; attempt < 3; attempt++) {
      dial(handlers());
      await settle();
      FakeSocket.made.at(-1)!.onclose({ code: 1006, reason: "" });
    }
    expect(FakeSocket.made.map(({ url }) => url)).toEqual(["ws://a", "ws://b", "ws://a"]);
    expect(asked).toHaveLength(2);
  });

  test.each([
    [{ status: 404, body: {} }, 4002],
    [{ status: 503, body: {} }, 1006],
    [{ status: 200, body: { websocket: [] } }, 1006],
    [{ status: 200, body: [] }, 1006],
  ])("%j closes with %i", async (answer, code) => {
    answers.splice(0, 1, answer);
    const told = handlers();
    dialer()(told);
    await settle();
    expect(told.told).toMatchObject([[code, expect.any(String)]]);
  });
});

describe("a WebSocket", () => {
  test("tells what has not left yet, of a socket that is open", async () => {
    const transport = dialer()(handlers());
    expect(transport.unsentBytes).toBe(0);
    await settle();
    const [socket] = FakeSocket.made as [FakeSocket];
    socket.open();
    socket.bufferedAmount = 7;
    expect(transport.unsentBytes).toBe(7);
    socket.readyState = 3;
    expect(transport.unsentBytes).toBe(0);
  });

  test("carries frames both ways, and its close", async () => {
    const told = handlers();
    const transport = dialer()(told);
    await settle();
    const socket = FakeSocket.made[0]!;
    socket.open();
    transport.send(Uint8Array.of(1, 2), false);
    socket.onmessage({ data: Uint8Array.of(3, 4).buffer });
    socket.onclose({ code: 4008, reason: "retry-after=5;x" });
    expect(socket.binaryType).toBe("arraybuffer");
    expect(socket.sent).toEqual([Uint8Array.of(1, 2)]);
    expect(told.told).toEqual(["opened", [3, 4], [4008, "retry-after=5;x"]]);
  });

  test("text is no frame", async () => {
    const told = handlers();
    dialer()(told);
    await settle();
    FakeSocket.made[0]!.open();
    FakeSocket.made[0]!.onmessage({ data: "text" });
    expect(told.told).toEqual(["opened", "violated"]);
  });

  test("says nothing once it was closed from here, and cuts a long reason between characters", async () => {
    const told = handlers();
    const transport = dialer()(told);
    await settle();
    const socket = FakeSocket.made[0]!;
    socket.open();
    transport.close(4000, "é".repeat(100));
    socket.onmessage({ data: new ArrayBuffer(1) });
    socket.onclose({ code: 4000, reason: "" });
    expect(socket.closed).toEqual([[4000, "é".repeat(61)]]);
    expect(told.told).toEqual(["opened"]);
  });

  test("closed before it has an address, it never opens one", async () => {
    const told = handlers();
    dialer()(told).close(1000, "");
    await settle();
    expect([FakeSocket.made, told.told]).toEqual([[], []]);
  });

  test("is given up when nothing answers in 4 s, where there is another address", async () => {
    const dial = dialer();
    const told = handlers();
    dial(told);
    await settle();
    vi.advanceTimersByTime(3_999);
    expect(told.told).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(told.told).toEqual([[1006, "the server did not answer"]]);
    dial(handlers());
    await settle();
    expect(FakeSocket.made.map(({ url }) => url)).toEqual(["ws://a", "ws://b"]);
  });

  test("is given up when nothing answers in 10 s", async () => {
    answers[0] = { status: 200, body: { websocket: ["ws://a"] } };
    const told = handlers();
    dialer()(told);
    await settle();
    vi.advanceTimersByTime(10_000);
    expect(told.told).toEqual([[1006, "the server did not answer"]]);
    expect(FakeSocket.made[0]!.closed).toHaveLength(1);
    FakeSocket.made[0]!.open();
    expect(told.told).toHaveLength(1);
  });
});
