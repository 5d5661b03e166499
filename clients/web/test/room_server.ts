// What tests of RoomClient play against.

import { afterEach, beforeEach, vi } from "vitest";
import type { ConnectOptions, TransportHandlers } from "../src/index.js";
import { fullState, schema, welcome, type Board, type Mine } from "./server.js";

/** The other end of each connection a client makes. */
export class Server {
  /** What the client's connection holds back. */
  unsentBytes = 0;
  readonly connections: { handlers: TransportHandlers; sent: Uint8Array[]; closed: [number, string] | null }[] = [];

  readonly options: ConnectOptions<Board, Mine, typeof schema.calls> = {
    url: "http://game.test",
    project: "dots",
    room: "main",
    schema,
    dial: (handlers) => {
      const connection = { handlers, sent: [] as Uint8Array[], closed: null as [number, string] | null };
      this.connections.push(connection);
      const server = this;
      return {
        get unsentBytes() {
          return server.unsentBytes;
        },
        send: (frame) => void connection.sent.push(frame),
        close: (code, reason) => void (connection.closed = [code, reason]),
      };
    },
  };

  get last(): Server["connections"][number] {
    return this.connections.at(-1)!;
  }

  say(...frames: Uint8Array[]): void {
    for (const frame of frames) this.last.handlers.received(frame);
  }

  /** Take the client in. */
  admit(...first: Uint8Array[]): void {
    this.last.handlers.opened();
    this.say(...first, welcome({ token: "guest-token" }), fullState());
  }

  sentOf(type: number): Uint8Array[] {
    return this.last.sent.filter((frame) => frame[0] === type);
  }
}

function memoryStorage(): Storage {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  } as unknown as Storage;
}

/** Tests of this module run in a browser as far as the client asks for one, whose clock they move. */
export function fakeBrowser(): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
    vi.stubGlobal("localStorage", memoryStorage());
    vi.stubGlobal("sessionStorage", memoryStorage());
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
}
