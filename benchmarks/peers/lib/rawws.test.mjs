import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { test } from "node:test";
import { RawWs } from "./rawws.mjs";

const HTTP = Buffer.from("HTTP/1.1 101 Switching Protocols\r\n\r\n");
const frame = (length, opcode = 2, first = 0) => {
  const payload = Buffer.alloc(length, 1);
  if (length > 0) payload[0] = first;
  const head = length < 126 ? [length] : length < 65_536 ? [126, length >> 8, length & 255] : null;
  const long = Buffer.alloc(9);
  long[0] = 127;
  long.writeBigUInt64BE(BigInt(length), 1);
  return Buffer.concat([Buffer.of(0x80 | opcode), head === null ? long : Buffer.from(head), payload]);
};

/** A client of a server that sends `pieces`; resolves when the server has and the client has closed. */
async function receive(pieces, options) {
  const server = net.createServer(async (socket) => {
    await once(socket, "data");
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise(setImmediate);
    }
    socket.end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const client = await new Promise((resolve) => {
    const { port } = server.address();
    const made = new RawWs({ port, path: "/", clock: { now: 5 }, onClose: () => resolve(made), ...options });
  });
  server.close();
  return client;
}

test("frames of all lengths are counted, in whatever pieces they come", async () => {
  const bytes = Buffer.concat([HTTP, frame(3, 2, 4), frame(0), frame(200, 2, 9), frame(70_000, 2, 4)]);
  const pieces = [
    bytes.subarray(0, 37),
    ...Array.from(bytes.subarray(37, 60), (b) => Buffer.of(b)),
    bytes.subarray(60),
  ];
  const { got } = await receive(pieces, { bringsUpdate: (head) => head[0] === 4 });
  assert.deepEqual([got.frames, got.bytes, got.updates], [4, 70_203, 2]);
});

test("a close is the error that is told, and pings are no frames", async () => {
  const reason = Buffer.concat([Buffer.of(0x88, 4, 4007 >> 8, 4007 & 255), Buffer.from("no")]);
  const client = await receive([HTTP, frame(2, 9), reason], { bringsUpdate: () => false });
  assert.equal(client.got.frames, 0);
  assert.match(String(client.error), /closed 4007 no/);
});

test("payloads are handed over whole while someone wants them", async () => {
  const payloads = [];
  const onFrame = (payload, client) => {
    payloads.push(payload.length);
    client.onFrame = null;
  };
  const bytes = frame(300);
  await receive([HTTP, bytes.subarray(0, 100), bytes.subarray(100), frame(5)], { bringsUpdate: () => true, onFrame });
  assert.deepEqual(payloads, [300]);
});

test("an answer that is no upgrade is an error", async () => {
  const client = await receive([Buffer.from("HTTP/1.1 503 Busy\r\n\r\n")], { bringsUpdate: () => false });
  assert.match(String(client.error), /503 Busy/);
});

test("the longest time without an update counts to the end", async () => {
  const clock = { now: 0 };
  const { got } = await receive([HTTP, frame(1)], { bringsUpdate: () => true, clock });
  got.begin();
  clock.now = 40;
  got.updated();
  clock.now = 100;
  got.end();
  assert.deepEqual([got.updates, got.longestGap], [1, 60]);
});
