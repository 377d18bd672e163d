/** Writes what a management handler returned: the envelope, a body as it is, or a stream. */
import type { HttpResponse } from "../engines/http-server/index.ts";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Principal } from "../accounts/index.ts";
import type { Reply } from "./route.ts";

const JSON_TYPE = "application/json; charset=utf-8";
/** Text with as many bytes as characters is the same in latin1 as in UTF-8, and node copies it several times faster. */
const ASCII = "latin1";
const EVENT_STREAM = "text/event-stream";

/** Answers hold what only the holder of a credential may see: no cache keeps them, and no browser guesses their type. */
const PRIVATE = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** Calls back when the principal's credential is revoked or expires; the result stops that. */
export type WatchCredential = (principal: Principal, onEnd: () => void) => () => void;

/** Writes the answer; a promise only for a stream, which takes its time and ends with its credential. */
export function sendReply(
  response: HttpResponse,
  reply: Reply,
  isHead: boolean,
  principal: Principal,
  watch: WatchCredential,
): void | Promise<void> {
  const status = reply.status ?? 200;
  if (reply.raw !== undefined && typeof reply.raw.body === "object" && !Buffer.isBuffer(reply.raw.body)) {
    const { contentType, body } = reply.raw;
    response.writeHead(status, { ...PRIVATE, ...reply.headers, "content-type": contentType });
    return sendStream(response, { contentType, body }, isHead, principal, watch);
  }
  if (status === 204) {
    response.writeHead(204, { ...PRIVATE, ...reply.headers });
    response.end();
    return;
  }
  const body = reply.raw === undefined ? envelope(reply) : (reply.raw.body as string | Buffer);
  const length = Buffer.byteLength(body);
  // A list of names and values: node reads it faster than an object.
  const headers = ["content-type", reply.raw?.contentType ?? JSON_TYPE, "content-length", String(length)];
  headers.push("cache-control", "no-store", "x-content-type-options", "nosniff");
  for (const name in reply.headers) {
    if (!Object.hasOwn(PRIVATE, name)) headers.push(name, reply.headers[name] ?? "");
  }
  response.writeHead(status, headers);
  if (isHead) response.end();
  else if (typeof body === "string" && length === body.length) response.end(body, ASCII);
  else response.end(body);
}

async function sendStream(
  response: HttpResponse,
  { contentType, body }: { readonly contentType: string; readonly body: Readable },
  isHead: boolean,
  principal: Principal,
  watch: WatchCredential,
): Promise<void> {
  if (isHead) {
    body.destroy();
    response.end();
    return;
  }
  let hasCredential = true;
  const stopWatching = watch(principal, () => {
    hasCredential = false;
    body.destroy();
  });
  try {
    // The answer's end is ours to choose: the pipeline would cut it when the body is destroyed.
    await pipeline(body, response, { end: false });
    response.end();
  } catch (error) {
    // A stream of events has no end of its own, so any end is a whole one; a part of anything else must not pass for the whole.
    if (!hasCredential && contentType === EVENT_STREAM) response.end();
    else response.destroy();
    // The reader of a stream may leave at any time, and its credential may end: that is the stream's end and not a failure.
    if (!isPrematureClose(error)) throw error;
  } finally {
    stopWatching();
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
