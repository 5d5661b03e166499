// What must compile, and what must not: `npm run check` reads it, and nothing runs it.

import { connect, type Json, type PresenceEntry, type RoomClient } from "../src/index.js";
import { Board, Dot, Mine, Pen, schema, type Buy } from "./server.js";

export async function uses(): Promise<void> {
  const room = await connect({ url: "http://127.0.0.1:7350", project: "dots", room: "main", schema });

  const coins: number = await room.call("buy", { item: "ring" }, { timeoutMs: 2_000 });
  const ask: Buy = { item: "halo", count: coins };
  const asked: Promise<number> = room.call("buy", ask);
  const waited: null = await room.call("wait");
  await room.call("wait", { seconds: 1 });
  await room.call("wait", undefined, { timeoutMs: 1 });
  // @ts-expect-error a required field is missing
  void room.call("buy", {});
  // @ts-expect-error the arguments are missing
  void room.call("buy");
  // @ts-expect-error of the wrong type
  void room.call("buy", { item: "sword" });
  // @ts-expect-error there is no such field
  void room.call("wait", { minutes: 1 });
  // @ts-expect-error there is no such call
  void room.call("sell", { item: "ring" });
  // @ts-expect-error the reply is a number
  const text: string = await asked;

  const [pen] = room.entities.mine(Pen);
  if (pen !== undefined) {
    pen.x = 3;
    pen.style = { width: 2 };
    pen.patch("ink", 0, Uint8Array.of(1));
    // @ts-expect-error it is the room's
    pen.colour = 1;
    // @ts-expect-error of the wrong type
    pen.label = 7;
    // @ts-expect-error owners are the room's to change
    pen.owner = "bob";
  }
  room.private.volume = 5;
  // @ts-expect-error it is the room's
  room.private.moves = 5;
  // @ts-expect-error shared state is the room's
  room.state.moves = 5;
  const state: Board = room.state;
  const own: Mine = room.private;

  room.presence.setStatus({ typing: true });
  room.presence.onChange((entry: PresenceEntry, changed: readonly string[]) => void [entry.status, changed]);
  // @ts-expect-error statuses are set by setStatus
  room.presence.get("ann")!.status = 1;

  room.entities.onCorrect(Pen, (corrected, fields) => void [corrected.ink, fields]);
  room.entities.onOwner(Dot, (dot) => void dot.x);
  room.on("message", (message: Json | Uint8Array, unreliable: boolean) => void [message, unreliable]);
  room.onTick((tick: number) => void tick);
  // @ts-expect-error there is no such event
  room.on("nothing", () => undefined);

  anyRoom(room);
  void [waited, text, state, own];
}

/** A function that takes the client of any game. */
function anyRoom(room: RoomClient): void {
  room.presence.setStatus("here");
  void room.call("whatever", { the: "room knows" });
}
