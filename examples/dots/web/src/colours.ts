// What colour a player is: from the id, so that everyone sees the same one without it being sent.

/** A colour that shows well on the dark board, the same for a player on every screen. */
export function colourOf(player: string): string {
  let hash = 0x811c9dc5;
  for (const character of player)
    hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193);
  // Ids that differ in their last character only must not end up next to each other.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = (hash ^ (hash >>> 13)) >>> 0;
  return `hsl(${Math.round((hash / 2 ** 32) * 360)} 88% 70%)`;
}
