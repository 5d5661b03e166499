// The functions in which the samples of py-spy's raw stacks lie: node top.mjs FILE... [--rows=25]
// self: share of samples in it; total: in it and what it calls. Idle threads have no samples.

import fs from "node:fs";

const args = process.argv.slice(2);
const rows = Number(args.find((arg) => arg.startsWith("--rows="))?.slice(7) ?? 25);
const add = (to, key, count) => to.set(key, (to.get(key) ?? 0) + count);
const nameOf = (frame) => frame.replace(/:\d+\)$/, ")");

for (const file of args.filter((arg) => !arg.startsWith("--"))) {
  const [self, total] = [new Map(), new Map()];
  let all = 0;
  for (const line of fs.readFileSync(file, "utf8").split("\n")) {
    const at = line.lastIndexOf(" ");
    if (at < 0) continue;
    const frames = line.slice(0, at).split(";").map(nameOf);
    const count = Number(line.slice(at + 1));
    all += count;
    add(self, frames.at(-1), count);
    for (const frame of new Set(frames)) add(total, frame, count);
  }
  console.log(`\n${file}: ${all} samples`);
  for (const [title, counts] of Object.entries({ self, total })) {
    console.log(`  ${title}`);
    const sorted = [...counts].sort((a, b) => b[1] - a[1]).slice(0, rows);
    for (const [name, count] of sorted) console.log(`  ${((100 * count) / all).toFixed(1).padStart(6)} %  ${name}`);
  }
}
