// How clients talk to Playhall: `raw` for cheap ones, `probe` with the browser client.

import crypto from "node:crypto";
import { WebSocket } from "ws";
import {
  FrameType,
  Reader,
  RoomClient,
  encodeHello,
  encodeMessage,
  encodePing,
  encodeResume,
  full,
  q16,
} from "../build/client.mjs";
import { RawWs, clientFrame } from "../lib/rawws.mjs";
import { DIRS } from "../lib/world.mjs";

// Node 20 has none. An attempt that is given up throws nothing in a browser.
globalThis.WebSocket = class extends WebSocket {
  constructor(address) {
    super(address);
    this.on("error", () => {});
  }
};
const PROJECT = "peers";
const PING_MS = 2_000;
const LAST_PART = 1;
const gameOf = (workload) => (workload.endsWith("_q16") ? q16 : full);
const roomName = (room) => (room === null ? "arena" : `small-${room}`);

export const inputFrames = DIRS.map(({ dx, dy }) => clientFrame(encodeMessage({ type: "move", dx, dy }, 0, false)));

let endpoints = null;
let dialled = 0;

/** The next of the addresses where clients connect, in turns. */
async function nextAddress(port) {
  endpoints ??= fetch(`http://127.0.0.1:${port}/v1/projects/${PROJECT}/endpoints`).then((answer) => answer.json());
  const { websocket } = await endpoints;
  return new URL(websocket[dialled++ % websocket.length]);
}

/** An update counts with its last part, and only where the version has moved on. */
function bringsUpdate(head, client) {
  if (head[0] !== FrameType.UPDATE) return false;
  const reader = new Reader(head.subarray(2));
  client.moved = (client.moved ?? 0) + reader.varint32();
  if ((head[1] & LAST_PART) === 0) return false;
  const hasMoved = client.moved > 0;
  client.moved = 0;
  return hasMoved;
}

/** `room`: null for the one arena, else which of the small rooms. Resolves once the first state is in. */
export async function raw({ port, workload, room, clock }) {
  const { port: websocketPort, pathname: path } = await nextAddress(port);
  const hello = encodeHello({
    project: PROJECT,
    room: roomName(room),
    roomType: workload,
    token: "",
    schemaHash: gameOf(workload).schema.hash,
    session: crypto.randomBytes(16),
    attempt: 0,
    sdk: "peers/1",
  });
  return new Promise((resolve, reject) => {
    const onOpen = (client) => {
      client.send(clientFrame(hello));
      client.send(clientFrame(encodeResume(0, { generation: 0, version: 0, ids: [] })));
    };
    const onFrame = (payload, client) => {
      if (payload[0] !== FrameType.UPDATE || (payload[1] & LAST_PART) === 0) return;
      client.onFrame = null;
      resolve(client);
    };
    const onClose = (error) => {
      clearInterval(pinging);
      reject(error ?? new Error("closed before it had joined"));
    };
    const client = new RawWs({ port: websocketPort, path, clock, bringsUpdate, onOpen, onFrame, onClose });
    const pinging = setInterval(() => client.isOpen && client.send(clientFrame(encodePing(1))), PING_MS);
  });
}

export async function probe({ port, workload, room, onSeq, onLost }) {
  const { schema, Player, Npc } = gameOf(workload);
  const url = `http://127.0.0.1:${port}`;
  const client = new RoomClient({ url, project: PROJECT, room: roomName(room), type: workload, schema });
  await client.ready;
  const me = () => client.entities.mine(Player)[0];
  client.onTick(() => onSeq(me().seq));
  client.on("disconnected", (code) => onLost(`disconnected ${code}`));
  client.on("closed", (error) => onLost(String(error)));
  return {
    send: ({ dx, dy }, seq) => client.send({ type: "move", dx, dy, seq }),
    seen: () => [...client.entities.all(Player), ...client.entities.all(Npc)],
    me,
  };
}
