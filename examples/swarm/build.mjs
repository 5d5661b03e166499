// Builds the site of this example into web/dist: one esbuild call. `playhall dev` runs it when a file changes.

import { cpSync, mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
// Within this repository the client is built from its source, with the tools it is developed with. The client is not on
// npm yet: how a game of your own gets it, and esbuild, is in docs/guides/first-game.md. It needs no `alias`.
const client = join(here, "../../clients/web");
const { build } = createRequire(join(client, "package.json"))("esbuild");

const out = join(here, "web/dist");
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const file of ["index.html", "style.css"])
  cpSync(join(here, "web", file), join(out, file));

try {
  await build({
    entryPoints: [join(here, "web/src/main.ts")],
    outfile: join(out, "main.js"),
    bundle: true,
    format: "esm",
    target: "es2022",
    minify: true,
    sourcemap: true,
    alias: { "@playhall/client": join(client, "src/index.ts") },
    logLevel: "warning",
  });
} catch (error) {
  // What is wrong with the page's source, esbuild has printed.
  if (error.errors === undefined) throw error;
  process.exitCode = 1;
}
