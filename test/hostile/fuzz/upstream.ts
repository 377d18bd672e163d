/**
 * Responses of a provider, valid and broken, cut anywhere, read by the gateway's parser and by node:http (llhttp).
 * Both must agree on verdict, status, headers and body; the allowed differences are listed below with their reasons.
 */
import { once } from "node:events";
import { type IncomingMessage, request, validateHeaderName, validateHeaderValue } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { ResponseParser } from "../../../packages/signalbox/src/engines/relay/response-parser.ts";
import { UpstreamFailure } from "../../../packages/signalbox/src/engines/relay/upstream.ts";
import { pick, type Random } from "../../support/ledger/random.ts";
import { chance, cutAt, mutate, randomBytes, repeat, splits, upTo } from "./bytes.ts";
import { type Arena, defineTarget } from "./fuzz-target.ts";

interface Input {
  readonly isHead: boolean;
  readonly bytes: string;
  readonly splits: readonly number[];
}

interface Reading {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
}

/** The result of a reader; null: refused or incomplete. */
type Verdict = Reading | null;

/** Intended differences, each with its reason; every other difference is a failure. */
const EXCEPTIONS: readonly {
  readonly why: string;
  holds(input: Input, ours: Verdict, theirs: Verdict): boolean;
}[] = [
  {
    why: "where both framings are announced, chunked counts and the length is not passed on (RFC 9112, section 6.3); llhttp refuses",
    holds: ({ bytes }, ours, theirs) =>
      theirs === null && ours !== null && /transfer-encoding/i.test(bytes) && /content-length/i.test(bytes),
  },
  {
    why: "a coding that is not chunked is refused, never passed on as a body that lasts until the connection closes",
    holds: ({ bytes }, ours) => ours === null && /transfer-encoding/i.test(bytes),
  },
  {
    why: "a connection is never handed over, so 101 is refused",
    holds: ({ bytes }, ours) => ours === null && /HTTP\/1\.[01] 101/.test(bytes),
  },
  {
    why: "line ends are CR LF: bare line feeds, which llhttp takes in some places, are refused",
    holds: ({ bytes }, ours) => ours === null && /[^\r]\n|^\n/.test(bytes),
  },
  {
    why: "lengths beyond what a number holds exactly, sizes of chunks with more digits than that, and several lengths, equal or not, are refused",
    holds: ({ bytes }, ours) =>
      ours === null &&
      (/content-length:[ \t]*\d{16}/i.test(bytes) ||
        /[0-9a-f]{14}/i.test(bytes) ||
        (bytes.match(/content-length/gi)?.length ?? 0) > 1),
  },
  {
    why: "versions other than 1.0 and 1.1 and status codes outside 100 to 999 are refused",
    holds: ({ bytes }, ours) => ours === null && !/^HTTP\/1\.[01] [1-9]\d\d[ \r]/.test(bytes),
  },
  {
    why: "node's client reads a response after an informational one only on a connection of its own; such heads are compared as heads",
    holds: ({ bytes }, ours) => ours === null && /^HTTP\/1\.1 1\d\d/.test(bytes),
  },
  {
    why: "a folded header line is refused (RFC 9112, section 5.2 lets a client replace it)",
    holds: ({ bytes }, ours) => ours === null && /\r\n[ \t]/.test(bytes),
  },
];

const NAMES = [
  "Content-Type",
  "X-Thing",
  "Set-Cookie",
  "ETag",
  "Server",
  "Connection",
  "Keep-Alive",
  "x",
  "Content-Encoding",
  "__proto__",
];
const VALUES = [
  "",
  "text/plain",
  "a=b; Path=/",
  '"x"',
  "close",
  "keep-alive",
  "timeout=5",
  "timeout=x",
  "\xe9\xff",
  "a, b",
  "  padded  ",
  "\ttab",
  "a\x0bb",
  "v".repeat(300),
  "[object]",
];
const STATUS_LINES = [
  "HTTP/1.1 200 OK",
  "HTTP/1.1 200 OK",
  "HTTP/1.1 200 OK",
  "HTTP/1.1 200",
  "HTTP/1.1 200 ",
  "HTTP/1.0 200 OK",
  "HTTP/1.1 404 Not Found",
  "HTTP/1.1 204 No Content",
  "HTTP/1.1 304 Not Modified",
  "HTTP/1.1 503 \xe9",
  "HTTP/1.1 999 x",
  "HTTP/1.1 101 Switching",
  "HTTP/2 200",
  "HTTP/1.2 200 OK",
  "HTTP/1.1 20 OK",
  "ICY 200 OK",
];
const FRAMINGS = [
  "Transfer-Encoding: gzip, chunked",
  "Transfer-Encoding: chunked, chunked",
  "Transfer-Encoding: \x0bchunked",
  "Transfer-Encoding: chunked\x0b",
  "Transfer-Encoding : chunked",
  "Content-Length: 3, 3",
  "Content-Length: +3",
  "Content-Length: 3\r",
  "Content-Length: \xa02",
  "Content-Length: 0x3",
  "Content-Length:",
  "Content-Length: -1",
  "Content-Length: 99999999999999999999",
];

