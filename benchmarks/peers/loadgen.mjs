// Clients that join as any does, send an input every 50 ms, and count what they get.
// --peer --port --workload --clients (raw ones), or for workload `rooms` --rooms --probes (rooms that keep a seat free)

import { emit, fail, onCommand } from "./lib/lines.mjs";
import { options } from "./lib/options.mjs";
import { PEERS } from "./lib/peers.mjs";
import { round3 } from "./lib/stats.mjs";
import { TICK_MS } from "./lib/world.mjs";

const { peer, port, workload, clients: wanted, rooms, probes } = options();
const JOINING_AT_ONCE = 8;
const SLOTS = 10;
const SLOT_MS = TICK_MS / SLOTS;
const TURN_AFTER = 20;
const clock = { now: performance.now() };
const { raw, inputFrames } = await PEERS[peer].drives();
const clients = [];

/** Each inner list is joined in order, and so many of them at once. */
function seats() {
  if (workload !== "rooms") return Array.from({ length: Number(wanted) }, () => [null]);
  return Array.from({ length: Number(rooms) }, (_, room) => Array(room < Number(probes) ? 3 : 4).fill(room));
}

async function joinAll() {
  const [first, ...others] = seats();
  const join = async (list) => {
    for (const room of list) clients.push(await raw({ port, workload, room, clock }));
  };
  await join(first); // makes the room
  const joiners = Array.from({ length: JOINING_AT_ONCE }, async () => {
    for (let list; (list = others.shift()) !== undefined; ) await join(list);
  });
  await Promise.all(joiners);
}

/** Every client sends once in 50 ms, in ten slots, and turns about once a second. */
function startSending() {
  const random = (n) => (Math.random() * n) | 0;
  const direction = clients.map(() => random(inputFrames.length));
  const inputs = clients.map(() => random(TURN_AFTER));
  const begun = performance.now();
  let slot = 0;
  setInterval(() => {
    clock.now = performance.now();
    const due = Math.floor((clock.now - begun) / SLOT_MS);
    if (due - slot > 100) slot = due - SLOTS; // this process was held up: what it has missed is not made up for
    for (; slot < due; slot++) {
      for (let i = slot % SLOTS; i < clients.length; i += SLOTS) {
        if (clients[i].isClosed) continue;
        if (++inputs[i] >= TURN_AFTER) {
          inputs[i] = 0;
          direction[i] = random(inputFrames.length);
        }
        clients[i].send(inputFrames[direction[i]]);
        sent++;
      }
    }
  }, SLOT_MS);
}

function report(seconds) {
  const closed = clients.filter((client) => client.isClosed);
  const sum = (key) => clients.reduce((total, { got }) => total + got[key], 0);
  for (const { got } of clients) got.end();
  emit({
    ev: "stats",
    clients: clients.length,
    closed: closed.length,
    why_closed: closed.length === 0 ? undefined : String(closed[0].error),
    longest_gap_ms: round3(Math.max(...clients.map(({ got }) => got.longestGap))),
    updates_per_client: sum("updates") / clients.length,
    fewest_updates: Math.min(...clients.map(({ got }) => got.updates)),
    bytes_per_client: sum("bytes") / clients.length,
    frames_per_client: sum("frames") / clients.length,
    inputs_per_client_s: round3(sent / clients.length / seconds),
  });
}

let sent = 0;
let begun = 0;
onCommand((command) => {
  clock.now = performance.now();
  if (command === "start") {
    for (const { got } of clients) got.begin();
    [sent, begun] = [0, clock.now];
  } else report((clock.now - begun) / 1000);
});
try {
  await joinAll();
  startSending();
  emit({ ev: "ready" });
} catch (error) {
  fail(error);
}
