// All cases, the peers in turns, and the metrics that have budgets as JSON lines. RUNS (5) and SECS (6) shorten it;
// FIRST=1 is for busy machines (--first in README.md). Each run is a line of results.jsonl. Ends with 1 where a run could not be made; a missed budget says "met": false.

import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { measure } from "./lib/measure.mjs";
import { CASES, metricsOf } from "./lib/metrics.mjs";
import { prepare } from "./lib/prepare.mjs";

const WARM_S = 2;
const results = fileURLToPath(new URL("results.jsonl", import.meta.url));
const passes = Number(process.env.RUNS ?? 5);
const seconds = Number(process.env.SECS ?? 6);
const first = process.env.FIRST === "1";
const runs = [];
let failed = 0;

await prepare();
for (let pass = 1; pass <= passes; pass++) {
  for (const { workload, n, peers } of CASES) {
    for (const peer of peers) {
      try {
        const run = await measure({ peer, workload, n, seconds, warm: WARM_S, first });
        runs.push(run);
        fs.appendFileSync(results, JSON.stringify(run) + "\n");
        const took = `${run.ms_per_tick} ms of CPU a tick, ${run.hz} Hz, others ${run.other_cpu} cores`;
        console.error(`pass ${pass} of ${passes}: ${workload} ${n} ${peer}: ${took}`);
      } catch (error) {
        failed++;
        console.error(`pass ${pass} of ${passes}: ${workload} ${n} ${peer} could not be measured: ${error.message}`);
      }
    }
  }
}
for (const line of metricsOf(runs)) console.log(JSON.stringify(line));
process.exitCode = failed === 0 ? 0 : 1;
