// What stands over the sea: the own glow and rank, the brightest, and the names of lights.

import { cssHue } from "./colours.js";
import { find, setText } from "./dom.js";
import type { Label } from "./sea.js";
import type { Leader } from "./shared.gen.js";

const GAIN_MS = 900;

export interface Numbers {
  readonly glow: number;
  readonly rank: number;
  readonly lights: number;
  readonly best: number;
  readonly people: number;
}

let shownGlow = 0;
let gaining: ReturnType<typeof setTimeout> | undefined;

export function showNumbers({
  glow,
  rank,
  lights,
  best,
  people,
}: Numbers): void {
  const element = find("#glow");
  setText(element, String(glow));
  const change = glow - shownGlow;
  shownGlow = glow;
  if (change > 0 || change < -2) {
    const row = find("#own");
    row.classList.toggle("gains", change > 0);
    row.classList.toggle("loses", change < 0);
    clearTimeout(gaining);
    gaining = setTimeout(() => row.classList.remove("gains", "loses"), GAIN_MS);
  }
  setText(find("#rank"), rank === 0 ? "–" : `${rank} of ${lights}`);
  setText(find("#best"), String(best));
  setText(find("#people"), String(people));
}

/** The brightest, in order; the own row is marked. */
export function showLeaders(
  leaders: readonly Leader[],
  ownId: number | undefined,
): void {
  const list = find("#leaders");
  while (list.children.length > leaders.length) list.lastElementChild!.remove();
  while (list.children.length < leaders.length) list.append(makeRow());
  leaders.forEach(({ id, name, glow, hue }, index) => {
    const row = list.children[index] as HTMLElement;
    row.style.setProperty("--colour", cssHue(hue));
    row.classList.toggle("is-own", id === ownId);
    const called = id === ownId ? name || "You" : name || "Guest";
    setText(row.children[1]!, called);
    setText(row.children[2]!, String(glow));
  });
}

function makeRow(): HTMLElement {
  const row = document.createElement("li");
  for (const name of ["swatch", "who", "score"])
    row.append(
      Object.assign(document.createElement("span"), { className: name }),
    );
  return row;
}

/** Put names below their lights. */
export function showLabels(labels: readonly Label[]): void {
  const layer = find("#labels");
  while (layer.children.length < labels.length)
    layer.append(document.createElement("span"));
  for (let index = 0; index < layer.children.length; index++) {
    const element = layer.children[index] as HTMLElement;
    const label = labels[index];
    element.hidden = label === undefined;
    if (label === undefined) continue;
    const { name, hue, x, y } = label;
    setText(element, name);
    const colour = cssHue(hue);
    if (element.dataset["colour"] !== colour)
      element.style.color = element.dataset["colour"] = colour;
    element.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px) translateX(-50%)`;
  }
}
