/**
 * Bytes of a connection in front of two parsers: that of this server for plain requests, and llhttp in node:http. Whatever the first one accepts,
 * the second one accepts with the same method, target, headers and body, at the same place.
 */
import { createServer, IncomingMessage, type Server } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { Duplex } from "node:stream";
import { toHeaderRecord } from "../../../packages/signalbox/src/engines/http-server/header-record.ts";
import {
  INCOMPLETE,
  OTHER,
  readPlainHead,
} from "../../../packages/signalbox/src/engines/http-server/plain-head.ts";
import { type Arena, defineTarget } from "./fuzz-target.ts";
import { requestBytes } from "./request-bytes.ts";

interface Request {
  readonly method: string | undefined;
  readonly target: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly headers: object;
  /** Null: not all of it has arrived. */
  readonly body: string | null;
}

const MAX_HEAD_BYTES = 16 * 1024;

export const plainRequestsTarget = defineTarget<string>({
  name: "plain-requests",
  summary: "requests that this server parses itself, against llhttp",
  shortRun: 20_000,
  width: 200,
  generate: requestBytes,
  open,
});

/** Requests that were accepted, of all runs of this process: a comparison that compares nothing is no test. */
export const accepted = { requests: 0, withBody: 0, inputs: 0 };

async function open(): Promise<Arena<string>> {
  const server = createServer({
    IncomingMessage: Recorded,
    maxHeaderSize: 32 * 1024,
    requireHostHeader: false,
  });
  return {
    async attempt(input) {
      accepted.inputs += 1;
      const bytes = Buffer.from(input, "latin1");
      const own = readOwn(bytes);
      if (own.length === 0) return;
      const nodes = readByNode(server, bytes);
      own.forEach((request, i) => {
        accepted.requests += 1;
        if (request.body !== null && request.body !== "") accepted.withBody += 1;
        const other = nodes[i];
        if (!isDeepStrictEqual(request, other))
          throw new Error(
            `request ${i}: ${JSON.stringify(request)} is for node:http ${JSON.stringify(other)}`,
          );
      });
      checkBeginnings(bytes);
    },
    // The streams of this batch are closed.
    check: () => new Promise((resolve) => void setImmediate(resolve)),
    close: async () => void server.close(),
  };
}

function readOwn(bytes: Buffer): Request[] {
  const requests: Request[] = [];
  let at = 0;
  while (at < bytes.length) {
    const head = readPlainHead(bytes, at, MAX_HEAD_BYTES);
    if (head === OTHER || head === INCOMPLETE) break;
    const end = head.end + head.length;
    requests.push({
      method: head.method,
      target: head.target,
      rawHeaders: head.rawHeaders,
      headers: { ...toHeaderRecord(head.rawHeaders) },
      body: end > bytes.length ? null : bytes.toString("latin1", head.end, end),
    });
    if (head.isLast) break;
    at = end;
  }
  return requests;
}

/** A head is accepted as a whole or not at all, wherever it is cut. */
function checkBeginnings(bytes: Buffer): void {
  const first = readPlainHead(bytes, 0, MAX_HEAD_BYTES);
  if (typeof first === "string") return;
  for (const size of [first.end - 1, first.end - 3, first.end >> 1, 9, 12]) {
    const cut = readPlainHead(bytes.subarray(0, size), 0, MAX_HEAD_BYTES);
    if (cut !== INCOMPLETE) throw new Error(`the first ${size} bytes of a head are not the beginning of one`);
  }
}

function readByNode(server: Server, bytes: Buffer): Request[] {
  const wire = new Wire();
  const messages: Recorded[] = [];
  const take = (message: IncomingMessage) => void messages.push(message as Recorded);
  // node:http reads a stream that is passed to it by events, at once.
  server.on("request", take).on("checkContinue", take).on("checkExpectation", take).on("upgrade", take);
  server.on("clientError", () => undefined);
  server.emit("connection", wire);
  wire.emit("data", bytes);
  for (const event of ["request", "checkContinue", "checkExpectation", "upgrade", "clientError"])
    server.removeAllListeners(event);
  wire.destroy();
  return messages.map((message) => ({
    method: message.method,
    target: message.url,
    rawHeaders: message.rawHeaders,
    headers: { ...message.headers },
    body: message.complete ? Buffer.concat(message.pieces).toString("latin1") : null,
  }));
}

/** Keeps its body instead of streaming it. */
class Recorded extends IncomingMessage {
  readonly pieces: Buffer[] = [];

  override push(chunk: Buffer | null): boolean {
    if (chunk !== null) this.pieces.push(Buffer.from(chunk));
    return true;
  }
}

class Wire extends Duplex {
  override _read(): void {}

  override _write(_chunk: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    callback();
  }
}
