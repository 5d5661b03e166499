// From runs to the metrics that have budgets: medians over the runs, and ours beside theirs.

import { median, round3 } from "./stats.mjs";

const OURS = "playhall";
const THEIRS = "colyseus";

/** The cases in the order they run. Colyseus has no quantised numbers, so there `q16` goes against the plain case. */
export const CASES = [
  { workload: "broadcast", n: 200, peers: [OURS, THEIRS] },
  { workload: "broadcast", n: 400, peers: [OURS, THEIRS] },
  { workload: "interest", n: 400, peers: [OURS, THEIRS] },
  { workload: "interest_q16", n: 400, peers: [OURS] },
  { workload: "rooms", n: 200, peers: [OURS, THEIRS] },
];

/** `theirs`: where the peer ran another workload. */
const RATIOS = [
  { metric: "broadcast_200_cpu", case: "broadcast_200", of: "ms_per_tick", budget: 0.85 },
  { metric: "broadcast_400_cpu", case: "broadcast_400", of: "ms_per_tick", budget: 0.85 },
  { metric: "broadcast_400_bytes", case: "broadcast_400", of: "bytes_per_tick", budget: 0.85 },
  { metric: "interest_400_cpu", case: "interest_400", of: "ms_per_tick", budget: 0.3 },
  { metric: "interest_400_bytes", case: "interest_400", of: "bytes_per_tick", budget: 0.9 },
  {
    metric: "interest_400_bytes_q16",
    case: "interest_q16_400",
    theirs: "interest_400",
    of: "bytes_per_tick",
    budget: 0.6,
  },
  { metric: "rooms_200_cpu", case: "rooms_200", of: "ms_per_tick", budget: 1.1 },
  { metric: "rooms_200_cpu_all", case: "rooms_200", of: "ms_per_tick_all", budget: 1.4 },
  { metric: "rooms_200_bytes", case: "rooms_200", of: "bytes_per_tick", budget: 1.05 },
];

const LATENCIES = [
  { metric: "latency_p50_ms_more", of: "p50", budget: 5 },
  { metric: "latency_p99_ms_more", of: "p99", budget: 15 },
];

/** The lines to print. A metric of which a side has no run has null for what is not known, and is not met. */
export function metricsOf(runs) {
  const middle = (peer, name, read) =>
    median(runs.filter((run) => run.peer === peer && `${run.workload}_${run.n}` === name).map(read));
  return [...RATIOS.map((each) => ratioLine(each, middle)), ...LATENCIES.map((each) => latencyLine(each, middle))];
}

function ratioLine({ metric, case: name, theirs = name, of, budget }, middle) {
  const ours = middle(OURS, name, (run) => run[of]);
  const peer = middle(THEIRS, theirs, (run) => run[of]);
  const ratio = ours === null || peer === null ? null : round3(ours / peer);
  return { metric, ours: round3(ours), peer: round3(peer), ratio, budget, met: ratio !== null && ratio <= budget };
}

/** Of all cases that both ran, the one in which we are the latest. */
function latencyLine({ metric, of, budget }, middle) {
  const more = CASES.filter(({ peers }) => peers.length === 2).map(({ workload, n }) => {
    const name = `${workload}_${n}`;
    const [ours, theirs] = [OURS, THEIRS].map((peer) => middle(peer, name, (run) => run.latency[of]));
    return { name, value: ours === null || theirs === null ? null : round3(ours - theirs) };
  });
  const isWhole = more.every(({ value }) => value !== null);
  const worst = more.reduce((a, b) => ((b.value ?? -Infinity) > (a.value ?? -Infinity) ? b : a));
  return { metric, value: worst.value, case: worst.name, budget, met: isWhole && worst.value <= budget };
}
