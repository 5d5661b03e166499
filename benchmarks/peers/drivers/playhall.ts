// What the driver takes of the browser client; bench.mjs bundles it to build/client.mjs.

export { RoomClient } from "../../../clients/web/src/room_client.js";
export {
  encodeHello,
  encodeMessage,
  encodePing,
  encodeResume,
  FrameType,
} from "../../../clients/web/src/core/frames.js";
export { Reader } from "../../../clients/web/src/core/values.js";
export * as full from "../build/shared.gen.js";
export * as q16 from "../build/shared_q16.gen.js";
