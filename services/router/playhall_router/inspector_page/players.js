// Players by name: their ids are 32 digits, which nobody tells apart.

import { setText } from "./dom.js";
import { show, words } from "./text.js";

// Longer ids are shown by their beginning.
const WHOLE = 16;
const SHORT = 12;

/** The names players go by, by player: of those present, and of the room's bots. */
export const namesOf = (room) =>
  new Map(
    [...room.presence, ...room.bots]
      .filter((entry) => entry.name !== "")
      .map((entry) => [entry.player, entry.name]),
  );

const shortId = (player) =>
  player.length <= WHOLE ? player : `${player.slice(0, SHORT)}…`;

/** A player's name and id, or the id alone. */
export const nameFor = (names, player) =>
  names.has(player)
    ? `${names.get(player)} · ${shortId(player)}`
    : shortId(player);

/** Say in an element which player it is; the whole id is its title. */
export function setPlayer(element, names, player) {
  setText(element, nameFor(names, player));
  if (element.title !== player) element.title = player;
}

/** How to show values of fields: one that is a player's id has the name beside it. */
export const withNames =
  (names, asText = show) =>
  (value) =>
    named(names, value)
      ? `${asText(value)} (${names.get(value)})`
      : asText(value);

/** The same for a text. */
export const wordsWithNames = (names) => withNames(names, words);

const named = (names, value) => typeof value === "string" && names.has(value);
