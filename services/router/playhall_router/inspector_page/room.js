// One room: its figures, and a panel for each thing that is in it.

import { el, setText } from "./dom.js";
import { EntitiesPanel } from "./entities.js";
import { ConnectionsPanel, LogPanel, StatePanel } from "./panels.js";
import { MessagesPanel } from "./messages.js";
import { ProfilePanel } from "./profile.js";
import { bytes, count, duration } from "./text.js";

const FIGURES = [
  "status",
  "connections",
  "entities",
  "tick",
  "tick p95",
  "version",
  "saved version",
  "saved size",
  "generation",
];

export class RoomView {
  /** `ask` fetches at once: a filter has changed. */
  constructor(project, id, ask) {
    this.path = `rooms/${project}/${id}`;
    this.entities = new EntitiesPanel(ask);
    this.panels = {
      State: new StatePanel(),
      Entities: this.entities,
      Connections: new ConnectionsPanel(),
      Messages: new MessagesPanel(),
      Profile: new ProfilePanel(),
      Log: new LogPanel(),
    };
    this.figures = Object.fromEntries(
      FIGURES.map((name) => [name, el("dd", {}, "–")]),
    );
    const pairs = FIGURES.map((name) =>
      el("div", {}, el("dt", {}, name), this.figures[name]),
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
    this.subtitle = el("p", { className: "soft subtitle" });
    this.root = el(
      "section",
      { className: "room" },
      el("div", { className: "headline" }, title, this.subtitle),
      el("dl", { className: "stats" }, ...pairs),
      this.away,
      this.inside,
    );
    this.tabs.addEventListener("keydown", (event) => this.move(event));
    this.select("State");
  }

  url() {
    return `${this.path}?${this.entities.query()}`;
  }

  draw(room) {
    const runs = "tick" in room;
    this.away.hidden = runs;
    this.inside.hidden = !runs;
    setText(this.figures.status, room.status);
    this.figures.status.dataset.status = room.status;
    setText(
      this.subtitle,
      `${room.project} · ${room.type}${runs ? ` · ${room.room_class}` : ""}`,
    );
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
    setText(this.figures.tick, `${count(room.tick)} at ${room.tick_rate}/s`);
    setText(
      this.figures["tick p95"],
      last === null ? "–" : duration(last.p95_us),
    );
    setText(this.figures.version, count(room.version));
    setText(this.figures["saved version"], count(room.durable));
    setText(this.figures["saved size"], bytes(room.saved_bytes));
    setText(this.figures.generation, String(room.generation));
  }

  addTab(name, panel) {
    const id = `panel-${name.toLowerCase()}`;
    panel.root.id = id;
    panel.root.setAttribute("role", "tabpanel");
    panel.root.setAttribute("aria-label", name);
    const tab = el(
      "button",
      { type: "button", role: "tab", onclick: () => this.select(name) },
      name,
    );
    tab.setAttribute("aria-controls", id);
    tab.dataset.name = name;
    this.tabs.append(tab);
    this.body.append(panel.root);
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

  move(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const tabs = [...this.tabs.children].filter((tab) => tab.checkVisibility());
    const at = tabs.findIndex(
      (tab) => tab.getAttribute("aria-selected") === "true",
    );
    const next = tabs[(at + step + tabs.length) % tabs.length];
    this.select(next.dataset.name);
    next.focus();
    event.preventDefault();
  }
}
