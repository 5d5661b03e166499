// Where names go: beside their dots, over no other name and no other dot, and never past the edge.

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Labelled {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

const segmenter = new Intl.Segmenter();

/** As much of a name as `measure` finds no wider than `width`, with an ellipsis where that is not all. */
export function elided(
  name: string,
  width: number,
  measure: (text: string) => number,
): string {
  const whole = measure(name);
  if (whole <= width) return name;
  const characters = [...segmenter.segment(name)].map(({ segment }) => segment);
  let kept = Math.floor((characters.length * width) / whole);
  let text: string;
  do text = `${characters.slice(0, kept--).join("")}…`;
  while (kept >= 0 && measure(text) > width);
  return text;
}

function overlaps(a: Box, b: Box): boolean {
  return (
    a.x < b.x + b.width &&
    b.x < a.x + a.width &&
    a.y < b.y + b.height &&
    b.y < a.y + a.height
  );
}

/**
 * Place labels of `height` beside dots of `radius`, the first ones first, in a square of `size`. Below is best, then
 * above, right and left; null where there is no room.
 */
export function placeLabels(
  dots: readonly Labelled[],
  radius: number,
  height: number,
  size: number,
): (Box | null)[] {
  const placed: Box[] = [];
  const bodies = dots.map(({ x, y }) => ({
    x: x - radius,
    y: y - radius,
    width: 2 * radius,
    height: 2 * radius,
  }));
  const gap = radius + 5;
  return dots.map(({ x, y, width }, index) => {
    const left = Math.min(Math.max(x - width / 2, 3), size - width - 3);
    const spots = [
      { x: left, y: y + gap },
      { x: left, y: y - gap - height },
      { x: x + gap, y: y - height / 2 },
      { x: x - gap - width, y: y - height / 2 },
    ].map((spot) => ({ ...spot, width, height }));
    const isFree = (box: Box): boolean =>
      box.x >= 2 &&
      box.y >= 2 &&
      box.x + width <= size - 2 &&
      box.y + height <= size - 2 &&
      !placed.some((other) => overlaps(box, other)) &&
      !bodies.some((body, at) => at !== index && overlaps(box, body));
    const spot = spots.find(isFree) ?? null;
    if (spot !== null) placed.push(spot);
    return spot;
  });
}
