import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, test } from "vitest";
import * as client from "../src/index.js";

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
  expect(version).toBe(client.VERSION);
  expect(dependencies).toBeUndefined();
});

const EXPORTS = [
  ...["CloseCode", "ErrorCode", "PlayhallError", "RoomClient", "VERSION", "call", "connect", "defineSchema", "input"],
  ...["isBot", "kind", "reloadForNewBuild"],
];

test("[CENT-13] it exports what games use, and no adapter to any engine", () => {
  expect(Object.keys(client).sort()).toEqual(EXPORTS);
});

test("a generated module needs nothing but this package, and finds there all that it names", () => {
  const document = readFileSync(path("../../docs/protocol/typescript-schema.md"), "utf8");
  const examples = path("../../examples");
  const generated = readdirSync(examples, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".gen.ts") && !name.includes("node_modules"))
    .map((name) => readFileSync(`${examples}/${name}`, "utf8"));
  const imports = [document, ...generated].map((text) => [...text.matchAll(/^ *import \{(.*?)\} from "(.*?)";/gms)]);
  for (const each of imports) {
    expect(each.map(([, , from]) => from)).toEqual(["@playhall/client"]);
    const names = each[0]![1]!.split(",").map((name) => name.trim());
    for (const name of names.filter((name) => !name.startsWith("type "))) expect(Object.keys(client)).toContain(name);
  }
  expect(imports.length).toBeGreaterThan(1);
});

test("a bot's player is told from a person's", () => {
  expect(["bot:1", "bot:", "robot:1", "ann", ""].map(client.isBot)).toEqual([true, true, false, false, false]);
});

test("an error has a code and a message", () => {
  const error = new client.PlayhallError(422, "not enough coins");
  expect([error instanceof Error, error.name, error.code, error.message]).toEqual([
    true,
    "PlayhallError",
    422,
    "not enough coins",
  ]);
});
