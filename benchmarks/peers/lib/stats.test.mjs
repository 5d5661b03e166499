import assert from "node:assert/strict";
import { test } from "node:test";
import { median, summary } from "./stats.mjs";

test("the median is in the middle of sorted numbers", () => {
  assert.equal(median([10, 9, 100]), 10);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(median([]), null);
});

test("a summary has the quantiles, or nothing", () => {
  const values = Array.from({ length: 200 }, (_, i) => 199 - i);
  assert.deepEqual(summary(values), { n: 200, p50: 100, p99: 198, max: 199 });
  assert.deepEqual(summary([]), { n: 0, p50: null, p99: null, max: null });
});
