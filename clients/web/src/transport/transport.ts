// What a connection is to the client. Each way of carrying frames is one shell like this; none decides anything.

/** A connection, or an attempt at one. */
export interface Transport {
  /** Send a frame; one that `mayBeLost` may travel where frames get lost. */
  send(frame: Uint8Array, mayBeLost: boolean): void;
  /** How many bytes of what was sent have not left yet. */
  readonly unsentBytes: number;
  /** Close for good. Nothing is told to the handlers afterwards. */
  close(code: number, reason: string): void;
}

/** Who is told of a connection. `closed` is said once, and last; it also ends an attempt that failed. */
export interface TransportHandlers {
  opened(): void;
  received(frame: Uint8Array): void;
  /** The server sent what no frame can be. */
  violated(reason: string): void;
  closed(code: number, reason: string): void;
}

/** Starts an attempt. */
export type Dial = (handlers: TransportHandlers) => Transport;

/** The close code of a connection that ended without one. */
export const ABNORMAL_CLOSE = 1_006;
