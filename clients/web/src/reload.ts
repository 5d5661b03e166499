// Getting the page of the build a room runs.

const KEY = "playhall.reloaded";
/** A second mismatch this soon after a reload: the site has no newer page yet, and another reload will not help. */
const TOO_SOON_MS = 10_000;

/**
 * Reload the page, as a page does that was closed with 4004 (schema mismatch). Returns false, and does nothing, if
 * that was tried seconds ago and no room was joined since: tell the player then, and let them try later.
 */
export function reloadForNewBuild(): boolean {
  const now = Date.now();
  const before = session((storage) => Number(storage.getItem(KEY) ?? 0));
  // Without storage a loop could not be told from a first time.
  if (before === undefined || Math.abs(now - before) < TOO_SOON_MS) return false;
  if (session((storage) => storage.setItem(KEY, String(now)) ?? true) === undefined) return false;
  location.reload();
  return true;
}

/** A room was joined: the page has the right build, and the next mismatch is a new one. */
export function forgetReload(): void {
  session((storage) => storage.removeItem(KEY));
}

function session<T>(use: (storage: Storage) => T): T | undefined {
  try {
    return use(sessionStorage);
  } catch {
    return undefined;
  }
}
