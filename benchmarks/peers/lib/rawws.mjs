// A WebSocket client on a bare TCP socket that counts what it gets: as cheap as Node allows. All sockets share one
// receive buffer; of a frame only its first bytes are kept, unless someone wants the payload.

import crypto from "node:crypto";
import net from "node:net";

const SHARED = Buffer.allocUnsafe(512 * 1024);
const HEAD_BYTES = 24;
const PING = 9;
const PONG = 10;
const CLOSE = 8;

/** A whole client frame, masked with zeros. */
export function clientFrame(payload, opcode = 2) {
  const n = payload.length;
  if (n > 65_535) throw new RangeError("a frame of at most 65,535 bytes");
  const head = Buffer.alloc(n < 126 ? 6 : 8);
  head[0] = 0x80 | opcode;
  head[1] = 0x80 | (n < 126 ? n : 126);
  if (n >= 126) head.writeUInt16BE(n, 2);
  return Buffer.concat([head, payload]);
}

/** What one client got in the window that is measured. Times are `clock.now`, in milliseconds. */
export class Deliveries {
  constructor(clock) {
    this.clock = clock;
    this.begin();
  }

  begin() {
    this.bytes = 0;
    this.frames = 0;
    this.updates = 0;
    this.longestGap = 0;
    this.lastUpdate = this.clock.now;
  }

  updated() {
    const gap = this.clock.now - this.lastUpdate;
    if (gap > this.longestGap) this.longestGap = gap;
    this.lastUpdate = this.clock.now;
    this.updates++;
  }

  end() {
    this.longestGap = Math.max(this.longestGap, this.clock.now - this.lastUpdate);
  }
}

export class RawWs {
  /**
   * `onFrame(payload)` gets whole payloads while it is set. `bringsUpdate(head)` gets the first 24 bytes of a payload and
   * says whether it brings the client a newer state.
   */
  constructor({ port, path, clock, bringsUpdate, onOpen, onFrame, onClose }) {
    this.got = new Deliveries(clock);
    this.isOpen = false;
    this.isClosing = false;
    this.isClosed = false;
    this.bringsUpdate = bringsUpdate;
    this.onOpen = onOpen;
    this.onFrame = onFrame;
    this.header = Buffer.alloc(14);
    this.headerLength = 0;
    this.headerNeeds = 2;
    this.opcode = 0;
    this.left = 0;
    this.error = undefined;
    this.head = Buffer.alloc(HEAD_BYTES);
    this.headLength = 0;
    this.pieces = null;
    this.http = "";
    const onread = { buffer: SHARED, callback: (n, buffer) => (this.feed(buffer, n), true) };
    this.socket = net.connect({ port, host: "127.0.0.1", noDelay: true, onread });
    this.socket.on("connect", () => this.socket.write(upgrade(path, port)));
    this.socket.on("error", (error) => (this.error ??= error));
    this.socket.on("close", () => {
      this.isClosed = true;
      onClose?.(this.error);
    });
  }

  send(frame) {
    if (!this.isClosing) this.socket.write(frame);
  }

  feed(buffer, end) {
    let at = this.isOpen ? 0 : this.feedHttp(buffer, end);
    while (at < end) at = this.left > 0 ? this.feedPayload(buffer, at, end) : this.feedHeader(buffer[at], at + 1);
  }

  /** Returns where the frames begin. */
  feedHttp(buffer, end) {
    this.http += buffer.latin1Slice(0, end);
    const found = this.http.indexOf("\r\n\r\n");
    if (found < 0) return end;
    if (!this.http.startsWith("HTTP/1.1 101")) {
      this.socket.destroy(new Error(this.http.slice(0, 200)));
      return end;
    }
    const rest = this.http.length - found - 4;
    this.isOpen = true;
    this.http = "";
    this.onOpen?.(this);
    return end - rest;
  }

  feedHeader(byte, next) {
    this.header[this.headerLength++] = byte;
    const length = this.header[1] & 127;
    if (this.headerLength === 2) this.headerNeeds = length === 126 ? 4 : length === 127 ? 10 : 2;
    if (this.headerLength < this.headerNeeds) return next;
    this.opcode = this.header[0] & 15;
    this.left =
      length < 126 ? length : length === 126 ? this.header.readUInt16BE(2) : Number(this.header.readBigUInt64BE(2));
    this.headerLength = 0;
    this.headerNeeds = 2;
    this.headLength = 0;
    if (this.opcode < CLOSE) {
      this.got.bytes += this.left;
      this.got.frames++;
    }
    this.pieces = this.onFrame || this.opcode >= CLOSE ? [] : null;
    if (this.left === 0) this.done();
    return next;
  }

  feedPayload(buffer, at, end) {
    const next = Math.min(at + this.left, end);
    for (let i = at; this.headLength < HEAD_BYTES && i < next; i++) this.head[this.headLength++] = buffer[i];
    this.pieces?.push(Buffer.from(buffer.subarray(at, next)));
    this.left -= next - at;
    if (this.left === 0) this.done();
    return next;
  }

  done() {
    if (this.opcode < CLOSE && this.headLength > 0 && this.bringsUpdate(this.head, this)) this.got.updated();
    if (this.pieces === null) return;
    const payload = Buffer.concat(this.pieces);
    this.pieces = null;
    if (this.opcode === PING) this.send(clientFrame(payload, PONG));
    else if (this.opcode === CLOSE) {
      this.error ??= new Error(`closed ${payload.length < 2 ? "" : payload.readUInt16BE(0)} ${payload.subarray(2)}`);
      this.isClosing = true;
      this.socket.end();
    } else if (this.opcode < CLOSE) this.onFrame?.(payload, this);
  }
}

function upgrade(path, port) {
  const key = crypto.randomBytes(16).toString("base64");
  return (
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
    `Sec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`
  );
}
