// The list of rooms that run.

import { el, reconcile, setText } from "./dom.js";
import { count, duration, plural } from "./text.js";

export class RoomsView {
  constructor() {
    this.title = el("h1", {}, "Rooms");
    this.list = el("ul", { className: "cards", id: "rooms" });
    this.empty = el(
      "p",
      { className: "empty", hidden: true },
      "No room runs. Open the game, and one will.",
    );
    this.silent = el("p", { className: "note", hidden: true });
    this.root = el(
      "section",
      {},
      this.title,
      this.silent,
      this.empty,
      this.list,
    );
  }

  url() {
    return "rooms";
  }

  draw({ rooms, silent }) {
    setText(this.title, plural(rooms.length, "room"));
    this.empty.hidden = rooms.length > 0;
    this.silent.hidden = silent.length === 0;
    setText(
      this.silent,
      `${plural(silent.length, "room host process", "room host processes")} did not answer.`,
    );
    reconcile(this.list, rooms, (room) => room.uid, makeCard, drawCard);
  }
}

function makeCard(room) {
  const href = `#/rooms/${encodeURIComponent(room.project)}/${encodeURIComponent(room.id)}`;
  const part = (name) => el("span", { className: name });
  const load = el("div", { className: "meter" }, el("i"));
  return el(
    "li",
    {},
    el(
      "a",
      { href, className: "card" },
      el(
        "div",
        { className: "row" },
        el("strong", {}, room.id),
        part("status"),
      ),
      el(
        "div",
        { className: "soft" },
        `${room.project} · ${room.type} · ${room.room_class}`,
      ),
      el(
        "div",
        { className: "figures" },
        part("people"),
        part("entities"),
        part("tick"),
        part("version"),
      ),
      load,
      el("div", { className: "soft load" }),
    ),
  );
}

function drawCard(card, room) {
  const put = (name, text) => setText(card.querySelector(`.${name}`), text);
  put("status", room.status);
  card.querySelector(".status").dataset.status = room.status;
  put("people", plural(room.connection_count, "connection"));
  put("entities", plural(room.entity_count, "entity", "entities"));
  put("tick", `tick ${count(room.tick)} at ${room.tick_rate}/s`);
  put("version", `version ${count(room.version)}`);
  const budget = 1_000_000 / room.tick_rate;
  const last = room.last_tick;
  put(
    "load",
    last === null
      ? "no ticks yet"
      : `p95 ${duration(last.p95_us)} of ${duration(budget)}`,
  );
  const share = last === null ? 0 : Math.min(1, last.p95_us / budget);
  const bar = card.querySelector(".meter i");
  bar.style.width = `${(share * 100).toFixed(1)}%`;
  bar.classList.toggle("high", share > 0.7);
}
