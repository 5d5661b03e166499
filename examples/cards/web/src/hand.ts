// This player's cards.

import { drawFace, fits, nameOfCard, sorted } from "./cards.js";
import { find, keep, make, setAttribute, setText } from "./dom.js";
import type { Hand, Table } from "./shared.gen.js";

/** So much of a card that lies under the next must show, in pixels: a finger must hit it. */
const MIN_STEP = 32;

const hand = find("#hand");
const sort = find("#sort");

export function setUpHand(
  play: (card: string) => void,
  changeSort: () => void,
): void {
  hand.addEventListener("click", (event) => {
    const card = cardAt(event.target);
    if (card !== null) play(card.dataset["card"]!);
  });
  hand.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const card = cardAt(event.target);
    if (step === undefined || card === null) return;
    const cards = [...hand.querySelectorAll<HTMLElement>(".card")];
    cards[cards.indexOf(card) + step]?.focus();
    event.preventDefault();
  });
  sort.addEventListener("click", changeSort);
  new ResizeObserver(layOut).observe(hand);
}

function cardAt(target: EventTarget | null): HTMLElement | null {
  return target instanceof Element
    ? target.closest<HTMLElement>(".card")
    : null;
}

/** Show a hand; raise what may be played, if it is this player's turn. */
export function showHand(
  { cards, sort_by: sortBy }: Hand,
  table: Table,
  isOnTurn: boolean,
): void {
  const focused = [...hand.children].findIndex((item) =>
    item.contains(document.activeElement),
  );
  const items = keep(hand, sorted(cards, sortBy), (card) => {
    const item = make("li");
    const button = make("button");
    button.type = "button";
    drawFace(button, card);
    item.append(button);
    return item;
  });
  for (const item of items) {
    const button = item.firstElementChild as HTMLElement;
    const card = button.dataset["card"]!;
    const mayPlay = isOnTurn && !table.naming && fits(card, table);
    button.classList.toggle("fits", mayPlay);
    button.classList.toggle("unfit", isOnTurn && !mayPlay);
    setAttribute(
      button,
      "aria-label",
      nameOfCard(card) + (mayPlay ? ", fits" : ""),
    );
  }
  // The card that had the focus is played: its neighbour has it now.
  if (focused >= 0 && !hand.contains(document.activeElement))
    items[Math.min(focused, items.length - 1)]
      ?.querySelector("button")!
      .focus();
  const other = sortBy === "suit" ? "rank" : "suit";
  setText(sort, `Sort by ${other}`);
  sort.hidden = cards.length < 2;
  layOut();
}

/** Let cards overlap as far as they must, and in two rows where that were too far. */
function layOut(): void {
  const count = hand.children.length;
  if (count === 0) return;
  const width = hand.clientWidth;
  const card = (hand.firstElementChild!.firstElementChild as HTMLElement)
    .offsetWidth;
  const inRow = Math.max(1, Math.floor((width - card) / MIN_STEP) + 1);
  const rows = Math.ceil(count / inRow);
  const perRow = Math.ceil(count / rows);
  const step =
    perRow === 1 ? 0 : Math.min(card + 8, (width - card) / (perRow - 1));
  hand.style.setProperty("--rows", String(rows));
  [...hand.children].forEach((item, index) => {
    const row = Math.floor(index / perRow);
    const inThis = row === rows - 1 ? count - perRow * (rows - 1) : perRow;
    const left = (width - card - step * (inThis - 1)) / 2;
    const style = (item as HTMLElement).style;
    style.setProperty("--x", `${left + step * (index % perRow)}px`);
    style.setProperty("--row", String(row));
  });
}
