// Frames over a WebSocket: one frame, one binary message.

import { PlayhallError } from "../core/errors.js";
import type { Discovery } from "./discovery.js";
import { ABNORMAL_CLOSE, type Dial, type Transport, type TransportHandlers } from "./transport.js";

/** For asking where to connect and connecting, together. */
const OPEN_DEADLINE_MS = 10_000;
/** A router may take connections and answer none. While there is another, it has this long. */
const SWITCH_DEADLINE_MS = 4_000;
const MAX_REASON_BYTES = 123;

/** Dials a WebSocket at an address that `discovery` gives. */
export function websocketDialer(discovery: Discovery): Dial {
  return (handlers) => new WebSocketTransport(discovery, handlers);
}

class WebSocketTransport implements Transport {
  readonly #discovery: Discovery;
  readonly #handlers: TransportHandlers;
  readonly #abort = new AbortController();
  #socket: WebSocket | null = null;
  #openBy: ReturnType<typeof setTimeout>;
  #address = "";
  #isDone = false;

  constructor(discovery: Discovery, handlers: TransportHandlers) {
    this.#discovery = discovery;
    this.#handlers = handlers;
    this.#openBy = setTimeout(() => this.#giveUp(), OPEN_DEADLINE_MS);
    discovery.websocket(this.#abort.signal).then(
      (address) => this.#connect(address),
      (error: unknown) => this.#fail(error),
    );
  }

  #giveUp(): void {
    this.#discovery.failed(this.#address);
    this.#end(ABNORMAL_CLOSE, "the server did not answer");
    this.#abort.abort();
    this.#socket?.close();
  }

  #fail(error: unknown): void {
    const code = error instanceof PlayhallError && error.code !== 0 ? error.code : ABNORMAL_CLOSE;
    this.#end(code, error instanceof Error ? error.message : String(error));
  }

  #connect(address: string): void {
    if (this.#isDone) return;
    this.#address = address;
    if (this.#discovery.hasOthers) {
      clearTimeout(this.#openBy);
      this.#openBy = setTimeout(() => this.#giveUp(), SWITCH_DEADLINE_MS);
    }
    let socket: WebSocket;
    try {
      socket = new WebSocket(address);
    } catch (error) {
      this.#discovery.failed(address);
      return this.#fail(error);
    }
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    let isOpen = false;
    socket.onopen = () => {
      isOpen = true;
      clearTimeout(this.#openBy);
      if (!this.#isDone) this.#handlers.opened();
    };
    socket.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (this.#isDone) return;
      if (data instanceof ArrayBuffer) this.#handlers.received(new Uint8Array(data));
      else this.#handlers.violated("the server sent text");
    };
    socket.onclose = ({ code, reason }) => {
      if (!isOpen) this.#discovery.failed(address);
      this.#end(code, reason);
    };
  }

  #end(code: number, reason: string): void {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#openBy);
    this.#handlers.closed(code, reason);
  }

  send(frame: Uint8Array): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(frame);
  }

  get unsentBytes(): number {
    // What a socket that is gone held back never leaves.
    return this.#socket?.readyState === WebSocket.OPEN ? this.#socket.bufferedAmount : 0;
  }

  close(code: number, reason: string): void {
    this.#isDone = true;
    clearTimeout(this.#openBy);
    this.#abort.abort();
    this.#socket?.close(code, shorten(reason));
  }
}

/** A close reason may have 123 bytes; a character is not cut in two. */
function shorten(reason: string): string {
  let short = reason;
  while (new TextEncoder().encode(short).length > MAX_REASON_BYTES) short = [...short].slice(0, -1).join("");
  return short;
}
