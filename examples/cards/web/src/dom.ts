// The page's elements, and changing them only where they differ: everything here is called with every update.

export function find<T extends Element = HTMLElement>(selector: string): T {
  return document.querySelector<T>(selector)!;
}

export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(
  element: Element,
  name: string,
  value: string | null,
): void {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** An element with a class. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  return Object.assign(document.createElement(tag), {
    className,
    textContent: text,
  });
}

/** A symbol of index.html. It is for the eyes: what it means is said beside it. */
export function icon(name: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#${name}`);
  svg.append(use);
  return svg;
}

/** Give a list one child for each key, in order. A child stays the same element for as long as its key is there. */
export function keep<T extends HTMLElement>(
  list: HTMLElement,
  keys: readonly string[],
  makeChild: (key: string) => T,
): T[] {
  const known = new Map(
    [...list.children].map((child) => [
      (child as HTMLElement).dataset["key"]!,
      child as T,
    ]),
  );
  for (const [key, child] of known) if (!keys.includes(key)) child.remove();
  return keys.map((key, index) => {
    let child = known.get(key);
    if (child === undefined) {
      child = makeChild(key);
      child.dataset["key"] = key;
    }
    const at = list.children[index];
    if (at !== child) list.insertBefore(child, at ?? null);
    return child;
  });
}
