// What the core is made with, and what it says: orders to a transport, and events for the page.

import type { PlayhallError } from "./errors.js";
import type { Payload } from "./frames.js";
import type { Happening } from "./replica.js";
import type { Schema } from "./schema.js";

export interface CoreOptions {
  readonly schema: Schema;
  readonly project: string;
  readonly room: string;
  /** Empty: `default`. */
  readonly roomType: string;
  /** The player's token; empty for a guest. */
  readonly token: string;
  /** What this guest was given before; empty for a new one. */
  readonly guestToken: string;
  /** 16 random bytes. */
  readonly session: Uint8Array;
  readonly sdk: string;
  /** How long the first connect may take, reconnects included. */
  readonly timeoutMs: number;
  /** Numbers from 0 up to 1. */
  readonly random: () => number;
  /** Something was written that waits to be sent: `timer` is due at the end of the turn. */
  readonly wrote: () => void;
}

/** `connecting` until the first state is in, then `open`; `reconnecting` after a loss; `closed` for good. */
export type Status = "connecting" | "open" | "reconnecting" | "closed";

export type CoreEvent =
  | { readonly name: "ready" }
  | { readonly name: "waking" }
  | { readonly name: "disconnected"; readonly code: number }
  | { readonly name: "restored" }
  | { readonly name: "closed"; readonly error: PlayhallError }
  | { readonly name: "message"; readonly payload: Payload; readonly unreliable: boolean }
  | { readonly name: "answered"; readonly call: number; readonly answer: Payload }
  | { readonly name: "failed"; readonly call: number; readonly error: PlayhallError }
  | { readonly name: "updated"; readonly happenings: readonly Happening[]; readonly tick: number }
  | { readonly name: "sleep" }
  | { readonly name: "wake" }
  | { readonly name: "voice"; readonly url: string; readonly token: string }
  | { readonly name: "peers"; readonly hears: readonly string[]; readonly heardBy: readonly string[] };

export type Output =
  | { readonly type: "open" }
  | { readonly type: "send"; readonly frame: Uint8Array; readonly unreliable: boolean }
  | { readonly type: "close"; readonly code: number; readonly reason: string }
  /** Keep this guest token; empty: forget the one there is. */
  | { readonly type: "token"; readonly token: string }
  | { readonly type: "event"; readonly event: CoreEvent };
