// The token that makes a returning guest the same player: all tabs of a browser share it.

/** Where one guest token is kept between visits. A browser that keeps nothing makes a new guest of each visit. */
export class GuestToken {
  readonly #key: string;

  constructor(project: string) {
    this.#key = `playhall.guest.${project}`;
  }

  load(): string {
    return this.#withStorage((storage) => storage.getItem(this.#key) ?? "") ?? "";
  }

  /** Empty forgets it. */
  save(token: string): void {
    this.#withStorage((storage) => {
      if (token === "") storage.removeItem(this.#key);
      else storage.setItem(this.#key, token);
    });
  }

  // Storage is absent outside browsers, and throws where the visitor forbids it or it is full. The token in memory
  // is good as long as the page, so there is nothing to report.
  #withStorage<T>(use: (storage: Storage) => T): T | undefined {
    try {
      return use(localStorage);
    } catch {
      return undefined;
    }
  }
}
