// The panel of the last messages, calls and writes, newest first. A call stands in one row with its reply.

import { el, reconcile, setText } from "./dom.js";
import { namesOf, setPlayer, nameFor, withNames } from "./players.js";
import { bytes, duration, plural, timeOfDay, words } from "./text.js";

const SORTS = {
  all: () => true,
  messages: ({ kind }) => kind === "message" || kind === "unreliable",
  calls: ({ kind }) =>
    kind === "call" || kind === "request" || kind === "reply",
  writes: ({ kind }) => kind === "write",
};

export class MessagesPanel {
  /** `changed` is called when there is another choice to remember. */
  constructor(changed) {
    this.changed = changed;
    this.paused = false;
    this.shown = [];
    this.generation = 0;
    this.names = new Map();
    this.sort = "all";
    this.pause = el(
      "button",
      { type: "button", id: "pause", onclick: () => this.toggle() },
      "Pause",
    );
    this.pause.setAttribute("aria-pressed", "false");
    this.sorts = el("div", {
      className: "sorts",
      role: "group",
      ariaLabel: "Which of them",
    });
    for (const sort of Object.keys(SORTS)) {
      const button = el(
        "button",
        { type: "button", onclick: () => this.choose(sort) },
        sort,
      );
      button.dataset.sort = sort;
      this.sorts.append(button);
    }
    const search = {
      id: "search",
      type: "search",
      placeholder: "player, kind or text",
      oninput: () => this.choose(this.sort),
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
    const kept = el(
      "p",
      { className: "note" },
      "The last 200 messages, 200 calls with their replies, and 200 writes.",
    );
    this.root = el(
      "div",
      { className: "panel" },
      el("article", {}, bar, this.sorts, label, kept, this.empty, this.lines),
    );
    this.markSort();
  }

  choices() {
    return {
      show: this.sort === "all" ? "" : this.sort,
      search: this.search.value,
    };
  }

  restore(choices) {
    const sort = choices.get("show") ?? "all";
    this.sort = Object.hasOwn(SORTS, sort) ? sort : "all";
    this.search.value = choices.get("search") ?? "";
    this.markSort();
  }

  draw(room) {
    if (this.paused) return;
    this.shown = room.messages.toReversed();
    this.generation = room.generation;
    this.names = namesOf(room);
    this.list();
  }

  choose(sort) {
    this.sort = sort;
    this.markSort();
    this.list();
    this.changed();
  }

  markSort() {
    for (const button of this.sorts.children)
      button.setAttribute(
        "aria-pressed",
        String(button.dataset.sort === this.sort),
      );
  }

  toggle() {
    this.paused = !this.paused;
    setText(this.pause, this.paused ? "Go on" : "Pause");
    this.pause.setAttribute("aria-pressed", String(this.paused));
  }

  list() {
    const wanted = this.search.value.toLowerCase();
    const found = this.shown.filter(
      (line) =>
        SORTS[this.sort](line) &&
        (wanted === "" || this.textOf(line).includes(wanted)),
    );
    this.empty.hidden = found.length > 0;
    const filtered = wanted !== "" || this.sort !== "all";
    setText(this.empty, filtered ? "Nothing fits." : "Nothing was sent yet.");
    reconcile(
      this.lines,
      found,
      // Numbers begin anew in each generation.
      (line) => `${this.generation} ${line.number}`,
      makeLine,
      (row, line) => this.drawLine(row, line),
    );
  }

  drawLine(row, line) {
    const who = row.querySelector(".who");
    if (line.player === "") setText(who, "the backend");
    else setPlayer(who, this.names, line.player);
    const others = line.others > 0 ? `and ${plural(line.others, "other")}` : "";
    setText(row.querySelector(".others"), others);
    setText(row.querySelector(".body"), this.bodyOf(line));
    const { reply } = line;
    if (reply === undefined) return;
    row.classList.toggle("error", reply?.error !== undefined);
    row.querySelector(".reply").classList.toggle("waits", reply === null);
    setText(
      row.querySelector(".outcome"),
      reply === null ? "no reply yet" : outcomeOf(reply),
    );
    setText(
      row.querySelector(".answer"),
      reply === null ? "" : this.bodyOf(reply),
    );
  }

  bodyOf({ error, content }) {
    return error === undefined
      ? withNames(this.names)(content)
      : words(error.text);
  }

  textOf(line) {
    const who =
      line.player === ""
        ? "the backend"
        : `${nameFor(this.names, line.player)} ${line.player}`;
    const { reply } = line;
    const answer = reply
      ? `${reply.error?.code ?? "ok"} ${this.bodyOf(reply)}`
      : "";
    const code = line.error?.code ?? "";
    return `${who} ${line.kind} ${line.name ?? ""} ${code} ${this.bodyOf(line)} ${answer}`.toLowerCase();
  }
}

/** What came of a call, and how long it took: `ok in 3.20 ms`, `422 in 12.0 ms`. */
const outcomeOf = (reply) =>
  `${reply.error === undefined ? "ok" : reply.error.code} in ${duration(reply.took_ms * 1_000)}`;

function makeLine(line) {
  const failed = line.error !== undefined;
  const badge = el("span", { className: `badge ${line.kind}` }, line.kind);
  const call = line.name ? `${line.name} ` : "";
  const number = line.call === undefined ? "" : `#${line.call} `;
  const code = failed && line.error.code ? `${line.error.code} ` : "";
  const arrow = el("span", {
    className: "arrow",
    title: line.direction === "in" ? "to the room" : "from the room",
  });
  arrow.textContent = line.direction === "in" ? "→" : "←";
  const made = el(
    "li",
    { className: `${line.direction}${failed ? " error" : ""}` },
    el("time", { title: `tick ${line.tick}` }, timeOfDay(line.at)),
    arrow,
    el("span", { className: "who" }),
    el("span", { className: "others soft" }),
    badge,
    el("span", { className: "size soft" }, bytes(line.bytes)),
    el(
      "code",
      { className: "words" },
      el("b", {}, call),
      el("span", { className: "soft" }, number),
      code,
      el("span", { className: "body" }),
    ),
  );
  if (line.reply !== undefined) {
    const back = el("span", { className: "arrow", title: "from the room" });
    back.textContent = "←";
    made.append(
      el(
        "div",
        { className: "reply" },
        back,
        el("span", { className: "outcome" }),
        el("code", { className: "answer" }),
      ),
    );
  }
  return made;
}
