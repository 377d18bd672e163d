import { once } from "node:events";
import { createServer, type IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, it } from "vitest";
import { TrackedRequest } from "./tracked-request.ts";
import { TrackedResponse } from "./tracked-response.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** All bytes that a server with this class of responses sends back for some raw requests. */
async function bytesFrom(
  responses: typeof ServerResponse,
  answer: Answer,
  requests: readonly string[],
): Promise<string> {
  const server = createServer(
    { IncomingMessage: TrackedRequest, ServerResponse: responses as never },
    answer,
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  let text = "";
  socket.setEncoding("latin1").on("data", (data: string) => (text += data));
  socket.write(requests.join(""));
  await once(socket, "close");
  server.close();
  return text.replaceAll(/^Date: .*\r\n/gim, "");
}

const get = (path: string, version = "1.1", last = false) =>
  `GET ${path} HTTP/${version}\r\nhost: x\r\n${last ? "connection: close\r\n" : ""}\r\n`;
const BODY = Buffer.from("body with \u00fc and \u{1f682}");

const fixed: Answer = (_, response) => {
  response.writeHead(200, ["content-length", String(BODY.length), "x-text", "caf\u00e9"]);
  response.end(BODY);
};
const chunked: Answer = (_, response) => {
  response.writeHead(200, ["content-type", "text/plain"]);
  response.end(BODY);
};
const inPieces: Answer = (_, response) => {
  response.writeHead(200, ["content-type", "text/plain"]);
  response.flushHeaders();
  response.write("first ");
  setImmediate(() => response.end(BODY));
};
const events: Answer = (_, response) => {
  response.writeHead(200, ["content-type", "text/event-stream"]);
  response.write(BODY);
  response.write(Buffer.alloc(100_000, "large "));
  response.write(BODY);
  setImmediate(() => {
    response.write(BODY);
    response.write(Buffer.alloc(0));
    setImmediate(() => response.end());
  });
};
const withTrailer: Answer = (_, response) => {
  response.writeHead(200, ["trailer", "x-sum"]);
  response.addTrailers({ "x-sum": "1" });
  response.end(BODY);
};
const late: Answer = (request, response) => {
  const send = () => {
    response.writeHead(200, { "content-type": "text/plain", "x-path": request.url ?? "" });
    response.end(BODY);
  };
  if (request.url === "/slow") setTimeout(send, 20);
  else send();
};

it.each([
  ["a body of known length", fixed, [get("/", "1.1", true)]],
  ["a body of unknown length", chunked, [get("/", "1.1", true)]],
  ["a body of unknown length for HTTP/1.0", chunked, [get("/", "1.0")]],
  ["a body in pieces", inPieces, [get("/", "1.1", true)]],
  ["events", events, [get("/", "1.1", true)]],
  ["events for HTTP/1.0", events, [get("/", "1.0")]],
  ["events on a connection that stays open", events, [get("/a"), get("/b"), get("/c", "1.1", true)]],
  ["a body with trailers", withTrailer, [get("/", "1.1", true)]],
  ["no body for HEAD", fixed, ["HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"]],
  [
    "no body for 204",
    (_: IncomingMessage, response: ServerResponse) => {
      response.writeHead(204);
      response.end(BODY);
    },
    [get("/", "1.1", true)],
  ],
  ["several responses on a connection", chunked, [get("/a"), get("/b"), get("/c", "1.1", true)]],
  [
    "pipelined requests whose first response is late",
    late,
    [get("/slow"), get("/b"), get("/c", "1.1", true)],
  ],
] as const)("sends %s byte for byte as node:http would", async (_, answer, requests) => {
  const plain = await bytesFrom(ServerResponse, answer, requests);
  expect(plain).not.toBe("");
  expect(await bytesFrom(TrackedResponse as never, answer, requests)).toBe(plain);
});

it("emits finish and close once each", async () => {
  let events = "";
  await bytesFrom(
    TrackedResponse as never,
    (_, response) => {
      response.on("finish", () => (events += "finish "));
      response.on("close", () => (events += "close "));
      response.writeHead(200, ["content-length", String(BODY.length)]);
      response.end(BODY);
      expect(response.writableEnded).toBe(true);
    },
    [get("/", "1.1", true)],
  );
  expect(events).toBe("finish close ");
});
