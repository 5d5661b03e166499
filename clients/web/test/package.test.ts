import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { VERSION } from "../src/index.js";

const path = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));

test("the bundle has at most 35 KB gzipped, and needs nothing at run time", async () => {
  const { outputFiles, metafile } = await build({
    entryPoints: [path("src/index.ts")],
    bundle: true,
    format: "esm",
    target: "es2022",
    minify: true,
    write: false,
    metafile: true,
    outfile: "index.js",
  });
  expect(gzipSync(outputFiles[0]!.contents).length).toBeLessThanOrEqual(35 * 1_024);
  expect(Object.keys(metafile.inputs).filter((input) => input.includes("node_modules"))).toEqual([]);
});

test("the package has the version that it tells servers", () => {
  const { version, dependencies } = JSON.parse(readFileSync(path("package.json"), "utf8")) as Record<string, unknown>;
  expect(version).toBe(VERSION);
  expect(dependencies).toBeUndefined();
});
