import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuByName, descendants, difference, nameOf, parseStat } from "./processes.mjs";

test("a stat line is read whatever the process is called", () => {
  const line = "12 (a) b (c) S 7 1 1 0 -1 4194560 1 0 0 0 150 50 20 5 20 0 1 0 99 1 1";
  assert.deepEqual(parseStat(line), { parent: 7, seconds: 2.25 });
});

test("descendants are children of children too, and nobody else", () => {
  const parents = new Map([[1, 0], [2, 1], [3, 2], [4, 1], [5, 0], [6, 5]]); // prettier-ignore
  assert.deepEqual(descendants(1, parents).sort(), [1, 2, 3, 4]);
});

test("what ended and what is new count", () => {
  const before = new Map([["router", 3], ["old", 2]]); // prettier-ignore
  const after = new Map([["router", 4], ["new", 1]]); // prettier-ignore
  assert.deepEqual(Object.fromEntries(difference(before, after)), { router: 1, old: -2, new: 1 });
});

test("processes are named by what they run", () => {
  assert.equal(nameOf("python3 -P -m playhall_router "), "router");
  assert.equal(nameOf("python3 -P -m playhall_roomhost.process "), "roomhost_process");
  assert.equal(nameOf("/x/.venv/bin/python /x/.venv/bin/playhall dev /tmp/game --port 1 "), "dev");
  assert.equal(nameOf("/x/valkey-server unixsocket:/x "), "valkey");
  assert.equal(nameOf("/x/node servers/colyseus.mjs "), "server");
});

test("this process has used some CPU, and one that is gone is an error", () => {
  const total = [...cpuByName(process.pid).values()].reduce((sum, each) => sum + each, 0);
  assert.ok(total > 0 && total <= process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6 + 0.1);
  assert.throws(() => cpuByName(2 ** 30), /is gone/);
});
