/** Responses of both engines of a listener: the same bytes. */
import { once } from "node:events";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { expect, it } from "vitest";
import type { HttpApplication, ListenerEngine } from "./application.ts";
import type { HttpRequest, HttpResponse } from "./http-exchange.ts";
import { Listener } from "./listener.ts";
import { PlainRequest } from "./plain-request.ts";

const LIMITS = {
  maxHeaderBytes: 16_384,
  headerTimeoutMs: 600_000,
  bodyTimeoutMs: 600_000,
  idleTimeoutMs: 65_000,
  maxConnections: 10,
};

type Answer = (request: HttpRequest, response: HttpResponse) => void;

/** All bytes that a listener sends back for some raw requests. */
async function bytesFrom(
  engine: ListenerEngine,
  answer: Answer,
  requests: readonly string[],
): Promise<string> {
  const application: HttpApplication = {
    requestId: () => "1",
    handle(request, response) {
      expect(request instanceof PlainRequest).toBe(engine === "own");
      answer(request, response);
    },
    upgrade: () => undefined,
    refuse: () => undefined,
    refusalText: () => "",
    ended: () => undefined,
    connection: () => undefined,
    malformed: () => undefined,
  };
  const listener = new Listener(application, LIMITS, null, engine);
  const { port } = await listener.listen("127.0.0.1", 0);
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.setEncoding("latin1").on("data", (data: string) => (text += data));
  socket.write(requests.join(""), "latin1");
  await once(socket, "close");
  listener.drain();
  await listener.close(0);
  return text.replaceAll(/^Date: .*\r\n/gm, "Date: now\r\n");
}

const get = (path: string, last = false, method = "GET") =>
  `${method} ${path} HTTP/1.1\r\nhost: x\r\n${last ? "connection: close\r\n" : ""}\r\n`;
const LAST = [get("/", true)];
const THREE = [get("/a"), get("/b"), get("/c", true)];
const BODY = Buffer.from("body with ü and \u{1f682}");
const list =
  (status: number, headers: string[], body?: Buffer | string): Answer =>
  (_, response) => {
    response.writeHead(status, [...headers]);
    response.end(body);
  };

const events: Answer = (_, response) => {
  response.writeHead(200, ["content-type", "text/event-stream"]);
  response.write(BODY);
  response.write("text é");
  response.write(Buffer.alloc(100_000, "large "));
  setImmediate(() => {
    response.write(BODY);
    response.write(Buffer.alloc(0));
    response.write(new Uint8Array([65, 66]));
    setImmediate(() => response.end());
  });
};
const late: Answer = (request, response) => {
  const send = () => {
    response.writeHead(200, { "content-type": "text/plain", "x-path": request.url ?? "" });
    response.write(BODY);
    response.end(BODY);
  };
  if (request.url === "/a") setTimeout(send, 20);
  else send();
};
const merged: Answer = (_, response) => {
  response.setHeader("X-One", "1");
  response.setHeader("Content-Type", "text/plain");
  response.setHeader("set-cookie", ["a=1", "b=2"]);
  response.appendHeader("Vary", "Origin");
  response.appendHeader("vary", "Accept");
  response.setHeader("x-gone", "x");
  response.removeHeader("X-Gone");
  expect(response.getHeaderNames()).toContain("x-one");
  expect(response.getHeaderNames()).not.toContain("x-gone");
  response.writeHead(201, { "content-type": "text/html", "x-three": "3" });
  expect(response.headersSent).toBe(true);
  response.end("<p>");
};

