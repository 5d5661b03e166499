// Beside the table: this player's name, who is here, and the link to share.

import { NAME_LENGTH } from "./shared.gen.js";
import { find, keep, make, setText } from "./dom.js";

const COPIED_MS = 2_000;

export interface Listed {
  readonly id: string;
  readonly name: string;
  readonly note: string;
}

const list = find("#players");
const input = find<HTMLInputElement>("#name");

export function showPlayers(players: readonly Listed[]): void {
  const rows = keep(
    list,
    players.map(({ id }) => id),
    () => {
      const row = make("li");
      row.append(make("span", "name"), make("span", "note"));
      return row;
    },
  );
  players.forEach(({ name, note }, index) => {
    setText(rows[index]!.children[0]!, name);
    setText(rows[index]!.children[1]!, note);
  });
}

/** Let the player change the name. The room keeps it, and would cut what is longer than the field allows. */
export function editName(changed: (name: string) => void): void {
  const save = (): void => {
    input.value = input.value.trim();
    changed(input.value);
  };
  input.maxLength = NAME_LENGTH;
  setText(find("#name-hint"), `At most ${NAME_LENGTH} characters.`);
  find<HTMLFormElement>("#name-form").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
    input.blur();
  });
  input.addEventListener("change", save);
}

/** Show the name that the room has, unless the player is just writing another. */
export function showName(name: string): void {
  if (document.activeElement !== input && input.value !== name)
    input.value = name;
}

/** The button that gives out the room's address. */
export function offerLink(
  room: string,
  announce: (text: string) => void,
): void {
  setText(find("#room-name"), room);
  const button = find("#share");
  const label = button.textContent!;
  const address = new URL(location.pathname, location.href);
  address.searchParams.set("room", room);
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(address.href).then(
      () => {
        button.textContent = "Copied";
        announce("The link was copied.");
        setTimeout(() => (button.textContent = label), COPIED_MS);
      },
      // Not allowed to, or no secure page: the player can copy it by hand.
      () => prompt("Copy this link:", address.href),
    );
  });
}
