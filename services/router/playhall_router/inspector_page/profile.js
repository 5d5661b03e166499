// The panel of how long things take: a chart of one row over the last minute, and all rows of that minute.

import { drawChart } from "./chart.js";
import { el, reconcile, setText } from "./dom.js";
import { count, duration } from "./text.js";

const FIRST = "tick";
const NONE = { p50_us: -1, p95_us: -1, max_us: -1 };

const took = (us) => (us < 0 ? "–" : duration(us));
const percent = (share) =>
  `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;

// By name: what heads a column, its title, what it is sorted by, and how that is shown. Of each pair of
// columns for a second and a minute the first has `last`.
const COLUMNS = {
  name: ["row", "", (row) => row.name, (name) => name],
  share: [
    "time",
    "Part of the last minute that it took",
    (row) => row.share,
    percent,
  ],
  budget: [
    "of budget",
    "p95 of the last minute, as part of what a tick may take",
    (row) => row.budget,
    percent,
  ],
  count: ["calls", "Calls in the last minute", (row) => row.count, count],
  p50: ["p50", "Of the last minute", (row) => row.p50_us, took],
  p95: ["p95", "Of the last minute", (row) => row.p95_us, took],
  max: ["max", "Of the last minute", (row) => row.max_us, took],
  p50_s: [
    "p50 1 s",
    "Of the last second in which it ran",
    (row) => row.last.p50_us,
    took,
  ],
  p95_s: [
    "p95 1 s",
    "Of the last second in which it ran",
    (row) => row.last.p95_us,
    took,
  ],
  max_s: [
    "max 1 s",
    "Of the last second in which it ran",
    (row) => row.last.max_us,
    took,
  ],
};

// Figures above these are marked.
const MOST = new Map([
  [took, (budget) => budget],
  [percent, () => 1],
]);

export class ProfilePanel {
  /** `changed` is called when there is another choice to remember. */
  constructor(changed) {
    this.changed = changed;
    this.row = FIRST;
    this.sort = "share";
    this.rising = false;
    this.room = null;
    this.heading = el("h2", { id: "chart-title" });
    this.chart = el("div", {
      className: "chart",
      role: "img",
      ariaLabel: "p50, p95 and max of each second",
    });
    this.rows = el("tbody", { id: "profile" });
    this.budget = el("span", { className: "budget" });
    this.head = el("tr");
    for (const [name, [text, title]] of Object.entries(COLUMNS)) {
      const button = el(
        "button",
        { type: "button", className: "sort", title },
        text,
      );
      button.addEventListener("click", () => this.sortBy(name));
      const cell = el("th", { scope: "col" }, button);
      cell.dataset.name = name;
      this.head.append(cell);
    }
    const legend = el(
      "p",
      { className: "legend" },
      ...["max", "p95", "p50"].map((name) =>
        el("span", { className: name }, name),
      ),
      this.budget,
    );
    const table = el("table", {}, el("thead", {}, this.head), this.rows);
    const text =
      "A row has its own time only, without what other rows in it took; tick is the whole. Marked are rows" +
      " that once in the last minute took longer than a whole tick may. Click a row to see it in the chart.";
    this.root = el(
      "div",
      { className: "panel" },
      el("article", {}, this.heading, this.chart, legend),
      el(
        "article",
        {},
        el("h2", {}, "Rows"),
        el("p", { className: "note" }, text),
        el("div", { className: "scroll" }, table),
      ),
    );
    this.markSort();
  }

  choices() {
    const sort = `${this.rising ? "" : "-"}${this.sort}`;
    return {
      row: this.row === FIRST ? "" : this.row,
      sort: sort === "-share" ? "" : sort,
    };
  }

  restore(choices) {
    this.row = choices.get("row") ?? FIRST;
    const [, falling, sort] =
      /^(-?)(.+)$/.exec(choices.get("sort") ?? "-share") ?? [];
    if (Object.hasOwn(COLUMNS, sort)) {
      this.sort = sort;
      this.rising = falling === "";
    }
    this.markSort();
  }

  sortBy(name) {
    // Names from A, figures from the largest; again: the other way round.
    this.rising = this.sort === name ? !this.rising : name === "name";
    this.sort = name;
    this.markSort();
    if (this.room !== null) this.drawRows(this.room);
    this.changed();
  }

  markSort() {
    for (const cell of this.head.children) {
      if (cell.dataset.name === this.sort)
        cell.setAttribute(
          "aria-sort",
          this.rising ? "ascending" : "descending",
        );
      else cell.removeAttribute("aria-sort");
    }
  }

  draw(room) {
    this.room = room;
    setText(this.heading, `${this.row}, the last minute`);
    const budget = budgetOf(room);
    setText(this.budget, `a tick may take ${duration(budget)}`);
    const points = room.profile
      .filter((second) => Object.hasOwn(second.rows, this.row))
      .map((second) => ({ ago: second.ago_s, ...second.rows[this.row] }));
    drawChart(this.chart, points, budget);
    this.drawRows(room);
  }

  drawRows(room) {
    const [, , valueOf] = COLUMNS[this.sort];
    const way = this.rising ? 1 : -1;
    const rows = rowsOf(room).sort(
      (a, b) =>
        way * compare(valueOf(a), valueOf(b)) || a.name.localeCompare(b.name),
    );
    const budget = budgetOf(room);
    reconcile(
      this.rows,
      rows,
      (row) => row.name,
      (row) => this.makeRow(row.name),
      (made, row) => {
        made.classList.toggle("chosen", row.name === this.row);
        made.querySelector(".badge").hidden = row.max_us <= budget;
        Object.values(COLUMNS)
          .slice(1)
          .forEach(([, , of, asText], index) => {
            const cell = made.children[index + 1];
            const most = MOST.get(asText)?.(budget) ?? Infinity;
            setText(cell, asText(of(row)));
            cell.classList.toggle("over", of(row) > most);
          });
      },
    );
  }

  makeRow(name) {
    const choose = () => {
      this.row = name;
      this.draw(this.room);
      this.changed();
    };
    const button = el(
      "button",
      { type: "button", className: "link", onclick: choose },
      name,
    );
    const badge = el("span", { className: "badge over" }, "over budget");
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, button, " ", badge),
      ...Object.keys(COLUMNS)
        .slice(1)
        .map(() => el("td")),
    );
  }
}

/** What a tick may take, in µs. */
export const budgetOf = (room) => 1_000_000 / room.tick_rate;

function rowsOf(room) {
  const last = new Map();
  for (const second of room.profile) {
    for (const [name, times] of Object.entries(second.rows))
      last.set(name, times);
  }
  const { seconds, rows } = room.minute;
  return Object.entries(rows).map(([name, times]) => ({
    ...times,
    name,
    last: last.get(name) ?? NONE,
    share: times.total_us / (Math.max(1, seconds) * 1_000_000),
    budget: times.p95_us / budgetOf(room),
  }));
}

const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
