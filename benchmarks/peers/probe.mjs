// Clients that decode all they get, with the peer's own client: how long until an input is seen, and what is in sight.
// --peer --port --workload --probes

import { emit, fail, onCommand } from "./lib/lines.mjs";
import { options } from "./lib/options.mjs";
import { PEERS } from "./lib/peers.mjs";
import { summary } from "./lib/stats.mjs";
import { DIRS } from "./lib/world.mjs";

const { peer, port, workload, probes: wanted } = options();
const TURN_AFTER = 20;
const { probe } = await PEERS[peer].drives();
const probes = [];
let latencies = null;
let lost = null;

/** When each input of one probe was sent, and which was seen last. */
class Inputs {
  #sentAt = new Float64Array(65_536);
  #seen = 0;
  #sent = 0;

  send(how, direction) {
    const seq = ++this.#sent;
    this.#sentAt[seq] = performance.now();
    how(direction, seq);
  }

  seen(seq) {
    const now = performance.now();
    for (let each = this.#seen + 1; each <= seq; each++) latencies?.push(now - this.#sentAt[each]);
    this.#seen = Math.max(this.#seen, seq);
  }
}

async function join(room) {
  const inputs = new Inputs();
  const client = await probe({
    port,
    workload,
    room,
    onSeq: (seq) => inputs.seen(seq),
    onLost: (why) => (lost ??= why),
  });
  probes.push(client);
  let [direction, count] = [0, 0];
  const send = () => {
    if (count++ % TURN_AFTER === 0) direction = (Math.random() * DIRS.length) | 0;
    inputs.send(client.send, DIRS[direction]);
    setTimeout(send, 25 + Math.random() * 50); // at any time between two ticks, anew each time
  };
  setTimeout(send, Math.random() * 50);
}

function farthest({ seen, me }) {
  const { x, y } = me();
  return Math.round(Math.max(...seen().map((each) => Math.hypot(each.x - x, each.y - y))));
}

onCommand((command) => {
  if (command === "start") latencies = [];
  else {
    const [visible, farthest_seen] = [probes.map(({ seen }) => seen().length), probes.map(farthest)];
    emit({ ev: "stats", latency: summary(latencies), visible, farthest_seen, lost });
    latencies = null;
  }
});
try {
  for (let i = 0; i < Number(wanted); i++) await join(workload === "rooms" ? i : null);
  emit({ ev: "ready" });
} catch (error) {
  fail(error);
}
