// Who sits where, and what they are called.

import { isBot, type RoomClient } from "@playhall/client";
import { Seat, type Hand, type Table } from "./shared.gen.js";

export type Room = RoomClient<
  Table,
  Hand,
  typeof import("./shared.gen.js").schema.calls
>;

/** A seat as it is shown. */
export interface Player {
  readonly id: string;
  readonly name: string;
  readonly place: number;
  readonly cards: number;
  readonly wins: number;
  readonly isBot: boolean;
  /** The name of whom a bot keeps the seat for; empty if for nobody. */
  readonly standsInFor: string;
  readonly isMine: boolean;
  readonly isAway: boolean;
  readonly isReady: boolean;
  readonly isOnTurn: boolean;
}

/** The parts of a status that this game knows. It is any JSON: a player's client may send what it likes. */
function readStatus(status: unknown): { ready: boolean; for: string } {
  const said = (
    typeof status === "object" && status !== null ? status : {}
  ) as Record<string, unknown>;
  return {
    ready: said["ready"] === true,
    for: typeof said["for"] === "string" ? said["for"] : "",
  };
}

export function nameOf(room: Room, player: string): string {
  const name = room.presence.get(player)?.name ?? "";
  if (name !== "") return name;
  return player === room.player ? "You" : `Guest ${player.slice(-4)}`;
}

/** How often a player has won, in words; empty for never. */
export function winsOf({ wins }: Player): string {
  if (wins === 0) return "";
  return wins === 1 ? "1 win" : `${wins} wins`;
}

/** Those at the table: this player first, if it plays, then the others in the order of their turns. */
export function playersOf(room: Room): Player[] {
  const seats = room.entities.all(Seat).sort((a, b) => a.place - b.place);
  const mine = seats.findIndex(({ owner }) => owner === room.player);
  const around = [
    ...seats.slice(Math.max(mine, 0)),
    ...seats.slice(0, Math.max(mine, 0)),
  ];
  const { phase, turn } = room.state;
  return around.map(({ owner, place, cards, wins }) => {
    const id = owner ?? "";
    const entry = room.presence.get(id);
    const status = readStatus(entry?.status);
    return {
      id,
      place,
      cards,
      wins,
      name: nameOf(room, id),
      isBot: isBot(id),
      standsInFor: isBot(id) ? status.for : "",
      isMine: id === room.player,
      isAway: entry === undefined || !entry.connected,
      isReady: status.ready,
      isOnTurn: phase === "playing" && place === turn,
    };
  });
}
