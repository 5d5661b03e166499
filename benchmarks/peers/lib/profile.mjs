// Profiles of every process of a server while it is watched: perf for native code and the kernel, py-spy for what Python
// functions hold the GIL.

import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { processesOf } from "./processes.mjs";

const HZ = 499;
/** To attach takes a while, and the end of a server is not of interest. */
const SPARE_S = 1.5;

const PROFILERS = {
  perf: (pid, out, seconds) => [
    "perf",
    "record",
    "-q",
    "-F",
    HZ,
    "-g",
    "-p",
    pid,
    "-o",
    `${out}.perf`,
    "sleep",
    seconds,
  ],
  "py-spy": (pid, out, seconds) => {
    const how = ["--format", "raw", "--rate", HZ, "--nonblocking", "--gil"];
    return ["py-spy", "record", ...how, "--pid", pid, "--duration", Math.floor(seconds), "--output", `${out}.stacks`];
  },
};

/** Returns a function of the server's pid that records for so many seconds into a folder, or does nothing without one. */
export function profiler({ profile: folder, profiler: name = "perf" }, seconds) {
  if (folder === undefined) return () => {};
  if (!(name in PROFILERS)) throw new Error(`no such profiler: ${name}`);
  fs.mkdirSync(folder, { recursive: true });
  return (root) => {
    for (const [pid, what] of processesOf(root)) {
      const out = path.join(folder, `${what}-${pid}`);
      const [command, ...args] = PROFILERS[name](pid, out, seconds - SPARE_S).map(String);
      spawn(command, args, { stdio: ["ignore", "ignore", "inherit"] }).on("error", (error) =>
        console.error(String(error)),
      );
    }
  };
}
