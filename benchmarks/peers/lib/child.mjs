// One of the processes of a measurement, seen from the one that runs it.

import { spawn } from "node:child_process";
import { onLine } from "./lines.mjs";

const SAID_BYTES = 4_000;
const STOP_MS = 20_000;

export class Child {
  #process;
  #answers = [];
  #waiting = [];
  /** The end of what it wrote that was no answer. */
  said = "";
  #ended;

  constructor(name, command, args) {
    this.name = name;
    const env = { ...process.env, NODE_ENV: "production" };
    this.#process = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env });
    onLine(this.#process.stdout, (line) => this.#hear(line));
    onLine(this.#process.stderr, (line) => this.#note(line));
    this.#process.stdin.on("error", () => {}); // it ended, which `next` tells
    this.#ended = new Promise((resolve) => {
      const end = (why) => {
        this.endedBy ??= why;
        for (const { reject } of this.#waiting.splice(0)) reject(this.#failed(this.endedBy));
        resolve();
      };
      this.#process.on("error", (error) => end(String(error)));
      this.#process.on("exit", (code, signal) => end(`ended with ${code ?? signal}`));
    });
  }

  get pid() {
    return this.#process.pid;
  }

  command(line) {
    this.#process.stdin.write(line + "\n");
  }

  /** The next object it says. Rejects where it tells of an error, ends, or says nothing in time. */
  async next(ms) {
    const answer = this.#answers.shift() ?? (await this.#awaitAnswer(ms));
    if (answer.ev === "error") throw this.#failed(answer.error);
    return answer;
  }

  #awaitAnswer(ms) {
    if (this.endedBy !== undefined) throw this.#failed(this.endedBy);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(this.#failed(`said nothing for ${ms} ms`)), ms);
      const settle = (how) => (value) => {
        clearTimeout(timer);
        how(value);
      };
      this.#waiting.push({ resolve: settle(resolve), reject: settle(reject) });
    });
  }

  /** End it: it does so itself when its input ends, and is killed where it does not in time. */
  async stop() {
    this.#process.stdin.end();
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), STOP_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  #hear(line) {
    let answer;
    try {
      answer = JSON.parse(line);
    } catch {
      return this.#note(line); // a peer's own output
    }
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#answers.push(answer);
    else waiting.resolve(answer);
  }

  #note(line) {
    this.said = (this.said + line + "\n").slice(-SAID_BYTES);
  }

  #failed(why) {
    return new Error(`${this.name}: ${why}\n${this.said}`.trim());
  }
}
