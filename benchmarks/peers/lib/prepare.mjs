// Bundles what the driver for Playhall takes of the browser client, with the schemas of the game, into build/client.mjs.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

export async function prepare() {
  fs.mkdirSync(here("build"), { recursive: true });
  for (const name of ["shared", "shared_q16"]) {
    const args = ["gen", here(`game/${name}.py`), "-o", here(`build/${name}.gen.ts`)];
    execFileSync(here("../../.venv/bin/playhall"), args, { stdio: ["ignore", "ignore", "inherit"] });
  }
  const { build } = createRequire(here("../../clients/web/package.json"))("esbuild");
  await build({
    entryPoints: [here("drivers/playhall.ts")],
    outfile: here("build/client.mjs"),
    alias: { "@playhall/client": here("../../clients/web/src/index.ts") },
    bundle: true,
    format: "esm",
    target: "es2022",
  });
}
