import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { forgetReload, reloadForNewBuild } from "../src/reload.js";

const reload = vi.fn();

beforeEach(() => {
  const kept = new Map<string, string>();
  vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_000_000 });
  vi.stubGlobal("location", { reload });
  vi.stubGlobal("sessionStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  });
});
afterEach(() => {
  reload.mockClear();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("[CENT-10] [CODE-05] [MIG-15] reloadForNewBuild", () => {
  test("reloads once, and not again when that did not help", () => {
    expect(reloadForNewBuild()).toBe(true);
    vi.advanceTimersByTime(2_000);
    expect(reloadForNewBuild()).toBe(false);
    expect(reload).toHaveBeenCalledOnce();
  });

  test("reloads again for the next build, once a room was joined, or later", () => {
    reloadForNewBuild();
    forgetReload();
    expect(reloadForNewBuild()).toBe(true);
    vi.advanceTimersByTime(60_000);
    expect(reloadForNewBuild()).toBe(true);
    expect(reload).toHaveBeenCalledTimes(3);
  });

  test("does not reload where it could not tell a loop", () => {
    vi.stubGlobal("sessionStorage", undefined);
    expect(reloadForNewBuild()).toBe(false);
    expect(reload).not.toHaveBeenCalled();
  });
});
