// The panel of the last messages and calls, newest first.

import { el, reconcile, setText } from "./dom.js";
import { nameFor, namesOf } from "./panels.js";
import { bytes, plural, show, timeOfDay, words } from "./text.js";

export class MessagesPanel {
  constructor() {
    this.paused = false;
    this.shown = [];
    this.generation = 0;
    this.names = new Map();
    this.pause = el(
      "button",
      { type: "button", id: "pause", onclick: () => this.toggle() },
      "Pause",
    );
    this.pause.setAttribute("aria-pressed", "false");
    const search = {
      id: "search",
      type: "search",
      placeholder: "player, kind or text",
      oninput: () => this.list(),
    };
    this.search = el("input", search);
    this.empty = el("p", { className: "empty" });
    this.lines = el("ol", { className: "lines", id: "messages" });
    const bar = el(
      "div",
      { className: "bar" },
      el("h2", {}, "Messages and calls"),
      this.pause,
    );
    const label = el(
      "label",
      { className: "search" },
      el("span", {}, "Search"),
      this.search,
    );
    this.root = el(
      "div",
      { className: "panel" },
      el("article", {}, bar, label, this.empty, this.lines),
    );
  }

  draw(room) {
    if (this.paused) return;
    this.shown = room.messages.toReversed();
    this.generation = room.generation;
    this.names = namesOf(room);
    this.list();
  }

  toggle() {
    this.paused = !this.paused;
    setText(this.pause, this.paused ? "Go on" : "Pause");
    this.pause.setAttribute("aria-pressed", String(this.paused));
  }

  list() {
    const wanted = this.search.value.toLowerCase();
    const found = this.shown.filter(
      (line) => wanted === "" || this.textOf(line).includes(wanted),
    );
    this.empty.hidden = found.length > 0;
    setText(
      this.empty,
      wanted === "" ? "Nothing was sent yet." : "Nothing fits.",
    );
    reconcile(
      this.lines,
      found,
      // Numbers begin anew in each generation.
      (line) => `${this.generation} ${line.number}`,
      makeLine,
      (row, line) => {
        const who = row.querySelector(".who");
        setText(who, this.whoOf(line));
        who.title = line.player;
      },
    );
  }

  whoOf(line) {
    if (line.player === "") return "the backend";
    const others =
      line.others > 0 ? ` and ${plural(line.others, "other")}` : "";
    return nameFor(this.names, line.player) + others;
  }

  textOf(line) {
    return `${this.whoOf(line)} ${line.kind} ${line.name ?? ""} ${bodyOf(line)}`.toLowerCase();
  }
}

function bodyOf(line) {
  return line.error === undefined
    ? show(line.content)
    : `${line.error.code} ${words(line.error.text)}`;
}

function makeLine(line) {
  const failed = line.error !== undefined;
  const badge = el("span", { className: `badge ${line.kind}` }, line.kind);
  const call = line.name ? `${line.name} ` : "";
  const number = line.call === undefined ? "" : `#${line.call} `;
  const arrow = el("span", {
    className: "arrow",
    title: line.direction === "in" ? "to the room" : "from the room",
  });
  arrow.textContent = line.direction === "in" ? "→" : "←";
  return el(
    "li",
    { className: `${line.direction}${failed ? " error" : ""}` },
    el("time", { title: `tick ${line.tick}` }, timeOfDay(line.at)),
    arrow,
    el("span", { className: "who" }),
    badge,
    el("span", { className: "size soft" }, bytes(line.bytes)),
    el("code", { className: "words" }, el("b", {}, call), number, bodyOf(line)),
  );
}
