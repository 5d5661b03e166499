// Joins the room of the address, and gives the page's tests what they play with.

import { connect, isBot, PlayhallError } from "@playhall/client";
import { Board, Mine, Pen, schema } from "./shared.gen.js";

const query = new URLSearchParams(location.search);
const rttMs = Number(query.get("rtt") ?? 0);
const room = await connect({
  url: location.origin,
  project: "desk",
  room: query.get("room") ?? "main",
  schema,
  ...(rttMs > 0 ? { simulate: { rttMs } } : {}),
});
const told: unknown[] = [];
room.entities.onChange(Pen, (pen, fields) => told.push(["change", pen.id, ...fields]));
room.entities.onCorrect(Pen, (pen, fields) => told.push(["correct", pen.id, ...fields]));
room.entities.onOwner(Pen, (pen) => told.push(["owner", pen.id, pen.owner]));
room.on("message", (message, unreliable) => told.push(["message", message, unreliable]));
Object.assign(window, { room, told, Board, Mine, Pen, PlayhallError, isBot });
