// Callbacks by key. One that throws is reported like any uncaught error, and stops no other.

type Callback<A extends unknown[]> = (...args: A) => void;

export class Listeners<K, A extends unknown[]> {
  readonly #byKey = new Map<K, Set<Callback<A>>>();

  /** Add a callback; the function returned takes it away again. */
  add(key: K, callback: Callback<A>): () => void {
    let callbacks = this.#byKey.get(key);
    if (callbacks === undefined) this.#byKey.set(key, (callbacks = new Set()));
    // A callback added twice is two callbacks, each with its own way out.
    const own: Callback<A> = (...args) => callback(...args);
    callbacks.add(own);
    return () => callbacks.delete(own);
  }

  has(key: K): boolean {
    return (this.#byKey.get(key)?.size ?? 0) > 0;
  }

  emit(key: K, ...args: A): void {
    for (const callback of [...(this.#byKey.get(key) ?? [])]) {
      try {
        callback(...args);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
