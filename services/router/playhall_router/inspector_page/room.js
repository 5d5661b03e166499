// One room: its figures, and a panel for each thing that is in it.

import { writeChoices } from "./choices.js";
import { el, setText } from "./dom.js";
import { EntitiesPanel } from "./entities.js";
import { ConnectionsPanel, LogPanel, StatePanel } from "./panels.js";
import { MessagesPanel } from "./messages.js";
import { ProfilePanel } from "./profile.js";
import { bytes, count, duration, generation, slowness } from "./text.js";

const FIRST_TAB = "State";

// What is said of a room, and what each of it means.
const FIGURES = {
  status:
    "Whether it runs: starting, active, closing or closed; crashed, asleep, hibernated or new run nowhere.",
  connections: "Who is connected, of how many may be.",
  entities:
    "Shared entities and hidden ones, without state, private state and presence.",
  tick: "How often the room has ticked, and how often a second it ticks, of how often it should.",
  "tick p95": "What 95 of 100 ticks of the last second stayed below.",
  version:
    "Counts the changes that were flushed to clients: each flush with a change is one version.",
  "saved version":
    "The version up to which the state store holds the room; a crash loses what is newer.",
  "a wake reads":
    "What is saved of the room: the last base (all of it), and the records of each change since. A base takes the" +
    " place of the records every 30 s, so this goes up and down and is no leak.",
  generation:
    "Which start of the room this is, as epoch.counter: the state store's epoch, and its grants in it. Only the" +
    " newest may save.",
};

export class RoomView {
  /** `ask` fetches at once: a filter has changed. `choices`: what the address says of them. */
  constructor(project, id, ask, choices) {
    this.path = `rooms/${project}/${id}`;
    const remember = () => this.remember();
    this.entities = new EntitiesPanel(ask, remember);
    this.panels = {
      State: new StatePanel(),
      Entities: this.entities,
      Connections: new ConnectionsPanel(),
      Messages: new MessagesPanel(remember),
      Profile: new ProfilePanel(remember),
      Log: new LogPanel(),
    };
    this.figures = Object.fromEntries(
      Object.keys(FIGURES).map((name) => [name, el("dd", {}, "–")]),
    );
    const pairs = Object.entries(FIGURES).map(([name, title]) =>
      el("div", { title }, el("dt", {}, name), this.figures[name]),
    );
    const meanings = Object.entries(FIGURES).map(([name, text]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, text)),
    );
    const legend = el(
      "details",
      { className: "meanings" },
      el("summary", {}, "What these figures mean"),
      el("dl", {}, ...meanings),
    );
    this.away = el("p", { className: "empty", hidden: true });
    this.tabs = el("div", {
      className: "tabs",
      role: "tablist",
      ariaLabel: "What to show",
    });
    this.body = el("div", { className: "panels" });
    for (const [name, panel] of Object.entries(this.panels))
      this.addTab(name, panel);
    this.inside = el("div", {}, this.tabs, this.body);
    const title = el("h1", {}, id);
    this.slow = el("p", { className: "slow", role: "status", hidden: true });
    this.subtitle = el("p", { className: "soft subtitle" });
    this.root = el(
      "section",
      { className: "room" },
      el("div", { className: "headline" }, title, this.subtitle),
      this.slow,
      el("dl", { className: "stats" }, ...pairs),
      legend,
      this.away,
      this.inside,
    );
    this.tabs.addEventListener("keydown", (event) => this.move(event));
    this.shown = false;
    for (const panel of this.choosing()) panel.restore(choices);
    const tab = choices.get("tab") ?? FIRST_TAB;
    this.select(Object.hasOwn(this.panels, tab) ? tab : FIRST_TAB);
  }

  /** The panels that have something to choose. */
  choosing() {
    return Object.values(this.panels).filter((panel) => "choices" in panel);
  }

  remember() {
    const tab = this.body.dataset.chosen;
    const choices = { tab: tab === FIRST_TAB ? "" : tab };
    for (const panel of this.choosing())
      Object.assign(choices, panel.choices());
    writeChoices(choices);
  }

  url() {
    return `${this.path}?${this.entities.query()}`;
  }

  draw(room) {
    const runs = "tick" in room;
    this.away.hidden = runs;
    this.inside.hidden = !runs;
    if (runs && !this.shown) this.showTab();
    this.shown = runs;
    setText(this.figures.status, room.status);
    this.figures.status.dataset.status = room.status;
    setText(
      this.subtitle,
      `${room.project} · ${room.type}${runs ? ` · ${room.room_class}` : ""}`,
    );
    const slow = runs ? slowness(room) : "";
    this.slow.hidden = slow === "";
    setText(this.slow, slow);
    if (!runs) {
      const ending =
        "It runs nowhere now. Whoever joins wakes it, and it is shown here then.";
      setText(this.away, `The room is ${room.status}. ${ending}`);
      return;
    }
    this.drawFigures(room);
    for (const panel of Object.values(this.panels)) panel.draw(room);
  }

  drawFigures(room) {
    const last = room.last_tick;
    setText(
      this.figures.connections,
      `${count(room.connection_count)} of ${count(room.max_players)}`,
    );
    setText(this.figures.entities, count(room.entity_count));
    const { tick_rate: rate, ticks_per_s: measured } = room;
    const kept = measured === null || Math.round(measured) === rate;
    const of = kept ? "" : `${Number(measured.toFixed(1))} of `;
    setText(this.figures.tick, `${count(room.tick)} at ${of}${rate}/s`);
    setText(
      this.figures["tick p95"],
      last === null ? "–" : duration(last.p95_us),
    );
    setText(this.figures.version, count(room.version));
    setText(this.figures["saved version"], count(room.durable));
    const { base_bytes: base, record_bytes: records } = room;
    setText(
      this.figures["a wake reads"],
      `${bytes(base + records)}: base ${bytes(base)}, records ${bytes(records)}`,
    );
    setText(this.figures.generation, generation(room.generation));
  }

  addTab(name, panel) {
    const id = `panel-${name.toLowerCase()}`;
    panel.root.id = id;
    panel.root.setAttribute("role", "tabpanel");
    panel.root.setAttribute("aria-label", name);
    const tab = el(
      "button",
      { type: "button", role: "tab", onclick: () => this.choose(name) },
      name,
    );
    tab.setAttribute("aria-controls", id);
    tab.dataset.name = name;
    this.tabs.append(tab);
    this.body.append(panel.root);
  }

  choose(name) {
    this.select(name);
    this.remember();
  }

  select(name) {
    for (const tab of this.tabs.children) {
      const chosen = tab.dataset.name === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      this.panels[tab.dataset.name].root.classList.toggle("chosen", chosen);
    }
    this.body.dataset.chosen = name;
  }

  /** Where there is no room for all tabs, scroll to the chosen one. */
  showTab() {
    const tab = this.tabs.querySelector('[aria-selected="true"]');
    const end = tab.offsetLeft + tab.offsetWidth - this.tabs.offsetLeft;
    this.tabs.scrollLeft = Math.max(0, end - this.tabs.clientWidth);
  }

  move(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const tabs = [...this.tabs.children].filter((tab) => tab.checkVisibility());
    const at = tabs.findIndex(
      (tab) => tab.getAttribute("aria-selected") === "true",
    );
    const next = tabs[(at + step + tabs.length) % tabs.length];
    this.choose(next.dataset.name);
    next.focus();
    event.preventDefault();
  }
}