export const upstreamTarget = defineTarget<Input>({
  name: "upstream",
  summary: "a provider's responses, read as llhttp reads them",
  shortRun: 1200,
  width: 8,
  generate(random) {
    const early = chance(random, 0.1)
      ? pick(random, ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"])
      : "";
    const text = early + response(random);
    const bytes = chance(random, 0.4) ? mutate(random, text) : text;
    return { isHead: chance(random, 0.05), bytes, splits: splits(random, bytes.length, 6) };
  },
  open,
});

function response(random: Random): string {
  const headers = repeat(random, 5, () => `${pick(random, NAMES)}: ${pick(random, VALUES)}`);
  let body = chance(random, 0.7) ? randomBytes(random, 80) : "";
  switch (upTo(random, 5)) {
    case 0:
      break;
    case 1:
    case 2:
      headers.push(`${pick(random, ["Content-Length", "content-length", "CONTENT-LENGTH"])}: ${body.length}`);
      break;
    default:
      headers.push(
        `${pick(random, ["Transfer-Encoding", "transfer-encoding"])}: ${pick(random, ["chunked", "chunked", "Chunked"])}`,
      );
      body = chunked(random, body);
  }
  if (chance(random, 0.1)) headers.push(pick(random, FRAMINGS));
  return `${[pick(random, STATUS_LINES), ...headers].join("\r\n")}\r\n\r\n${body}${chance(random, 0.05) ? "extra bytes" : ""}`;
}

function chunked(random: Random, body: string): string {
  const chunks = cutAt(body, splits(random, body.length, 3)).map((part) => {
    const size = part.length.toString(16);
    const shown = chance(random, 0.2) ? size.toUpperCase() : chance(random, 0.1) ? `00${size}` : size;
    return `${shown}${chance(random, 0.1) ? pick(random, [";a=b", ";a", ' ;a="b"', ";"]) : ""}\r\n${part.toString("latin1")}\r\n`;
  });
  const trailers = chance(random, 0.1)
    ? pick(random, ["X-Trailer: 1\r\n", "X-Trailer\r\n", "Content-Length: 5\r\n"])
    : "";
  return `${chunks.join("")}0\r\n${trailers}\r\n`;
}

async function open(): Promise<Arena<Input>> {
  const playing = new Map<string, Input>();
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    let head = "";
    socket.setEncoding("latin1").on("data", (text: string) => {
      head += text;
      if (!head.endsWith("\r\n\r\n")) return;
      const input = playing.get(/^\w+ \/(\d+) /.exec(head)?.[1] ?? "");
      socket.end(Buffer.from(input?.bytes ?? "", "latin1"));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  let serial = 0;
  return {
    async attempt(input) {
      const id = String(serial++);
      playing.set(id, input);
      const theirs = await readByNode(port, id, input.isHead);
      playing.delete(id);
      const whole = readByUs(input, cutAt(input.bytes, []));
      const ours = readByUs(input, cutAt(input.bytes, input.splits));
      if (!isSame(whole, ours)) throw new Error(`cut differently, ${show(ours)} instead of ${show(whole)}`);
      if (isSame(ours, theirs) || EXCEPTIONS.some((exception) => exception.holds(input, ours, theirs)))
        return;
      throw new Error(`we read ${show(ours)}, llhttp reads ${show(theirs)}`);
    },
    check: async () => undefined,
    async close() {
      server.close();
      await once(server, "close");
    },
  };
}

function readByUs({ isHead }: Input, parts: readonly Buffer[]): Verdict {
  const parser = new ResponseParser(16_384);
  let head: { status: number; rawHeaders: readonly string[] } | null = null;
  let body = "";
  let lasts = 0;
  const events = {
    onHead: (value: { status: number; rawHeaders: readonly string[] }) => {
      if (head !== null) throw new Error("onHead came twice");
      head = value;
    },
    onBody: (chunk: Buffer, isLast: boolean) => {
      if (lasts > 0) throw new Error("a body went on after its end");
      body += chunk.toString("latin1");
      if (isLast) lasts += 1;
    },
  };
  parser.begin(events, isHead);
  try {
    for (const part of parts) {
      // The parser removes the framing in place and ignores bytes after a response.
      if (!parser.isDone) parser.push(Buffer.from(part));
    }
    if (!parser.finish()) return null;
  } catch (error) {
    if (error instanceof UpstreamFailure) return null;
    throw error;
  }
  if (head === null || lasts !== 1) throw new Error(`done with ${lasts} ends`);
  const { status, rawHeaders } = head as { status: number; rawHeaders: readonly string[] };
  return isWritable(rawHeaders) ? { status, headers: [...rawHeaders], body } : null;
}

/** Names and values are checked by node:http when they are written to the client. */
function isWritable(rawHeaders: readonly string[]): boolean {
  try {
    for (let i = 0; i < rawHeaders.length; i += 2) {
      validateHeaderName(rawHeaders[i] ?? "");
      validateHeaderValue(rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
    }
    return true;
  } catch {
    return false;
  }
}

async function readByNode(port: number, id: string, isHead: boolean): Promise<Verdict> {
  return new Promise((resolve) => {
    const call = request({
      host: "127.0.0.1",
      port,
      path: `/${id}`,
      method: isHead ? "HEAD" : "GET",
      agent: false,
    });
    let seen: IncomingMessage | null = null;
    // Bytes after a complete response are an error of the connection, not of the response.
    call.on("error", () => {
      if (seen?.complete !== true) resolve(null);
    });
    call.once("upgrade", (_response, socket) => {
      socket.destroy();
      resolve(null);
    });
    call.once("response", (response: IncomingMessage) => {
      seen = response;
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", () => resolve(null));
      response.once("close", () => {
        const { complete, statusCode = 0, rawHeaders } = response;
        const body = Buffer.concat(chunks).toString("latin1");
        resolve(complete ? { status: statusCode, headers: rawHeaders, body } : null);
      });
    });
    call.end();
  });
}

function isSame(a: Verdict, b: Verdict): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function show(verdict: Verdict): string {
  return verdict === null ? "nothing" : JSON.stringify(verdict).slice(0, 400);
}
