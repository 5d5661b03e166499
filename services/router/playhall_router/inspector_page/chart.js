// A line chart of p50, p95 and max over the last minute, as SVG. Colours are the style sheet's.

import { duration } from "./text.js";

const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 720;
const HEIGHT = 220;
const LEFT = 2;
const BOTTOM = 24;
const TOP = 24;
const RIGHT = 10;
const SECONDS = 60;
const LINES = ["max", "p95", "p50"];

/** Draw points ({ago, p50_us, p95_us, max_us}) into a place; `budget` is what a tick may take, in µs. */
export function drawChart(place, points, budget) {
  const most = niceMost(Math.max(1, ...points.map((point) => point.max_us)));
  const x = (ago) => LEFT + (1 - ago / SECONDS) * (WIDTH - LEFT - RIGHT);
  const y = (us) => TOP + (1 - us / most) * (HEIGHT - TOP - BOTTOM);
  const svg = node("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
  });
  for (const part of [0, 0.5, 1]) {
    svg.append(
      node("line", {
        class: "grid",
        x1: LEFT,
        x2: WIDTH - RIGHT,
        y1: y(most * part),
        y2: y(most * part),
      }),
    );
  }
  if (budget <= most) {
    svg.append(
      node("line", {
        class: "budget",
        x1: LEFT,
        x2: WIDTH - RIGHT,
        y1: y(budget),
        y2: y(budget),
      }),
    );
  }
  for (const name of LINES) {
    for (const run of unbroken(points)) {
      const at = run.map(
        (point) =>
          `${x(point.ago).toFixed(1)},${y(point[`${name}_us`]).toFixed(1)}`,
      );
      // A single point has no line; a short one stands for it.
      if (at.length === 1)
        at.push(`${(x(run[0].ago) + 1.5).toFixed(1)},${at[0].split(",")[1]}`);
      svg.append(node("polyline", { class: name, points: at.join(" ") }));
    }
  }
  const label = (text, left, top, className) => {
    const made = document.createElement("span");
    made.className = className;
    made.textContent = text;
    made.style.left = `${(left / WIDTH) * 100}%`;
    made.style.top = `${(top / HEIGHT) * 100}%`;
    return made;
  };
  const marks = [0, 0.5, 1].map((part) =>
    label(part === 0 ? "0" : duration(most * part), LEFT, y(most * part), "y"),
  );
  for (const ago of [60, 30, 0])
    marks.push(
      label(
        ago === 0 ? "now" : `${ago} s ago`,
        x(ago),
        HEIGHT - BOTTOM + 4,
        "x",
      ),
    );
  place.replaceChildren(svg, ...marks);
}

/** The points in runs without a gap: a second in which nothing ran is no zero. */
function unbroken(points) {
  const runs = [];
  for (const point of points) {
    const run = runs.at(-1);
    if (run !== undefined && run.at(-1).ago - point.ago <= 1) run.push(point);
    else runs.push([point]);
  }
  return runs;
}

/** The next 1, 2 or 5 times a power of ten. */
function niceMost(us) {
  const power = 10 ** Math.floor(Math.log10(us));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= us);
}

function node(tag, attributes) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes))
    made.setAttribute(name, value);
  return made;
}
