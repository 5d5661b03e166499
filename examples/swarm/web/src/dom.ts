// The page's elements, and changing them only where they differ: most here is called with every update.

export function find<T extends Element = HTMLElement>(selector: string): T {
  return document.querySelector<T>(selector)!;
}

export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** For those who hear the page. */
export function announce(text: string): void {
  setText(find("#announcement"), text);
}
