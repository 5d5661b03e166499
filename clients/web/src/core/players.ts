/** Whether a player is a bot of the room. No token can make a person's id look like one. */
export function isBot(player: string): boolean {
  return player.startsWith("bot:");
}
