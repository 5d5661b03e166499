// Short notices: what the room refused, and why.

import { find, make, setText } from "./dom.js";

const SHOWN_MS = 4_000;
const MOST = 3;

const notices = find("#notices");

/** Say something for a few seconds. */
export function notice(text: string): void {
  const shown = make("p", "notice", text);
  notices.append(shown);
  while (notices.children.length > MOST) notices.firstElementChild!.remove();
  setTimeout(() => shown.remove(), SHOWN_MS);
}

/** For those who hear the page. */
export function announce(text: string): void {
  setText(find("#announcement"), text);
}
