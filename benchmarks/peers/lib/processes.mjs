// The CPU time of a process and all that descend from it, from /proc.

import fs from "node:fs";

const TICKS_PER_S = 100;

/**
 * Of one /proc/PID/stat: its parent and its CPU seconds, those of children it has waited for included. So the sum over
 * a tree loses nothing when one of its processes ends.
 */
export function parseStat(text) {
  // The name stands in parentheses and may hold anything, parentheses too.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [utime, stime, cutime, cstime] = fields.slice(11, 15).map(Number);
  return { parent: Number(fields[1]), seconds: (utime + stime + cutime + cstime) / TICKS_PER_S };
}

/** What a process is, by its command line. */
export function nameOf(command) {
  const service = /playhall_(\w+)(\.process)?/.exec(command);
  if (service !== null) return service[1] + (service[2] === undefined ? "" : "_process");
  if (command.includes("valkey-server")) return "valkey";
  if (/playhall"? dev /.test(command)) return "dev";
  return "server";
}

/** The pids of a process and its descendants. `parents`: the parent of each pid. */
export function descendants(root, parents) {
  const children = new Map();
  for (const [pid, parent] of parents) children.set(parent, [...(children.get(parent) ?? []), pid]);
  const found = [root];
  for (const pid of found) found.push(...(children.get(pid) ?? []));
  return found;
}

/** What was added to each value, for the names of both. */
export function difference(before, after) {
  const names = new Set([...before.keys(), ...after.keys()]);
  return new Map([...names].map((name) => [name, (after.get(name) ?? 0) - (before.get(name) ?? 0)]));
}

/** A process and its descendants: pid to what it is. */
export function processesOf(root) {
  return new Map([...tree(root)].map(([pid, { name }]) => [pid, name]));
}

/** CPU seconds so far of a process and its descendants, added up by what they are. */
export function cpuByName(root) {
  const found = new Map();
  for (const { name, seconds } of tree(root).values()) found.set(name, (found.get(name) ?? 0) + seconds);
  return found;
}

/** Let a process and its descendants go before everything else on the machine that wants its cores. For root only. */
export function putFirst(root) {
  // Linux schedules sessions, each with a niceness, and only within one its processes.
  for (const pid of tree(root).keys()) fs.writeFileSync(`/proc/${pid}/autogroup`, "-15");
}

function tree(root) {
  const stats = new Map();
  for (const entry of fs.readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const text = readGone(`/proc/${entry}/stat`);
    if (text !== "") stats.set(Number(entry), parseStat(text));
  }
  if (!stats.has(root)) throw new Error(`the server, process ${root}, is gone`);
  const parents = new Map([...stats].map(([pid, stat]) => [pid, stat.parent]));
  const named = (pid) => ({ ...stats.get(pid), name: nameOf(readGone(`/proc/${pid}/cmdline`).replaceAll("\0", " ")) });
  return new Map(descendants(root, parents).map((pid) => [pid, named(pid)]));
}

/** A file of a process, or nothing where it ended just now. */
function readGone(path) {
  try {
    return fs.readFileSync(path, "latin1");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ESRCH") return "";
    throw error;
  }
}

/** Since when the machine runs: seconds of all cores, and of those the idle ones. */
export function machineSeconds() {
  const [first] = fs.readFileSync("/proc/stat", "utf8").split("\n");
  const fields = first.trim().split(/\s+/).slice(1, 9).map(Number);
  const all = fields.reduce((sum, each) => sum + each, 0);
  return { all: all / TICKS_PER_S, idle: (fields[3] + fields[4]) / TICKS_PER_S };
}
