// perf record on every process of a server while it is watched.

import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { processesOf } from "./processes.mjs";

const HZ = 499;

/** Returns a function of the server's pid that records for so many seconds into a folder, or does nothing without one. */
export function profiler(folder, seconds) {
  if (folder === undefined) return () => {};
  fs.mkdirSync(folder, { recursive: true });
  return (root) => {
    for (const [pid, name] of processesOf(root)) {
      const out = path.join(folder, `${name}-${pid}.data`);
      const args = ["record", "-q", "-F", String(HZ), "-g", "-p", String(pid), "-o", out, "--", "sleep", String(seconds)];
      spawn("perf", args, { stdio: ["ignore", "ignore", "inherit"] });
    }
  };
}
