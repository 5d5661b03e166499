// How clients talk to Colyseus: `raw` for cheap ones, `probe` with its own SDK.

import http from "node:http";
import { encode } from "@colyseus/schema";
import { Client } from "@colyseus/sdk";
import { Packr } from "msgpackr";
import { RawWs, clientFrame } from "../lib/rawws.mjs";
import { DIRS } from "../lib/world.mjs";

const JOIN_ROOM = 10;
const JOIN_ERROR = 11;
const ROOM_DATA = 13;
const ROOM_STATE = 14;
const ROOM_STATE_PATCH = 15;
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
const packr = new Packr({ useRecords: false });

/** What `room.send("move", {dx, dy})` sends. */
function moveBytes(move) {
  const head = Buffer.alloc(64);
  const at = { offset: 1 };
  head[0] = ROOM_DATA;
  encode.string(head, "move", at);
  return Buffer.concat([head.subarray(0, at.offset), packr.pack(move)]);
}

export const inputFrames = DIRS.map((direction) => clientFrame(moveBytes(direction)));

async function matchmake(port, method, name) {
  const headers = { "content-type": "application/json", "content-length": 2 };
  const path = `/matchmake/${method}/${name}`;
  const answer = await new Promise((resolve, reject) => {
    const request = http.request({ agent, host: "127.0.0.1", port, method: "POST", path, headers }, resolve);
    request.on("error", reject);
    request.end("{}");
  });
  let text = "";
  for await (const piece of answer) text += piece;
  const seat = JSON.parse(text);
  if (seat.error || answer.statusCode !== 200) throw new Error(text);
  return seat;
}

function take(port, clock, seat) {
  const path = `/${seat.processId}/${seat.roomId}?sessionId=${seat.sessionId}`;
  const bringsUpdate = (head) => head[0] === ROOM_STATE_PATCH;
  return new Promise((resolve, reject) => {
    const onFrame = (payload, client) => {
      if (payload[0] === JOIN_ROOM) client.send(clientFrame(Buffer.of(JOIN_ROOM)));
      else if (payload[0] === JOIN_ERROR) reject(new Error("join error " + payload.toString()));
      else if (payload[0] === ROOM_STATE) {
        client.onFrame = null;
        resolve(client);
      }
    };
    const onClose = (error) => reject(error ?? new Error("closed before it had joined"));
    new RawWs({ port, path, clock, bringsUpdate, onFrame, onClose });
  });
}

const roomIds = new Map();

/** `room`: null for the one arena, else which of the small rooms. */
export async function raw({ port, room, clock }) {
  if (room === null) return take(port, clock, await matchmake(port, "joinOrCreate", "arena"));
  const known = roomIds.get(room);
  const seat =
    known === undefined ? await matchmake(port, "create", "arena") : await matchmake(port, "joinById", known);
  roomIds.set(room, seat.roomId);
  return take(port, clock, seat);
}

/** In the workload of small rooms, it takes a seat that is free. */
export async function probe({ port, onSeq, onLost }) {
  const room = await new Client(`ws://127.0.0.1:${port}`).joinOrCreate("arena");
  room.onStateChange((state) => {
    const me = state.players?.get(room.sessionId);
    if (me !== undefined) onSeq(me.seq);
  });
  room.onError((code, message) => onLost(`error ${code} ${message}`));
  room.onLeave((code) => onLost(`left ${code}`));
  return {
    send: ({ dx, dy }, seq) => room.send("move", { dx, dy, seq }),
    seen: () => [...(room.state.players?.values() ?? []), ...(room.state.npcs?.values() ?? [])],
    me: () => room.state.players.get(room.sessionId),
  };
}
