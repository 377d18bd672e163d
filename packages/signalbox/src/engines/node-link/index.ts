/**
 * The node-link engine: one authenticated TCP connection per pair of nodes, with calls and streams. README.md states what it promises.
 */
export { Link, type LinkHandler } from "./link.ts";
export { LinkError, type LinkFailure } from "./link-failure.ts";
export { LinkStream } from "./link-stream.ts";
export { Links, type Peer } from "./links.ts";
export { linkProcesses } from "./process-link.ts";
export { LINK_VERSIONS } from "./handshake.ts";
export {
  decodePacket,
  encodePacket,
  encodeStreamHead,
  type Packet,
  PacketError,
  StreamHeadReader,
} from "./packet.ts";
export { encodeFloat64, encodeItemHeader, encodeUint32s } from "./numbers.ts";
