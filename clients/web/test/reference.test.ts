// docs/reference/browser.md is as the declarations and doc comments have it.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

test("the reference page is fresh, and nothing public lacks a doc comment", { timeout: 60_000 }, () => {
  const script = fileURLToPath(new URL("../reference.mjs", import.meta.url));
  const check = () => execFileSync("node", [script, "--check"], { stdio: "pipe" });
  expect(check).not.toThrow();
});
