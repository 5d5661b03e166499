import assert from "node:assert/strict";
import { test } from "node:test";
import { CASES, metricsOf } from "./metrics.mjs";

const run = (peer, workload, n, ms, { all = ms, bytes = 100, p50 = 30, p99 = 50 } = {}) => ({
  peer,
  workload,
  n,
  ms_per_tick: ms,
  ms_per_tick_all: all,
  bytes_per_tick: bytes,
  latency: { p50, p99 },
});
const named = (runs, metric) => metricsOf(runs).find((line) => line.metric === metric);

test("a ratio is that of the medians", () => {
  const ours = [1, 9, 2].map((ms) => run("playhall", "broadcast", 200, ms));
  const theirs = [4, 4, 5].map((ms) => run("colyseus", "broadcast", 200, ms));
  const line = named([...ours, ...theirs], "broadcast_200_cpu");
  assert.deepEqual(line, { metric: "broadcast_200_cpu", ours: 2, peer: 4, ratio: 0.5, budget: 0.85, met: true });
});

test("with the state store is another metric", () => {
  const runs = [run("playhall", "rooms", 200, 10, { all: 16 }), run("colyseus", "rooms", 200, 10)];
  assert.equal(named(runs, "rooms_200_cpu").met, true);
  assert.deepEqual([named(runs, "rooms_200_cpu_all").ratio, named(runs, "rooms_200_cpu_all").met], [1.6, false]);
});

test("quantised goes against the plain case", () => {
  const runs = [run("playhall", "interest_q16", 400, 1, { bytes: 50 }), run("colyseus", "interest", 400, 1)];
  assert.equal(named(runs, "interest_400_bytes_q16").ratio, 0.5);
});

test("what was not measured is not met", () => {
  for (const line of metricsOf([run("playhall", "rooms", 200, 1)])) {
    assert.equal(line.met, false);
    assert.equal("ratio" in line ? line.ratio : line.value, null);
  }
});

test("latency is that of the case in which we are the latest", () => {
  const runs = CASES.filter(({ peers }) => peers.length === 2).flatMap(({ workload, n }) => [
    run("playhall", workload, n, 1, { p50: workload === "rooms" ? 37 : 31 }),
    run("colyseus", workload, n, 1),
  ]);
  const line = named(runs, "latency_p50_ms_more");
  assert.deepEqual([line.value, line.case, line.met], [7, "rooms_200", false]);
  assert.equal(named(runs, "latency_p99_ms_more").met, true);
});
