// Builds the page, which gives its tests the client and the schema.

import { cpSync, mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
// The fixture puts the client there.
const client = join(here, "../../clients/web");
const { build } = createRequire(join(client, "package.json"))("esbuild");

const out = join(here, "web/dist");
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
cpSync(join(here, "web/index.html"), join(out, "index.html"));
await build({
  entryPoints: [join(here, "web/src/main.ts")],
  outfile: join(out, "main.js"),
  bundle: true,
  format: "esm",
  target: "es2022",
  alias: { "@playhall/client": join(client, "src/index.ts") },
});
