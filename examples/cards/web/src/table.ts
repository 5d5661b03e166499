// The table: the others with the backs of their cards, the two piles, and what happened last.

import { SUITS, type Suit, type Table } from "./shared.gen.js";
import { drawFace, nameOfCard, SUIT_NAMES, suitOf } from "./cards.js";
import { find, icon, keep, make, setAttribute, setText } from "./dom.js";
import { winsOf, type Player } from "./players.js";

/** More backs than this are told by their number alone. */
const MOST_BACKS = 10;
/** Longer names are written smaller. "Guest" and the end of an id is no longer. */
const LONG_NAME = 10;

export interface TableActions {
  readonly draw: () => void;
  readonly nameSuit: (suit: Suit) => void;
}

const others = find("#others");
const piles = find("#piles");
const stock = find("#stock");
const topCard = find("#top-card");
const match = find("#match");
const suits = find("#suits");

export function setUpTable({ draw, nameSuit }: TableActions): void {
  stock.addEventListener("click", draw);
  suits.setAttribute("aria-label", "Name a suit");
  suits.append(make("p", "", "Name a suit"));
  for (const suit of SUITS) {
    const button = make("button", "suit");
    button.type = "button";
    button.dataset["suit"] = suit;
    button.append(icon(`suit-${suit}`), make("span", "", SUIT_NAMES[suit]));
    button.addEventListener("click", () => nameSuit(suit));
    suits.append(button);
  }
}

export function showOthers(players: readonly Player[]): void {
  const shown = players.filter(({ isMine }) => !isMine);
  const rows = keep(
    others,
    shown.map(({ place }) => String(place)),
    makeSeat,
  );
  shown.forEach((player, index) => showSeat(rows[index]!, player));
}

function makeSeat(): HTMLLIElement {
  const seat = make("li", "seat");
  const face = make("span", "face");
  face.append(make("span", "initial"), icon("bot"));
  const who = make("div", "who");
  who.append(make("span", "name"), make("span", "note"));
  const clock = make("div", "clock");
  clock.append(make("i"));
  const cards = make("div", "backs");
  seat.append(face, who, cards, clock);
  return seat;
}

function showSeat(seat: HTMLElement, player: Player): void {
  const { name, cards, isOnTurn, isBot, isAway } = player;
  seat.classList.toggle("on-turn", isOnTurn);
  seat.classList.toggle("is-bot", isBot);
  seat.classList.toggle("is-away", isAway);
  setAttribute(seat, "aria-current", isOnTurn ? "true" : null);
  setText(seat.querySelector(".initial")!, [...name][0]?.toUpperCase() ?? "");
  const label = seat.querySelector(".name")!;
  setText(label, name);
  label.classList.toggle("long", name.length > LONG_NAME);
  setText(seat.querySelector(".note")!, noteOn(player));
  const backs = seat.querySelector<HTMLElement>(".backs")!;
  const count = Math.min(cards, MOST_BACKS);
  const keys = [...Array(count).keys()].map(String);
  keep(backs, [...keys, "count"], (key) =>
    key === "count" ? make("b", "count") : make("span", "back"),
  );
  const number = backs.querySelector(".count")!;
  setText(number, String(cards));
  setAttribute(number, "aria-label", cards === 1 ? "1 card" : `${cards} cards`);
}

function noteOn(player: Player): string {
  const { isBot, isAway, standsInFor } = player;
  const notes = [];
  if (isBot) notes.push(standsInFor === "" ? "bot" : `bot, for ${standsInFor}`);
  else if (isAway) notes.push("away");
  notes.push(winsOf(player));
  return notes.filter((note) => note !== "").join(" · ");
}

/** The two piles. `mustDraw`: nothing that this player holds fits. */
export function showPiles(table: Table, mustDraw: boolean): void {
  const { phase, top, suit, naming, stock: left } = table;
  piles.hidden = phase !== "playing";
  if (piles.hidden) return;
  if (topCard.dataset["card"] !== top) {
    drawFace(topCard, top);
    setAttribute(topCard, "role", "img");
    setAttribute(topCard, "aria-label", `On top: ${nameOfCard(top)}`);
    topCard.classList.remove("played");
    void topCard.offsetWidth; // so that the animation starts again
    topCard.classList.add("played");
  }
  stock.classList.toggle("wanted", mustDraw);
  setText(find("#stock-label"), left > 0 ? `Draw · ${left}` : "Draw");
  const isNamed = suit !== suitOf(top);
  match.classList.toggle("named", isNamed || naming);
  const key = naming ? "naming" : suit;
  if (match.dataset["shown"] === key) return;
  match.dataset["shown"] = key;
  match.dataset["suit"] = naming ? "" : suit;
  if (naming) match.replaceChildren("which suit?");
  else match.replaceChildren(icon(`suit-${suit}`), SUIT_NAMES[suit]);
}

/** Ask this player for a suit, or do not. */
export function askSuit(asked: boolean): void {
  if (suits.hidden === !asked) return;
  suits.hidden = !asked;
  piles.style.visibility = asked ? "hidden" : "";
  if (asked) suits.querySelector("button")!.focus();
}

/** What happened last, as a sentence. */
export function newsOf(table: Table, players: readonly Player[]): string {
  const { last, suit } = table;
  if (last === null) return "";
  const player = players.find(({ place }) => place === last.place);
  const who =
    player === undefined ? "Somebody" : player.isMine ? "You" : player.name;
  const late = last.late ? " (time was up)" : "";
  switch (last.what) {
    case "dealt":
      return `The cards are dealt. ${who} ${who === "You" ? "begin" : "begins"}.`;
    case "played":
      return `${who} played the ${nameOfCard(last.card)}${late}.`;
    case "named":
      return `${who} played the ${nameOfCard(last.card)} and named ${SUIT_NAMES[suit]}${late}.`;
    case "drew":
      return `${who} drew a card${late}.`;
    case "passed":
      return `There was no card left for ${who === "You" ? "you" : who}${late}.`;
    case "won":
      return `${who} played the ${nameOfCard(last.card)}, and won.`;
  }
}
