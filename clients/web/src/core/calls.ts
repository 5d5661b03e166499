// Calls that wait for their answers. Times are in milliseconds.

interface Waiting {
  readonly name: string;
  readonly until: number;
}

export class Calls {
  /** Never used twice, whatever the connection: at the 120 a second a room takes, the numbers last for a year. */
  #last = 0;
  readonly #waiting = new Map<number, Waiting>();

  /** A number for a call. */
  claim(): number {
    return ++this.#last;
  }

  wait(call: number, name: string, until: number): void {
    this.#waiting.set(call, { name, until });
  }

  /** An answer came, or never will. Returns the call's name; undefined if nothing waits for it any more. */
  end(call: number): string | undefined {
    const waiting = this.#waiting.get(call);
    this.#waiting.delete(call);
    return waiting?.name;
  }

  /** All that wait, oldest first. */
  all(): number[] {
    return [...this.#waiting.keys()];
  }

  /** Those whose time is up. */
  late(now: number): number[] {
    return this.all().filter((call) => this.#waiting.get(call)!.until <= now);
  }

  /** When the time of the next one is up; Infinity for never. */
  next(): number {
    let next = Infinity;
    for (const { until } of this.#waiting.values()) next = Math.min(next, until);
    return next;
  }
}
