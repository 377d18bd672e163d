/**
 * The node-link engine: one authenticated TCP connection per pair of nodes, with calls and streams. README.md states what it promises.
 */
export { Link, type LinkHandler, MAX_CALL_BYTES } from "./link.ts";
export { LinkError, type LinkFailure } from "./link-failure.ts";
export { type LinkSecurity } from "./link-socket.ts";
export { LinkStream, type StreamHandler } from "./link-stream.ts";
export { Links, type LinksOptions, type Peer } from "./links.ts";
export { LINK_VERSIONS } from "./handshake.ts";
