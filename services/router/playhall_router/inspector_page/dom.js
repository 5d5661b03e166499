// Making and updating elements. Whatever comes from a room becomes text, never markup.

/** Make an element: properties, and children that are elements or text. */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(
    ...children
      .filter((child) => child !== null)
      .map((child) => (typeof child === "string" ? plain(child) : child)),
  );
  return made;
}

/** A text whose marks of direction are seen: one of them would turn round what stands after it. */
const plain = (text) =>
  String(text).replace(
    /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** Set an element's text, if it is another: a selection in it stays. */
export function setText(element, text) {
  const shown = plain(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/**
 * Bring a parent's children in line with items, and keep those that stay: `make(item)` gives an element for a
 * new key, `update(element, item)` is called for each.
 */
export function reconcile(parent, items, keyOf, make, update) {
  const before = new Map(
    [...parent.children].map((child) => [child.dataset.key, child]),
  );
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = before.get(key);
    if (child === undefined) {
      child = make(item);
      child.dataset.key = key;
    }
    before.delete(key);
    update(child, item);
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
  for (const gone of before.values()) gone.remove();
}
