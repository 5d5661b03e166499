// What a view was told to show, in the address: it outlives a reload, and goes with a link.

/** `#/rooms/{project}/{id}?{choices}` in parts. */
export function readAddress() {
  const [, project, id, choices] =
    /^#\/rooms\/([^/?]+)\/([^/?]+)(?:\?(.*))?$/.exec(location.hash) ?? [];
  return { project, id, choices: new URLSearchParams(choices ?? "") };
}

/** Write choices into the address, without a step in the history; empty ones are left out. */
export function writeChoices(choices) {
  const kept = new URLSearchParams(
    Object.entries(choices).filter(([, value]) => value !== ""),
  );
  const [path] = location.hash.split("?");
  const hash = kept.size === 0 ? path : `${path}?${kept}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}
