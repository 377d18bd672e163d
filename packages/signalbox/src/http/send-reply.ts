/** Writes the reply of a management handler: an envelope, a raw body, or a stream. */
import type { HttpResponse } from "../engines/http-server/index.ts";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Authenticator, Principal } from "../accounts/index.ts";
import type { Reply } from "./route.ts";

const JSON_TYPE = "application/json; charset=utf-8";
/** ASCII text has the same bytes in latin1 and UTF-8; Node.js writes latin1 several times faster. */
const ASCII = "latin1";
const EVENT_STREAM = "text/event-stream";

/** Replies are private: caches must not store them, and browsers must not guess their type. */
const PRIVATE = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** The properties of a request that its reply depends on. */
export interface ReplyTarget {
  readonly isHead: boolean;
  readonly principal: Principal;
}

/** Returns a promise only for a stream. A stream ends when the credential of the request ends. */
export function sendReply(
  response: HttpResponse,
  reply: Reply,
  target: ReplyTarget,
  authenticator: Authenticator,
): void | Promise<void> {
  const status = reply.status ?? 200;
  if (reply.raw !== undefined && typeof reply.raw.body === "object" && !Buffer.isBuffer(reply.raw.body)) {
    const { contentType, body } = reply.raw;
    const sendHead = () =>
      response.writeHead(status, { ...PRIVATE, ...reply.headers, "content-type": contentType });
    return sendStream(response, { contentType, body, sendHead }, target, authenticator);
  }
  if (status === 204 || status === 304) {
    response.writeHead(status, { ...PRIVATE, ...reply.headers });
    response.end();
    return;
  }
  const body = reply.raw === undefined ? envelope(reply) : (reply.raw.body as string | Buffer);
  const length = Buffer.byteLength(body);
  // Node.js reads a flat list faster than an object.
  const headers = ["content-type", reply.raw?.contentType ?? JSON_TYPE, "content-length", String(length)];
  headers.push("cache-control", "no-store", "x-content-type-options", "nosniff");
  for (const name in reply.headers) {
    if (!Object.hasOwn(PRIVATE, name)) headers.push(name, reply.headers[name] ?? "");
  }
  response.writeHead(status, headers);
  if (target.isHead) response.end();
  else if (typeof body === "string" && length === body.length) response.end(body, ASCII);
  else response.end(body);
}

interface StreamReply {
  readonly contentType: string;
  readonly body: Readable;
  readonly sendHead: () => void;
}

async function sendStream(
  response: HttpResponse,
  { contentType, body, sendHead }: StreamReply,
  { isHead, principal }: ReplyTarget,
  authenticator: Authenticator,
): Promise<void> {
  if (isHead) {
    body.destroy();
    sendHead();
    response.end();
    return;
  }
  let hasCredential = true;
  const stopWatching = authenticator.watch(principal, () => {
    hasCredential = false;
    body.destroy();
  });
  try {
    // A body whose first read fails is answered with an error. An event stream may be silent for long.
    if (contentType !== EVENT_STREAM) await firstPart(body, response);
    sendHead();
  } catch (error) {
    stopWatching();
    throw error;
  }
  try {
    // `end: false`: otherwise the pipeline would destroy the response together with the body.
    await pipeline(body, response, { end: false });
    response.end();
  } catch (error) {
    // An event stream may end at any time; any other incomplete body must not look complete.
    if (!hasCredential && contentType === EVENT_STREAM) response.end();
    else response.destroy();
    // A disconnected client or an ended credential is not an error.
    if (!isPrematureClose(error)) throw error;
  } finally {
    stopWatching();
  }
}

/** Settles when the body can be read, has ended, or has failed. A client that disconnects ends it. */
async function firstPart(body: Readable, response: HttpResponse): Promise<void> {
  const abandon = () => body.destroy();
  response.once("close", abandon);
  let settle: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      settle = resolve;
      fail = reject;
      body.once("readable", settle).once("end", settle).once("close", settle).once("error", fail);
    });
  } finally {
    response.off("close", abandon);
    body.off("readable", settle).off("end", settle).off("close", settle).off("error", fail);
  }
}

function envelope(reply: Reply): string {
  const messages = reply.messages === undefined ? "[]" : JSON.stringify(reply.messages);
  const result = reply.resultJson ?? JSON.stringify(reply.result ?? null);
  const info = reply.resultInfo === undefined ? "" : `,"result_info":${JSON.stringify(reply.resultInfo)}`;
  return `{"success":true,"errors":[],"messages":${messages},"result":${result}${info}}`;
}

function isPrematureClose(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_STREAM_PREMATURE_CLOSE";
}
