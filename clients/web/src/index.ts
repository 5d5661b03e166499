// @playhall/client: what pages import. docs/protocol/typescript-schema.md says what `playhall gen` makes of it.

export { PlayhallError } from "./core/errors.js";
export type { Entities, PresenceList } from "./core/entities.js";
export type { Field, FieldType } from "./core/fields.js";
export type { Payload } from "./core/frames.js";
export type { Json } from "./core/json.js";
export type { Status } from "./core/outputs.js";
export { isBot } from "./core/players.js";
export { call, defineSchema, input, kind } from "./core/schema.js";
export type { CallKind, Calls, Entity, InputKind, Kind, PresenceEntry, Schema } from "./core/schema.js";
export type { Stats } from "./core/stats.js";
export { CloseCode, ErrorCode } from "./gen/codes.js";
export { reloadForNewBuild } from "./reload.js";
export { connect, RoomClient } from "./room_client.js";
export type { CallOptions, ConnectOptions, RoomEvents } from "./room_client.js";
export type { Simulation } from "./transport/simulate.js";
export type { Dial, Transport, TransportHandlers } from "./transport/transport.js";
export { VERSION } from "./version.js";
