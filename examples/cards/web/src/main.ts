// Wild Eights. What is true is in the room (room.py); this page shows it, and asks.

import {
  CloseCode,
  isBot,
  PlayhallError,
  reloadForNewBuild,
  RoomClient,
  type PresenceEntry,
} from "@playhall/client";
import { showClock } from "./clock.js";
import { fits } from "./cards.js";
import { find, setText } from "./dom.js";
import { setUpHand, showHand } from "./hand.js";
import { hideLobby, setUpLobby, showLobby } from "./lobby.js";
import { announce, clearNotice, notice } from "./notices.js";
import {
  hideOverlay,
  showClosed,
  showLost,
  showNoAnswer,
  showWaking,
} from "./overlay.js";
import {
  editName,
  offerLink,
  showName,
  showPlayers,
  type Listed,
} from "./panel.js";
import {
  nameOf,
  playersOf,
  winsOf,
  type Player,
  type Room,
} from "./players.js";
import { schema } from "./shared.gen.js";
import { askSuit, newsOf, setUpTable, showOthers, showPiles } from "./table.js";

/** After this long without a word from a server, the page says that it has none. */
const SAY_NO_ANSWER_MS = 5_000;
/** For who watches: the room gives seats away in this way alone (seating.py). */
const HOW_TO_GET_A_SEAT =
  "You get a seat when a player leaves or a seat is added.";
const CLOCK_EVERY_MS = 250;
/** The code of a call that the room refused, in its own words. */
const REJECTED = 422;

const asked = new URLSearchParams(location.search).get("room") ?? "";
const roomId = /^[A-Za-z0-9_-]{1,64}$/.test(asked) ? asked : "main";
const room: Room = new RoomClient({
  url: location.origin,
  project: "cards",
  room: roomId,
  schema,
});

const noAnswer = setTimeout(showNoAnswer, SAY_NO_ANSWER_MS);
let wasIn = false;
let saidNews = "";
let phase = "";
let isWatching = false;

/** Make a call. What it changed is shown by the update that comes with its reply; a refusal is a notice. */
function ask(call: () => Promise<unknown>): void {
  if (room.status !== "open") return;
  clearNotice();
  const before = phase;
  call().catch((error: unknown) => {
    if (!(error instanceof PlayhallError)) throw error;
    if (phase !== before) return;
    notice(
      error.code === REJECTED
        ? error.message
        : "The room did not answer. Try again.",
    );
  });
}

function show(): void {
  const table = room.state;
  const players = playersOf(room);
  const me = players.find(({ isMine }) => isMine);
  const isOnTurn = me?.isOnTurn ?? false;
  const mustDraw =
    isOnTurn &&
    !table.naming &&
    !room.private.cards.some((card) => fits(card, table));
  if (table.phase !== phase) clearNotice();
  phase = table.phase;
  const view = find(".table").classList;
  view.toggle("is-bare", table.top === "");
  view.toggle("is-watching", me === undefined);
  showOthers(players);
  showPiles(table, mustDraw);
  askSuit(isOnTurn && table.naming);
  if (table.phase === "playing") hideLobby();
  else showLobby(players, table.winner);
  showHand(room.private, table, isOnTurn);
  showMe(me, mustDraw);
  showNews(players);
  showName(room.private.name);
  showPlayers(listed(players));
}

/** The line over the hand. */
function showMe(me: Player | undefined, mustDraw: boolean): void {
  const line = find("#me");
  line.classList.toggle("on-turn", me?.isOnTurn ?? false);
  const parts = me === undefined ? ["You watch"] : [me.name, winsOf(me)];
  setText(find("#me-name"), parts.filter((part) => part !== "").join(" · "));
  const { naming } = room.state;
  const todo = naming ? "Name a suit" : mustDraw ? "Draw a card" : "Your turn";
  setText(find("#me-turn"), me?.isOnTurn ? todo : "");
  setText(find("#me-hint"), me === undefined ? HOW_TO_GET_A_SEAT : "");
  if (isWatching && me !== undefined) notice("You have a seat now, and play.");
  isWatching = me === undefined;
}

function showNews(players: readonly Player[]): void {
  const news = newsOf(room.state, players);
  setText(find("#news"), room.state.phase === "playing" ? news : "");
  const isOnTurn = players.some((player) => player.isMine && player.isOnTurn);
  const said = isOnTurn ? `${news} It is your turn.` : news;
  if (said === saidNews) return;
  saidNews = said;
  announce(said);
}

/** Everyone who is here: this player, other people, bots. */
function listed(players: readonly Player[]): Listed[] {
  const rank = (player: string): number =>
    player === room.player ? 0 : isBot(player) ? 2 : 1;
  return [...room.presence]
    .map((entry) => ({
      id: entry.player,
      name: nameOf(room, entry.player),
      note: noteOn(entry, players),
    }))
    .sort((a, b) => rank(a.id) - rank(b.id) || a.name.localeCompare(b.name));
}

function noteOn(
  { player, name, connected }: PresenceEntry,
  players: readonly Player[],
): string {
  if (isBot(player)) return "bot";
  if (!connected) return "away";
  if (!players.some(({ id }) => id === player)) return "watching";
  return player === room.player && name !== "" ? "you" : "";
}

/** In the room, for the first time or again. */
function entered(): void {
  clearTimeout(noAnswer);
  wasIn = true;
  hideOverlay();
  show();
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

setUpTable({
  draw: () => ask(() => room.call("draw")),
  nameSuit: (suit) => ask(() => room.call("name_suit", { suit })),
});
setUpHand(
  (card) => ask(() => room.call("play", { card })),
  () => {
    if (room.status !== "open") return;
    room.private.sort_by = room.private.sort_by === "suit" ? "rank" : "suit";
    show();
  },
);
setUpLobby({
  setReady: (ready) => {
    if (room.status !== "open") return;
    room.presence.setStatus({ ready });
    show();
  },
  resize: (seats) => ask(() => room.call("resize", { seats })),
});
editName((name) => {
  if (room.status === "open" && room.private.name !== name)
    room.private.name = name;
});
offerLink(roomId, announce);

room.on("waking", waking);
room.on("disconnected", showLost);
room.on("restored", entered);
room.on("wake", hideOverlay);
room.on("closed", ended);
room.on("tick", show);
room.ready.then(
  () => {
    entered();
    setInterval(() => showClock(room), CLOCK_EVERY_MS);
  },
  // `closed` says why.
  () => undefined,
);
