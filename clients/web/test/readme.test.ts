// Holds the README to the package: its code compiles, and it leaves out no member.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { Entities, PresenceList } from "../src/core/entities.js";
import * as client from "../src/index.js";

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const readme = readFileSync(path("../README.md"), "utf8");
const blocks = [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code!);

/** What the first blocks declare is there in the others, which have scopes of their own. */
const SHARED_BLOCKS = 3;

/** All blocks as one module. */
function asModule(): string {
  const imports = /^import .*;.*\n/gm;
  const code = blocks.map((block) => block.replaceAll(imports, ""));
  const heads = blocks.flatMap((block) => block.match(imports) ?? []).join("");
  const shared = code.slice(0, SHARED_BLOCKS).join("");
  const scopes = code.slice(SHARED_BLOCKS).map((block) => `{\n${block}}\n`);
  return `${heads}${shared}${scopes.join("")}export {};\n`.replaceAll('"./shared.gen.js"', '"./server.js"');
}

describe("README.md", () => {
  test("its code compiles", { timeout: 60_000 }, () => {
    const file = path("readme_code.ts");
    const { config } = ts.readConfigFile(path("../tsconfig.json"), (name) => ts.sys.readFile(name));
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, path(".."));
    const host = ts.createCompilerHost(options);
    const [readFile, fileExists] = [host.readFile, host.fileExists];
    host.readFile = (name) => (name === file ? asModule() : readFile(name));
    host.fileExists = (name) => name === file || fileExists(name);
    const getSourceFile = host.getSourceFile.bind(host);
    host.getSourceFile = (name, version, ...rest) =>
      name === file ? ts.createSourceFile(name, asModule(), version) : getSourceFile(name, version, ...rest);
    const program = ts.createProgram([file], { ...options, noUnusedLocals: false }, host);
    const problems = ts
      .getPreEmitDiagnostics(program)
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
    expect(blocks.length).toBeGreaterThan(8);
    expect(problems).toEqual([]);
  });

  const members = (prototype: object): string[] =>
    Object.getOwnPropertyNames(prototype).filter((name) => name !== "constructor" && name !== "tell");

  test.each([
    ["the package", Object.keys(client)],
    ["RoomClient", [...members(client.RoomClient.prototype), "ready", "entities", "presence"]],
    ["Entities", members(Entities.prototype)],
    ["PresenceList", members(PresenceList.prototype)],
  ])("it names all of %s", (_, names) => {
    const missing = names.filter((name) => !new RegExp(`\\b${name}\\b`).test(readme));
    expect(missing).toEqual([]);
  });
});
