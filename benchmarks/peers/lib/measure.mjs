// One measurement: start a server, let clients join, watch it for some seconds, end it.

import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { calibrate } from "./calib.mjs";
import { Child } from "./child.mjs";
import { PEERS } from "./peers.mjs";
import { cpuByName, difference, machineSeconds, putFirst } from "./processes.mjs";
import { round3 } from "./stats.mjs";

const PROBES = 5;
const SEATS = 4;
const START_MS = 60_000;
const JOIN_MS = 90_000;
const STATS_MS = 20_000;
/** Of a run in which others used more cores than this, there is another try. */
const MAX_OTHER_CORES = 0.2;
const REFERENCE_CALIB_MS = 10;
const script = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));

/** A run that shows nothing: a client was closed, or got no state for too long. */
export class VoidRun extends Error {}

/**
 * Measure until a run is not void and little disturbed by others, `tries` times at most; give the least disturbed one.
 * `peer`, `workload`, `n` (players, or rooms of 4), `seconds`, `warm` (seconds before them), `port`, `gap` (the longest
 * that a client may get nothing, in milliseconds), `first` (see putFirst); `during(pid)` is called when the watched seconds
 * begin.
 */
export async function measure({ tries = 3, quietWait = 20, ...what }) {
  let best;
  let failure;
  for (let k = 0; k < tries; k++) {
    if (!what.first) await untilQuiet(quietWait);
    try {
      const run = await measureOnce(what);
      if (best === undefined || run.other_cpu < best.other_cpu) best = run;
      if (what.first || run.other_cpu <= MAX_OTHER_CORES) break;
    } catch (error) {
      failure = error;
      console.error(`${what.peer} ${what.workload} ${what.n}: ${error.message}`);
    }
  }
  if (best === undefined) throw failure;
  return best;
}

/** Wait for a second in which nobody else needs the machine, `seconds` at most. */
async function untilQuiet(seconds) {
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const before = machineSeconds();
    await sleep(700);
    const after = machineSeconds();
    if (1 - (after.idle - before.idle) / (after.all - before.all) < 0.15) return;
  }
}

async function measureOnce({ peer, workload, n, seconds, warm, port, gap = 1_000, first, during = () => {} }) {
  const clients = workload === "rooms" ? n * SEATS : n;
  const chosenPort = port ?? 20_000 + Math.floor(Math.random() * 12_000);
  const children = [];
  const start = async (name, command, args, ms) => {
    const child = new Child(name, command, args);
    children.push(child);
    const said = await child.next(ms);
    if (first) putFirst(child.pid);
    return [child, said];
  };
  const game = [`--port=${chosenPort}`, `--workload=${workload}`];
  const asClients = [`--peer=${peer}`, ...game, `--probes=${PROBES}`];
  const load = [script("loadgen.mjs"), ...asClients, `--clients=${n - PROBES}`, `--rooms=${n}`];
  try {
    const [command, ...args] = PEERS[peer].command;
    const [, { pid }] = await start("server", command, [...args, ...game], START_MS);
    const [loadgen] = await start("loadgen", process.execPath, load, JOIN_MS);
    const [probe] = await start("probe", process.execPath, [script("probe.mjs"), ...asClients], JOIN_MS);
    if (first) putFirst(pid);
    await sleep(warm * 1000);
    const watched = await watch({ pid, loadgen, probe, seconds, gap, during });
    return { peer, workload, n, clients, at: new Date().toISOString(), ...watched };
  } catch (error) {
    throw new Error(`${error.message}\n${children[0].said}`.trim(), { cause: error });
  } finally {
    for (const child of children.reverse()) await child.stop();
  }
}

async function watch({ pid, loadgen, probe, seconds, gap, during }) {
  const calibBefore = calibrate();
  const cpuOf = () => ({
    server: cpuByName(pid),
    loadgen: cpuByName(loadgen.pid),
    probe: cpuByName(probe.pid),
    machine: machineSeconds(),
    wall: performance.now() / 1000,
  });
  const before = cpuOf();
  for (const child of [loadgen, probe]) child.command("start");
  during(pid);
  await sleep(seconds * 1000);
  const after = cpuOf();
  for (const child of [loadgen, probe]) child.command("stop");
  const [got, seen] = await Promise.all([loadgen.next(STATS_MS), probe.next(STATS_MS)]);
  checkDelivered(got, seen, gap);
  return summarise(before, after, got, seen, (calibBefore + calibrate()) / 2);
}

function checkDelivered(got, seen, gap) {
  if (got.closed > 0) throw new VoidRun(`${got.closed} clients were closed: ${got.why_closed}`);
  if (seen.lost !== null) throw new VoidRun(`a decoding client was lost: ${seen.lost}`);
  if (got.longest_gap_ms > gap) throw new VoidRun(`a client got nothing for ${got.longest_gap_ms} ms`);
  if (seen.latency.n === 0) throw new VoidRun("no input was seen");
}

/** CPU is seconds for each second; ms_per_tick is for each update that the clients got, on average. */
function summarise(before, after, got, seen, calib) {
  const wall = after.wall - before.wall;
  const server = difference(before.server, after.server);
  const total = (names) => [...names.values()].reduce((sum, each) => sum + each, 0);
  const spentBy = (name) => total(difference(before[name], after[name]));
  const all = total(server);
  const withoutStore = all - (server.get("statestore") ?? 0);
  const busy = after.machine.all - before.machine.all - (after.machine.idle - before.machine.idle);
  const perTick = (cpu) => round3((cpu * 1000) / got.updates_per_client);
  return {
    cpu: round3(withoutStore / wall),
    cpu_all: round3(all / wall),
    ms_per_tick: perTick(withoutStore),
    ms_per_tick_all: perTick(all),
    bytes_per_tick: round3(got.bytes_per_client / got.updates_per_client),
    hz: round3(got.updates_per_client / wall),
    fewest_hz: round3(got.fewest_updates / wall),
    inputs_hz: got.inputs_per_client_s,
    frames_hz: round3(got.frames_per_client / wall),
    longest_gap_ms: got.longest_gap_ms,
    latency: seen.latency,
    visible: seen.visible,
    farthest_seen: seen.farthest_seen,
    cpu_of: Object.fromEntries([...server].map(([name, cpu]) => [name, round3(cpu / wall)])),
    cpu_loadgen: round3(spentBy("loadgen") / wall),
    cpu_probe: round3(spentBy("probe") / wall),
    other_cpu: round3(Math.max(0, busy - all - spentBy("loadgen") - spentBy("probe")) / wall),
    calib_ms: round3(calib),
    cpu_norm: round3(((withoutStore / wall) * REFERENCE_CALIB_MS) / calib),
  };
}
