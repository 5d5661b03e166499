// `playhall dev` as a person starts it, on a copy of game/ so that every run begins without saved state. --port

import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { emit, fail, onCommand, onLine } from "../lib/lines.mjs";
import { options } from "../lib/options.mjs";

const { port } = options();
const PLAYHALL = fileURLToPath(new URL("../../../.venv/bin/playhall", import.meta.url));
const GAME = fileURLToPath(new URL("../game", import.meta.url));

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "playhall-peers-"));
const game = path.join(folder, "game");
fs.cpSync(GAME, game, { recursive: true, filter: (from) => !/__pycache__|\.playhall/.test(from) });

const env = { ...process.env, PLAYHALL_READY_FD: "3" };
delete env.PYTHONDONTWRITEBYTECODE; // set in images; all processes would compile all they import
const dev = spawn(PLAYHALL, ["dev", game, "--port", port], { env, stdio: ["ignore", "pipe", "pipe", "pipe"] });
const ended = once(dev, "exit");
let isStopping = false;
onLine(dev.stdout, (line) => console.error(line));
onLine(dev.stderr, (line) => console.error(line));
onLine(dev.stdio[3], (line) => emit({ ev: "ready", pid: dev.pid, url: JSON.parse(line).url }));
dev.on("error", fail);
dev.on("exit", (code, signal) => isStopping || fail(`playhall dev ended with ${code ?? signal}`));

onCommand(
  () => {},
  async () => {
    isStopping = true;
    dev.kill("SIGINT");
    await ended;
    fs.rmSync(folder, { recursive: true, force: true });
  },
);
