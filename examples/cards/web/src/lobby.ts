// Between games: who is ready, for how many the table is laid, and who won.

import { MAX_SEATS, MIN_SEATS } from "./shared.gen.js";
import { find, icon, keep, make, setAttribute, setText } from "./dom.js";
import type { Player } from "./players.js";

export type Seats = 2 | 3 | 4;

export interface LobbyActions {
  readonly setReady: (ready: boolean) => void;
  readonly resize: (seats: Seats) => void;
}

const lobby = find("#lobby");
const readyList = find("#ready-list");
const ready = find<HTMLButtonElement>("#ready");
const size = find("#size");
const hint = find("#size .hint");

export function setUpLobby({ setReady, resize }: LobbyActions): void {
  ready.addEventListener("click", () =>
    setReady(ready.dataset["ready"] !== "true"),
  );
  for (let seats = MIN_SEATS; seats <= MAX_SEATS; seats++) {
    const button = make("button", "quiet small", String(seats));
    button.type = "button";
    button.dataset["seats"] = String(seats);
    button.setAttribute("aria-label", `${seats} seats`);
    button.addEventListener("click", () => resize(seats as Seats));
    size.insertBefore(button, hint);
  }
}

/** Show it; `winner` is the place of who won, null before the first game. */
export function showLobby(
  players: readonly Player[],
  winner: number | null,
): void {
  lobby.hidden = false;
  const me = players.find(({ isMine }) => isMine);
  const won = players.find(({ place }) => place === winner);
  lobby.classList.toggle("won", won !== undefined);
  setText(find("#lobby-title"), titleOf(won));
  setText(find("#lobby-text"), textOf(players, me));
  const rows = keep(
    readyList,
    players.map(({ id }) => id),
    makeRow,
  );
  players.forEach((player, index) => showRow(rows[index]!, player));
  ready.hidden = me === undefined;
  const isReady = me?.isReady ?? false;
  ready.dataset["ready"] = String(isReady);
  ready.classList.toggle("quiet", isReady);
  setText(ready, isReady ? "Cancel ready" : won ? "Play again" : "I am ready");
  size.hidden = me === undefined;
  for (const button of size.querySelectorAll("button"))
    setAttribute(
      button,
      "aria-pressed",
      String(button.dataset["seats"] === String(players.length)),
    );
}

export function hideLobby(): void {
  lobby.hidden = true;
}

function titleOf(won: Player | undefined): string {
  if (won === undefined) return "Ready?";
  return won.isMine ? "You win!" : `${won.name} wins!`;
}

function textOf(players: readonly Player[], me: Player | undefined): string {
  const waiting = players.filter(({ isReady }) => !isReady);
  if (me?.isReady === false)
    return waiting.length > 1
      ? "The cards are dealt when everyone is ready."
      : "Everyone waits for you.";
  return `Waiting for ${waiting.map(({ name }) => name).join(", ") || "the cards"}.`;
}

function makeRow(): HTMLLIElement {
  const row = make("li");
  row.append(
    make("span", "tick"),
    make("span", "name"),
    icon("bot"),
    make("span", "state"),
  );
  return row;
}

function showRow(row: HTMLElement, player: Player): void {
  row.classList.toggle("is-ready", player.isReady);
  row.classList.toggle("is-bot", player.isBot);
  setText(row.querySelector(".name")!, player.name);
  setText(
    row.querySelector(".state")!,
    player.isReady ? "ready" : player.isAway ? "away" : "not yet",
  );
}
