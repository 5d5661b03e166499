// The list of rooms that run.

import { el, reconcile, setText } from "./dom.js";
import { count, duration, plural, slowness } from "./text.js";

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
    this.projects = [];
    this.name = el("input", {
      id: "room-id",
      autocomplete: "off",
      required: true,
      oninput: () => this.name.setCustomValidity(""),
    });
    const open = el(
      "form",
      { className: "open", onsubmit: (event) => this.open(event) },
      el("label", {}, el("span", {}, "Open a room by its id"), this.name),
      el("button", { type: "submit" }, "Open"),
    );
    const sleeping =
      "Only rooms that run are listed. Rooms that sleep are shown when you open them by name.";
    this.root = el(
      "section",
      {},
      this.title,
      this.silent,
      this.empty,
      this.list,
      el("p", { className: "note" }, sleeping),
      open,
    );
  }

  /** Go to the room that was typed: `id`, or `project/id` where there is more than one project. */
  open(event) {
    event.preventDefault();
    const typed = this.name.value.trim().split("/");
    const parts =
      typed.length === 1 && this.projects.length === 1
        ? [this.projects[0], typed[0]]
        : typed;
    if (parts.length === 2 && parts.every((part) => part !== "")) {
      location.hash = `#/rooms/${parts.map(encodeURIComponent).join("/")}`;
      return;
    }
    this.name.setCustomValidity("Write it as project/id.");
    this.name.reportValidity();
  }

  url() {
    return "rooms";
  }

  draw({ rooms, projects, silent }) {
    this.projects = projects;
    this.name.placeholder = projects.length === 1 ? "id" : "project/id";
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
  const slow = slowness(room);
  card.querySelector(".load").classList.toggle("slow", slow !== "");
  put(
    "load",
    slow ||
      (last === null
        ? "no ticks yet"
        : `p95 ${duration(last.p95_us)} of ${duration(budget)}`),
  );
  const share = last === null ? 0 : Math.min(1, last.p95_us / budget);
  const bar = card.querySelector(".meter i");
  bar.style.width = `${(share * 100).toFixed(1)}%`;
  bar.classList.toggle("high", share > 0.7);
}
