/**
 * node:http without its WebSocket. An `import` of a built-in module reads every export; reading `WebSocket` loads Node's fetch, 12 MB of memory
 * that the server never uses. `getBuiltinModule` reads no export. Types are imported from `node:http` as usual.
 * See README.md.
 */
const http = process.getBuiltinModule("node:http");

export const { Agent, createServer, IncomingMessage, request, ServerResponse, STATUS_CODES } = http;
export const { validateHeaderName, validateHeaderValue } = http;
export const { createServer: createSecureServer } = process.getBuiltinModule("node:https");
