// Where a project's games are (docs/protocol/transports.md, Discovery).

import { CloseCode } from "../gen/codes.js";
import { PlayhallError } from "../core/errors.js";

const KEPT_MS = 60_000;

/** Asks a site for the addresses of a project, and keeps the answer for a minute. */
export class Discovery {
  readonly #origin: string;
  readonly #project: string;
  readonly #random: () => number;
  #addresses: string[] = [];
  #askedAt = -Infinity;

  constructor(origin: string, project: string, random: () => number) {
    this.#origin = origin;
    this.#project = project;
    this.#random = random;
  }

  /** A WebSocket address, at random. Throws PlayhallError: code 4002 if there is no such project, else 0. */
  async websocket(signal: AbortSignal): Promise<string> {
    if (this.#addresses.length === 0 || performance.now() - this.#askedAt > KEPT_MS) {
      this.#addresses = await this.#ask(signal);
      this.#askedAt = performance.now();
    }
    return this.#addresses[Math.floor(this.#random() * this.#addresses.length)]!;
  }

  /** Whether there is another address to try than the one that was given. */
  get hasOthers(): boolean {
    return this.#addresses.length > 1;
  }

  /** An address did not work: try the others, and ask again when there are none. */
  failed(address: string): void {
    this.#addresses = this.#addresses.filter((other) => other !== address);
  }

  async #ask(signal: AbortSignal): Promise<string[]> {
    const url = new URL(`/v1/projects/${encodeURIComponent(this.#project)}/endpoints`, this.#origin);
    const response = await fetch(url, { signal });
    if (response.status === 404) {
      throw new PlayhallError(CloseCode.ROOM_NOT_FOUND, `${this.#origin} has no project "${this.#project}"`);
    }
    if (!response.ok) throw new PlayhallError(0, `${url.href} answered ${response.status}`);
    return addressesIn(await response.json(), url.href);
  }
}

function addressesIn(answer: unknown, url: string): string[] {
  const list =
    typeof answer === "object" && answer !== null ? (answer as { websocket?: unknown }).websocket : undefined;
  const addresses = Array.isArray(list) ? list.filter((each): each is string => typeof each === "string") : [];
  if (addresses.length === 0) throw new PlayhallError(0, `${url} names no WebSocket address`);
  return addresses;
}
