// Single measurements, one JSON line each on stdout. README.md has the options.

import { measure } from "./lib/measure.mjs";
import { options } from "./lib/options.mjs";
import { PEERS } from "./lib/peers.mjs";
import { prepare } from "./lib/prepare.mjs";
import { profiler } from "./lib/profile.mjs";

const given = options();
const list = (text) => text.split(",");
const peers = list(given.peer ?? "playhall");
const unknown = peers.find((peer) => !(peer in PEERS));
if (unknown !== undefined) throw new Error(`no such peer: ${unknown}; there are ${Object.keys(PEERS).join(", ")}`);

await prepare();
for (let run = 1; run <= Number(given.runs ?? 1); run++) {
  for (const workload of list(given.workload ?? "rooms")) {
    for (const n of list(given.n ?? "200").map(Number)) {
      for (const peer of peers) {
        const measured = await measure({
          peer,
          workload,
          n,
          seconds: Number(given.secs ?? 6),
          warm: Number(given.warm ?? 2),
          port: given.port,
          first: given.first === "1",
          gap: Number(given.gap ?? 1_000),
          tries: Number(given.tries ?? 3),
          quietWait: Number(given.quietWait ?? 20),
          during: profiler(given, Number(given.secs ?? 6)),
        });
        console.log(JSON.stringify(measured));
      }
    }
  }
}
