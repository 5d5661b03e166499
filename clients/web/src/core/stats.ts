// Bytes by category, for pages that show them and for those who wonder where they go.

/** Bytes by category: `room.stats.sent["message"]`. */
export class Stats {
  /** Bytes of frames sent: hello, resume, ping, message, unreliable, call, write, leave. */
  readonly sent: Record<string, number> = {};
  /** Bytes of frames received: welcome, update, message, unreliable, reply, pong and so on. */
  readonly received: Record<string, number> = {};

  /** For the client. */
  count(direction: "sent" | "received", category: string, bytes: number): void {
    const counts = this[direction];
    counts[category] = (counts[category] ?? 0) + bytes;
  }
}
