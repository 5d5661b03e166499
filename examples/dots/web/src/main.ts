// Dots: everyone is a dot on one board. What is true is in the room (room.py); this page shows it, and asks.

import {
  CloseCode,
  reloadForNewBuild,
  RoomClient,
  type PlayhallError,
  type PresenceEntry,
} from "@playhall/client";
import { Board as Picture, type Shown } from "./board.js";
import { colourOf } from "./colours.js";
import {
  hideOverlay,
  showClosed,
  showLost,
  showNoAnswer,
  showWaking,
} from "./overlay.js";
import {
  editName,
  keptName,
  offerLink,
  showNumbers,
  showPlayers,
} from "./panel.js";
import { Dot, schema } from "./shared.gen.js";
import { steer } from "./steering.js";

/** How long a player's own dot is drawn where it was sent, before the room has said so. */
const TRUST_OWN_MS = 400;
/** After this long without a word from a server, the page says that it has none. */
const SAY_NO_ANSWER_MS = 5_000;

const asked = new URLSearchParams(location.search).get("room") ?? "";
const roomId = /^[A-Za-z0-9_-]{1,64}$/.test(asked) ? asked : "main";
const room = new RoomClient({
  url: location.origin,
  project: "dots",
  room: roomId,
  schema,
});

const noAnswer = setTimeout(showNoAnswer, SAY_NO_ANSWER_MS);
let wasIn = false;
let sentTo: { x: number; y: number; at: number } | null = null;

/** What a player is called here. */
function nameOf(player: string, entry: PresenceEntry | undefined): string {
  if (entry !== undefined && entry.name !== "") return entry.name;
  return player === room.player ? "You" : `Guest ${player.slice(-4)}`;
}

/** A dot as it is drawn. */
function shown(dot: Dot): Shown {
  const player = dot.owner ?? "";
  const entry = room.presence.get(player);
  const isMine = player === room.player;
  const own =
    isMine && sentTo !== null && performance.now() - sentTo.at < TRUST_OWN_MS
      ? sentTo
      : dot;
  return {
    id: dot.id,
    x: own.x,
    y: own.y,
    colour: colourOf(player),
    name: nameOf(player, entry),
    isMine,
    isAway: entry === undefined || !entry.connected,
  };
}

/** What stands behind a name in the list. */
function noteOn(entry: PresenceEntry): string {
  if (entry.player === room.player) return entry.name === "" ? "" : "you";
  return entry.connected ? "" : "away";
}

function showPanel(): void {
  const entries = [...room.presence].filter(({ connected }) => connected);
  showNumbers(entries.length, room.private.moves, room.state.moves);
  const listed = [...room.presence].map((entry) => ({
    isMine: entry.player === room.player,
    name: nameOf(entry.player, entry),
    colour: colourOf(entry.player),
    note: noteOn(entry),
  }));
  listed.sort(
    (a, b) =>
      Number(b.isMine) - Number(a.isMine) || a.name.localeCompare(b.name),
  );
  showPlayers(listed);
}

function sayName(name: string): void {
  if (room.status === "open") room.send({ type: "name", name });
}

/** In the room, for the first time or again: a room that restarted has forgotten the names. */
function entered(): void {
  clearTimeout(noAnswer);
  wasIn = true;
  hideOverlay();
  const name = keptName();
  if (name !== "" && room.presence.get(room.player)?.name !== name)
    sayName(name);
}

function waking(): void {
  clearTimeout(noAnswer);
  showWaking(wasIn);
}

function ended(error: PlayhallError): void {
  clearTimeout(noAnswer);
  if (error.code === CloseCode.SCHEMA_MISMATCH && reloadForNewBuild()) return;
  showClosed(error);
}

const canvas = document.querySelector<HTMLCanvasElement>("#board")!;
const picture = new Picture(canvas, () => room.entities.all(Dot).map(shown));
steer(canvas, {
  position: () => room.entities.mine(Dot)[0] ?? null,
  move(x, y, isTap) {
    if (room.status !== "open" || !room.send({ type: "move", x, y })) return;
    sentTo = { x, y, at: performance.now() };
    if (isTap) picture.ripple(x, y, colourOf(room.player));
  },
});
editName(sayName);
offerLink(roomId);

room.on("waking", waking);
room.on("disconnected", showLost);
room.on("restored", entered);
room.on("wake", hideOverlay);
room.on("closed", ended);
room.on("tick", showPanel);
room.ready.then(
  () => {
    document.documentElement.style.setProperty("--mine", colourOf(room.player));
    entered();
  },
  // `closed` says why.
  () => undefined,
);
