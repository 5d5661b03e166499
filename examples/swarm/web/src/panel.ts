// The player's name, and the link to share.

import { announce, find, setText } from "./dom.js";
import { NAME_LENGTH } from "./shared.gen.js";

const NAME_KEY = "swarm.name";
const COPIED_MS = 2_000;

/** The name of the last visit; empty in a browser that keeps nothing. */
export function keptName(): string {
  try {
    return localStorage.getItem(NAME_KEY) ?? "";
  } catch {
    return "";
  }
}

function keepName(name: string): void {
  try {
    localStorage.setItem(NAME_KEY, name);
  } catch {
    // The name holds for this visit; the browser keeps nothing for the next.
  }
}

/** Let the player change the name. */
export function editName(changed: (name: string) => void): void {
  const input = find<HTMLInputElement>("#name");
  input.maxLength = NAME_LENGTH;
  let saved = (input.value = keptName());
  const save = (): void => {
    const name = (input.value = input.value.trim());
    if (name === saved) return;
    saved = name;
    keepName(name);
    changed(name);
  };
  find<HTMLFormElement>("#name-form").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
    find("#sea").focus();
  });
  input.addEventListener("change", save);
}

/** The button that gives out the room's address. */
export function offerLink(room: string): void {
  const button = find<HTMLButtonElement>("#share");
  const label = button.textContent!;
  const address = new URL(location.pathname, location.href);
  address.searchParams.set("room", room);
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(address.href).then(
      () => {
        setText(button, "Copied");
        announce("The link was copied.");
        setTimeout(() => setText(button, label), COPIED_MS);
      },
      // Not allowed to, or no secure page: the player can copy it by hand.
      () => prompt("Copy this link:", address.href),
    );
    find("#sea").focus();
  });
}