it.each<[string, Answer, readonly string[]]>([
  [
    "a body of known length",
    list(200, ["content-length", String(BODY.length), "x-text", "café"], BODY),
    LAST,
  ],
  ["a text of known length", list(200, ["content-length", "3", "x-text", "plain"], "abc"), LAST],
  ["a text that is not ASCII", list(200, ["content-length", "2"], "é"), LAST],
  ["a body of unknown length", list(200, ["content-type", "text/plain"], BODY), LAST],
  ["a text of unknown length", list(200, [], "café"), LAST],
  ["a large body", list(200, ["content-length", "200000"], Buffer.alloc(200_000, "x")), LAST],
  ["a large body of unknown length", list(200, [], Buffer.alloc(200_000, "x")), LAST],
  ["an empty body", list(200, ["content-length", "0"]), LAST],
  ["an empty body of unknown length", list(200, []), LAST],
  ["an empty piece at the end", list(200, [], Buffer.alloc(0)), LAST],
  ["no head", (_, response) => void response.end(), LAST],
  ["no head, with a text", (_, response) => void response.end("café"), LAST],
  ["no head, with bytes", (_, response) => void response.end(BODY), LAST],
  ["no head, in pieces", (_, response) => void (response.write("a"), response.end("b")), LAST],
  ["text in latin1", (_, response) => void response.writeHead(200).end("caf\u00e9", "latin1"), LAST],
  [
    "text in latin1 of known length",
    (_, response) => void response.writeHead(200, ["content-length", "4"]).end("caf\u00e9", "latin1"),
    LAST,
  ],
  ["a status without a known reason", list(799, [], BODY), LAST],
  [
    "a reason of its own",
    (_, response) => {
      response.statusMessage = "Fine";
      response.writeHead(200).end();
    },
    LAST,
  ],
  ["a status without a body", list(204, [], BODY), LAST],
  ["a status without a body, in chunks", list(204, ["transfer-encoding", "chunked"]), [get("/")]],
  ["304", list(304, ["etag", '"a"']), LAST],
  ["HEAD with a length", list(200, ["content-length", "7"], "ignored"), [get("/", true, "HEAD")]],
  ["HEAD without a length", list(200, [], "ignored"), [get("/", true, "HEAD")]],
  ["HEAD without a head", (_, response) => void response.end("ignored"), [get("/", true, "HEAD")]],
  ["its own date", list(200, ["date", "Thu, 01 Jan 1970 00:00:00 GMT"], BODY), LAST],
  ["its own Connection: close", list(200, ["Connection", "close"], BODY), [get("/")]],
  ["its own Keep-Alive", list(200, ["keep-alive", "timeout=1"], BODY), THREE],
  ["its own transfer coding", list(200, ["transfer-encoding", "chunked"], BODY), THREE],
  [
    "headers with several values",
    (_, response) => void response.writeHead(200, { "x-a": ["1", "2"], cookie: ["a", "b"], "x-n": 5 }).end(),
    LAST,
  ],
  ["headers that were set before", merged, THREE],
  [
    "headers that were removed",
    (_, response) => {
      for (const name of ["date", "connection", "content-length"]) response.removeHeader(name);
      response.end("x");
    },
    [get("/a"), get("/b", true)],
  ],
  [
    "no framing at all",
    (_, response) => {
      for (const name of ["content-length", "transfer-encoding"]) response.removeHeader(name);
      response.end("x");
    },
    [get("/")],
  ],
  [
    "the end of the connection",
    (_, response) => {
      response.shouldKeepAlive = false;
      response.end("x");
    },
    [get("/")],
  ],
  [
    "a head that is sent first",
    (_, response) => {
      response.writeHead(200, ["content-type", "text/plain"]);
      response.flushHeaders();
      response.flushHeaders();
      response.write("first ");
      setImmediate(() => response.end(BODY));
    },
    THREE,
  ],
  ["events", events, THREE],
  [
    "trailers",
    (_, response) => {
      response.writeHead(200, ["trailer", "x-sum"]);
      response.write(BODY);
      response.addTrailers([["x-sum", "1"]]);
      response.end(BODY);
    },
    THREE,
  ],
  ["pipelined requests whose first response is late", late, THREE],
  [
    "a stream",
    (_, response) => {
      response.writeHead(200);
      void pipeline(Readable.from([BODY, BODY]), response, { end: false }).then(() => response.end());
    },
    THREE,
  ],
])("sends %s byte for byte as node:http would", async (_, answer, requests) => {
  const [own, node] = await Promise.all(
    (["own", "node"] as const).map((engine) => bytesFrom(engine, answer, requests)),
  );
  expect(node).not.toBe("");
  expect(own).toBe(node);
});

it.each<[string, (response: HttpResponse) => void]>([
  ["a line break in a value", (response) => response.writeHead(200, ["x-a", "b\r\nc: d"])],
  ["a name that is no token", (response) => response.writeHead(200, { "a b": "c" })],
  ["an empty name", (response) => response.setHeader("", "c")],
  ["a character beyond latin1", (response) => response.writeHead(200, { a: "\u{1f682}" })],
  ["an invalid value that is appended", (response) => response.appendHeader("a", "\0")],
  [
    "a line break in a reason",
    (response) => ((response.statusMessage = "a\r\nb: c"), response.writeHead(200)),
  ],
  ["a status out of range", (response) => response.writeHead(99)],
  [
    "trailers of a body with a length",
    (response) => response.writeHead(200, ["trailer", "a", "content-length", "1"]),
  ],
  ["a line break in a trailer", (response) => response.addTrailers([["a", "b\r\n\r\n"]])],
])("refuses %s, and an error can be sent instead", async (_, refused) => {
  const answer: Answer = (__, response) => {
    expect(() => refused(response)).toThrow();
    expect(response.headersSent).toBe(false);
    response.statusMessage = "";
    response.writeHead(500, ["content-length", "2"]).end("no");
  };
  const own = await bytesFrom("own", answer, LAST);
  expect(own).toMatch(/^HTTP\/1.1 500 Internal Server Error\r\n[^]*\r\n\r\nno$/);
  expect(await bytesFrom("node", answer, LAST)).toBe(own);
});

it.each(["own", "node"] as const)("emits finish and close once each (%s)", async (engine) => {
  let emitted = "";
  const answer: Answer = (_, response) => {
    response.on("finish", () => (emitted += "finish "));
    response.on("close", () => (emitted += "close "));
    response.end(BODY);
    expect(response.writableEnded).toBe(true);
    response.end();
    expect(() => response.setHeader("a", "b")).toThrow(/after they are sent/);
  };
  await bytesFrom(engine, answer, LAST);
  expect(emitted).toBe("finish close ");
});
