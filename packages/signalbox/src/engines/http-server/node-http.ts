/**
 * node:http without what it does not need. An `import` of a built-in module reads every export, and among those of node:http is
 * `WebSocket`: with it comes the whole of node's fetch, 12 MB of memory that a server without it never uses. Asking for the module
 * itself reads nothing. Types may be imported from `node:http` as always.
 */
const http = process.getBuiltinModule("node:http");

export const { Agent, createServer, IncomingMessage, request, ServerResponse, STATUS_CODES } = http;
