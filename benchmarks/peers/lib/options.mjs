/** The arguments as an object: `--name=value` is a text, `--name` is "1". */
export function options(argv = process.argv.slice(2)) {
  const found = {};
  for (const arg of argv) {
    const match = /^--([^=]+)(?:=(.*))?$/.exec(arg);
    if (match === null) throw new Error(`not an option: ${arg}`);
    found[match[1]] = match[2] ?? "1";
  }
  return found;
}
