// Short notices, one at a time: what the room refused, and why.

import { find, setText } from "./dom.js";

const SHOWN_MS = 4_000;

const shown = find("#notice");
let clearing: ReturnType<typeof setTimeout>;

/** Say something for a few seconds, in place of what happened last. */
export function notice(text: string): void {
  clearTimeout(clearing);
  setText(shown, text);
  clearing = setTimeout(clearNotice, SHOWN_MS);
}

export function clearNotice(): void {
  setText(shown, "");
}

/** For those who hear the page. */
export function announce(text: string): void {
  setText(find("#announcement"), text);
}
