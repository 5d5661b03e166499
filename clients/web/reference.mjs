// Writes docs/reference/browser.md: what the package exports, as its declarations and doc comments have it. With
// `--check` it writes nothing, and fails where the page is not fresh.
//
// What is exported must have a doc comment, and so must every method of an exported class. Members that are
// "For the client" are left out.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const PAGE = fileURLToPath(new URL("../../docs/reference/browser.md", import.meta.url));
const INDEX = `${HERE}src/index.ts`;
const HEAD = `# @playhall/client

Generated from declarations and doc comments by \`make gen\`. How they are used is in the
[package's README](../../clients/web/README.md). Times are in milliseconds.
`;

const missing = [];

/** The declarations of all sources, parsed, by the source's path; and the names that the package exports. */
function load() {
  const { config } = ts.readConfigFile(`${HERE}tsconfig.build.json`, (name) => ts.sys.readFile(name));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, HERE);
  const program = ts.createProgram([INDEX], {
    ...options,
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
  });
  const declared = new Map();
  program.emit(undefined, (path, text, _bom, _error, sources) => {
    for (const source of sources ?? [])
      declared.set(source.fileName, ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true));
  });
  const checker = program.getTypeChecker();
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(INDEX)));
  const names = exported.map((symbol) => {
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    return { name: symbol.name, of: target.name, file: declared.get(target.declarations[0].getSourceFile().fileName) };
  });
  return names.sort((a, b) => a.name.localeCompare(b.name, "en", { sensitivity: "base" }));
}

/** The statements that declare a name: more than one where a function has overloads. */
function declarationsOf(file, name) {
  return file.statements.filter((statement) =>
    ts.isVariableStatement(statement)
      ? statement.declarationList.declarations.some((each) => each.name.getText() === name)
      : statement.name?.text === name,
  );
}

function docOf(node) {
  return ts
    .getJSDocCommentsAndTags(node)
    .map((doc) => ts.getTextOfJSDocComment(doc.comment) ?? "")
    .join("\n");
}

/** The text of a statement without its own comment, and of a class without the members that are not for pages. */
function codeOf(statement, name) {
  // The marks by which the checker tells kinds apart say nothing to a reader.
  const text = statement
    .getText()
    .replace(/^export (declare )?/, "")
    .replace(/^ *readonly \[TYPE\].*\n/m, "");
  if (!ts.isClassDeclaration(statement)) return text;
  const head = text.slice(0, text.indexOf("{") + 1);
  const seen = new Set();
  const members = statement.members.filter((member) => {
    const isPrivate = member.name?.kind === ts.SyntaxKind.PrivateIdentifier;
    const isInternal = /^For the client[.,]/.test(docOf(member));
    if (isPrivate || isInternal) return false;
    // Of overloads, the first has the comment.
    const called = member.name?.getText() ?? "constructor";
    const needs = ts.isMethodDeclaration(member) && !called.startsWith("[") && !seen.has(called);
    seen.add(called);
    if (needs && docOf(member) === "") missing.push(`${name}.${called}`);
    return true;
  });
  return [head, ...members.map((member) => member.getFullText().replace(/^\n/, "")), "}"].join("\n");
}

function sectionOf({ name, of, file }) {
  const statements = declarationsOf(file, of);
  const doc = statements.map(docOf).find((text) => text !== "") ?? "";
  if (doc === "") missing.push(name);
  const code = statements.map((statement) => codeOf(statement, name)).join("\n");
  return `\n## ${name}\n\n\`\`\`ts\n${code}\n\`\`\`\n\n${doc}\n`;
}

const page = HEAD + load().map(sectionOf).join("");
if (missing.length > 0) {
  console.error(`reference: no doc comment: ${missing.join(", ")}`);
  process.exitCode = 1;
} else if (!process.argv.includes("--check")) {
  writeFileSync(PAGE, page);
} else if (readFileSync(PAGE, "utf8") !== page) {
  console.error("reference: docs/reference/browser.md is not fresh: run `make gen`");
  process.exitCode = 1;
}
