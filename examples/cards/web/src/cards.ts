// Cards: what they are called, in which order they are held, and how they look.

import { icon, make } from "./dom.js";
import {
  RANKS,
  SUITS,
  WILD,
  type SortBy,
  type Suit,
  type Table,
} from "./shared.gen.js";

export const SUIT_NAMES: Readonly<Record<Suit, string>> = {
  C: "clubs",
  D: "diamonds",
  H: "hearts",
  S: "spades",
};
const RANK_NAMES: Readonly<Record<string, string>> = {
  J: "jack",
  Q: "queen",
  K: "king",
  A: "ace",
};

export const rankOf = (card: string): string => card.slice(0, -1);
export const suitOf = (card: string): Suit => card.slice(-1) as Suit;

/** "queen of hearts" */
export function nameOfCard(card: string): string {
  const rank = rankOf(card);
  return `${RANK_NAMES[rank] ?? rank} of ${SUIT_NAMES[suitOf(card)]}`;
}

/** Whether a card would be taken. The room decides, by the same rule (rules.py). */
export function fits(card: string, { top, suit }: Table): boolean {
  return (
    rankOf(card) === WILD ||
    suitOf(card) === suit ||
    rankOf(card) === rankOf(top)
  );
}

export function sorted(cards: readonly string[], by: SortBy): string[] {
  const rank = (card: string): number =>
    (RANKS as readonly string[]).indexOf(rankOf(card));
  // Black and red in turns.
  const suit = (card: string): number =>
    [SUITS[0], SUITS[1], SUITS[3], SUITS[2]].indexOf(suitOf(card));
  return [...cards].sort((a, b) =>
    by === "suit"
      ? suit(a) - suit(b) || rank(a) - rank(b)
      : rank(a) - rank(b) || suit(a) - suit(b),
  );
}

/** Draw a card's face into an element. */
export function drawFace(element: HTMLElement, card: string): void {
  const suit = suitOf(card);
  element.classList.add("card");
  element.dataset["suit"] = suit;
  element.dataset["card"] = card;
  const corner = (name: string): HTMLElement => {
    const at = make("span", `corner ${name}`);
    at.append(make("b", "", rankOf(card)), icon(`suit-${suit}`));
    at.setAttribute("aria-hidden", "true");
    return at;
  };
  const middle = make("span", "pip");
  middle.append(icon(`suit-${suit}`));
  element.replaceChildren(corner("first"), middle, corner("last"));
}
