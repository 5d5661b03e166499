// The inspector: which view is shown, and asking for what it shows twice a second while somebody looks.

import { readAddress } from "./choices.js";
import { setText } from "./dom.js";
import { RoomView } from "./room.js";
import { RoomsView } from "./rooms.js";

const EVERY_MS = 500;
const PATIENCE_MS = 8_000;

const place = document.querySelector("#view");
const crumb = document.querySelector("#crumb");
const live = document.querySelector("#live");
const problem = document.querySelector("#problem");

let view = null;
let timer = 0;
let asking = null;

/** `#/` is the list, `#/rooms/{project}/{id}` a room, and what was chosen in it. */
function enter() {
  const { project, id, choices } = readAddress();
  view =
    id === undefined
      ? new RoomsView()
      : new RoomView(project, id, ask, choices);
  setText(crumb, id === undefined ? "" : `${project} / ${id}`);
  document.title = `${id === undefined ? "Rooms" : id} · Playhall inspector`;
  place.replaceChildren(view.root);
  void ask();
}

/** Ask for what the view shows, draw it, and do so again after a while. Asking anew ends asking before. */
async function ask() {
  clearTimeout(timer);
  asking?.abort();
  if (document.hidden) {
    say("paused", "");
    return;
  }
  const mine = new AbortController();
  const shown = view;
  asking = mine;
  try {
    const signal = AbortSignal.any([
      mine.signal,
      AbortSignal.timeout(PATIENCE_MS),
    ]);
    const answer = await fetch(shown.url(), { signal });
    const told = await answer.json();
    if (mine.signal.aborted) return;
    if (!answer.ok) throw new Error(`${told.detail} (${told.code})`);
    shown.draw(told);
    say("live", "");
  } catch (error) {
    if (mine.signal.aborted) return;
    say(
      "waiting",
      error instanceof TypeError
        ? "The router does not answer."
        : error.message,
    );
  }
  timer = setTimeout(ask, EVERY_MS);
}

function say(state, text) {
  live.dataset.state = state;
  setText(live, state);
  setText(problem, text);
  problem.hidden = text === "";
  place.classList.toggle("stale", text !== "");
}

addEventListener("hashchange", enter);
document.addEventListener("visibilitychange", () => void ask());
enter();
