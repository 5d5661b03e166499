// Close codes and API errors. Generated from protos/codes.toml by `make gen`.

/** Whether and when a client comes back after a close. */
export type Reconnect = "never" | "backoff" | "now";

/** Why a connection was closed. Any number that is not here means reconnect "backoff". */
export const CloseCode = {
  PROTOCOL: 4000,
  UNAUTHENTICATED: 4001,
  ROOM_NOT_FOUND: 4002,
  ROOM_FULL: 4003,
  SCHEMA_MISMATCH: 4004,
  LIMIT_EXCEEDED: 4005,
  KICKED: 4006,
  ROOM_STOPPED: 4007,
  ROOM_MOVED: 4008,
  QUOTA_EXCEEDED: 4009,
  WAKE_TIMEOUT: 4010,
  HIBERNATED: 4011,
  REPLACED: 4012,
  WRONG_ROOM_TYPE: 4015,
} as const;
export type CloseCode = (typeof CloseCode)[keyof typeof CloseCode];

export interface CloseInfo {
  readonly name: keyof typeof CloseCode;
  readonly reconnect: Reconnect;
  readonly help: string;
}

export const CLOSES: Readonly<Record<CloseCode, CloseInfo>> = {
  4000: { name: "PROTOCOL", reconnect: "never", help: "The frame does not follow the protocol, or its version is not spoken here. Update the SDK." },
  4001: { name: "UNAUTHENTICATED", reconnect: "never", help: "The token is invalid, expired, for another room, or revoked; or guests are not allowed. Get a new token." },
  4002: { name: "ROOM_NOT_FOUND", reconnect: "never", help: "There is no such project or room, clients may not create rooms, or the room was deleted." },
  4003: { name: "ROOM_FULL", reconnect: "never", help: "Every seat of the room is taken." },
  4004: { name: "SCHEMA_MISMATCH", reconnect: "never", help: "Client and room were built from different schemas. Reload the page to get the client of the room's build." },
  4005: { name: "LIMIT_EXCEEDED", reconnect: "backoff", help: "A frame was too big, there were too many of them, or nothing was read for 15 s." },
  4006: { name: "KICKED", reconnect: "never", help: "The room kicked or banned the player, or refused the join." },
  4007: { name: "ROOM_STOPPED", reconnect: "never", help: "Room code raised an error and the room stopped. Connecting again wakes it from its last saved state; the error is in the log." },
  4008: { name: "ROOM_MOVED", reconnect: "now", help: "The room restarts or moves. The client comes back by itself." },
  4009: { name: "QUOTA_EXCEEDED", reconnect: "never", help: "A quota of the project is used up." },
  4010: { name: "WAKE_TIMEOUT", reconnect: "backoff", help: "The room took over 10 s to start. It goes on starting; the client comes back by itself." },
  4011: { name: "HIBERNATED", reconnect: "never", help: "The room chose to hibernate. Connecting again wakes it; offer a rejoin." },
  4012: { name: "REPLACED", reconnect: "never", help: "The player connected elsewhere." },
  4015: { name: "WRONG_ROOM_TYPE", reconnect: "never", help: "The room exists with another type, or the build has no room of the type asked for." },
};

/** Why a request failed. */
export const ErrorCode = {
  INVALID: "E_INVALID",
  UNAUTHENTICATED: "E_UNAUTHENTICATED",
  FORBIDDEN: "E_FORBIDDEN",
  UNKNOWN: "E_UNKNOWN",
  EXISTS: "E_EXISTS",
  VERSION: "E_VERSION",
  TYPE: "E_TYPE",
  REJECTED: "E_REJECTED",
  QUOTA: "E_QUOTA",
  LIMIT: "E_LIMIT",
  SPENDING: "E_SPENDING",
  FULL: "E_FULL",
  UNAVAILABLE: "E_UNAVAILABLE",
  BUSY: "E_BUSY",
  STALE_BUILD: "E_STALE_BUILD",
  WRONG_SHARD: "E_WRONG_SHARD",
  FENCED: "E_FENCED",
  STATE_MISSING: "E_STATE_MISSING",
  DAMAGED: "E_DAMAGED",
  STALE_VOLUME: "E_STALE_VOLUME",
  EMPTY_VOLUME: "E_EMPTY_VOLUME",
  INTERNAL: "E_INTERNAL",
} as const;
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

export interface ErrorInfo {
  readonly http: number;
  readonly help: string;
}

export const ERRORS: Readonly<Record<ErrorCode, ErrorInfo>> = {
  E_INVALID: { http: 400, help: "A value of the request is missing, malformed or out of range; the message names it." },
  E_UNAUTHENTICATED: { http: 401, help: "No valid key or token came with the request." },
  E_FORBIDDEN: { http: 403, help: "The key or player may not do this, or a project setting does not allow it." },
  E_UNKNOWN: { http: 404, help: "What the request names does not exist." },
  E_EXISTS: { http: 409, help: "The name is taken." },
  E_VERSION: { http: 409, help: "The value was changed since the version the request names. Read it again." },
  E_TYPE: { http: 422, help: "The stored value is not of the type this operation needs." },
  E_REJECTED: { http: 422, help: "Room code refused the request, or raised while it handled it." },
  E_QUOTA: { http: 413, help: "The value, or all values together, would pass a size limit." },
  E_LIMIT: { http: 429, help: "Too many requests at once or in a short time. Wait and try again." },
  E_SPENDING: { http: 429, help: "A quota of the project is used up." },
  E_FULL: { http: 507, help: "The room is full, or the store has no space left." },
  E_UNAVAILABLE: { http: 503, help: "A service this needs did not answer in time. Whether a write took effect is unknown." },
  E_BUSY: { http: 503, help: "No host has room for this now." },
  E_STALE_BUILD: { http: 409, help: "The request names an older build than the one the room already ran on." },
  E_WRONG_SHARD: { http: 409, help: "Another shard owns this room; read the shard map again." },
  E_FENCED: { http: 409, help: "Another generation of the room holds the grant; this one must stop." },
  E_STATE_MISSING: { http: 500, help: "The registry says the room has state, and none was found. Nothing was started, so nothing was overwritten." },
  E_DAMAGED: { http: 500, help: "The saved state does not match its checksum." },
  E_STALE_VOLUME: { http: 500, help: "The shard's volume is older than what the database knows of it. Never restore a shard volume from a snapshot." },
  E_EMPTY_VOLUME: { http: 500, help: "A known shard started on an empty volume. Start it with replace once the old volume is known to be lost." },
  E_INTERNAL: { http: 500, help: "A fault in Playhall. The log of the service has it under the request's id." },
};
