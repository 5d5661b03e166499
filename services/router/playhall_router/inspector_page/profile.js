// The panel of how long things take: a chart of one row over the last minute, and all rows of the last second.

import { drawChart } from "./chart.js";
import { el, reconcile, setText } from "./dom.js";
import { count, duration } from "./text.js";

const NAMES = ["count", "p50_us", "p95_us", "max_us"];
const FIRST = "tick";

export class ProfilePanel {
  constructor() {
    this.row = FIRST;
    this.room = null;
    this.heading = el("h2", { id: "chart-title" });
    this.chart = el("div", {
      className: "chart",
      role: "img",
      ariaLabel: "p50, p95 and max of each second",
    });
    this.rows = el("tbody", { id: "profile" });
    this.budget = el("span", { className: "budget" });
    const legend = el(
      "p",
      { className: "legend" },
      ...["max", "p95", "p50"].map((name) =>
        el("span", { className: name }, name),
      ),
      this.budget,
    );
    const head = el(
      "tr",
      {},
      ...["row", "runs", "p50", "p95", "max"].map((name) =>
        el("th", { scope: "col" }, name),
      ),
    );
    const table = el("table", {}, el("thead", {}, head), this.rows);
    const text =
      "Of the last second in which each ran. A row has its own time only, without what other rows in it took;" +
      " tick is the whole.";
    this.root = el(
      "div",
      { className: "panel" },
      el("article", {}, this.heading, this.chart, legend),
      el(
        "article",
        {},
        el("h2", {}, "Rows"),
        el("p", { className: "note" }, text),
        table,
      ),
    );
  }

  draw(room) {
    this.room = room;
    setText(this.heading, `${this.row}, the last minute`);
    const budget = 1_000_000 / room.tick_rate;
    setText(this.budget, `a tick may take ${duration(budget)}`);
    const points = room.profile
      .filter((second) => this.row in second.rows)
      .map((second) => ({ ago: second.ago_s, ...second.rows[this.row] }));
    drawChart(this.chart, points, budget);
    const latest = new Map();
    for (const second of room.profile) {
      for (const [name, times] of Object.entries(second.rows))
        latest.set(name, times);
    }
    const rows = [...latest].sort(
      ([a], [b]) =>
        Number(b === FIRST) - Number(a === FIRST) || a.localeCompare(b),
    );
    reconcile(
      this.rows,
      rows,
      ([name]) => name,
      ([name]) => this.makeRow(name),
      (row, [name, times]) => {
        row.classList.toggle("chosen", name === this.row);
        NAMES.forEach((each, index) => {
          const text =
            each === "count" ? count(times[each]) : duration(times[each]);
          setText(row.children[index + 1], text);
        });
      },
    );
  }

  makeRow(name) {
    const choose = () => {
      this.row = name;
      this.draw(this.room);
    };
    const button = el(
      "button",
      { type: "button", className: "link", onclick: choose },
      name,
    );
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, button),
      ...NAMES.map(() => el("td")),
    );
  }
}
