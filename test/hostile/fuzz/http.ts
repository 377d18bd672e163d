/**
 * Raw requests on one connection: some valid ones, then an invalid one. Valid requests are answered in order with
 * their own ids; no response is an internal error; every response is well-formed; the process stays alive.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { TEST_AGENTS } from "../../support/agents.ts";
import { pick, type Random } from "../../support/ledger/random.ts";
import { ROOT_TOKEN } from "../../support/test-server.ts";
import { startAttackedServer } from "../support/attacked-server.ts";
import { type ReadResponse, readResponses } from "../support/read-responses.ts";
import { chance, cutAt, mutate, repeat, randomBytes, splits, upTo } from "./bytes.ts";
import { type Arena, defineTarget } from "./fuzz-target.ts";

interface Input {
  readonly right: readonly { readonly method: string; readonly id: string; readonly bytes: string }[];
  /** The bytes after the valid requests; may be empty. */
  readonly wrong: string;
  readonly splits: readonly number[];
  /** The client disconnects immediately instead of waiting for responses. */
  readonly isCut: boolean;
}

const ECHO = "/v1/default/default/echo/chat/completions";
const PATHS = [
  "/healthz",
  "/readyz",
  "/metrics",
  "/",
  "/nope",
  "/accounts",
  "/accounts/default/tags/resources?tag=a=b&tag=!c",
  "/accounts/default/tags/keys",
  "/accounts/default/ai-gateway/gateways",
  "/zones/z/tags",
  "/client/v4/accounts",
  "/dashboard",
  ECHO,
  "/v1/default/default/echo/models",
  "/v1/nobody/x/echo/y",
  "/webhooks/entity",
  "/webhooks/github/acme",
  "/agents/webhook-agent/fuzz",
  "/agents/counter/fuzz",
  "/agents/counter/fuzz/rpc/read",
  "/agents/nope/x",
];
const ODD_TARGETS = [
  "*",
  "//healthz",
  "/./healthz",
  "/dashboard/../healthz",
  "/dashboard/..%2f..%2fetc/passwd",
  "/%",
  "/%zz",
  "/%00",
  "/%c0%af",
  "/v%31/default/default/echo/x",
  "http://other.example/healthz",
  "https://[::1/",
  "/accounts/%2e%2e/x",
  "/agents/counter/%00/rpc/x",
  "/agents/counter/..",
  "/agents/counter/%ff",
  "/agents/%5f%5fproto%5f%5f/x",
  "/accounts/__proto__/tags",
  "/webhooks/__proto__/constructor",
  "/v1/__proto__/constructor/toString/x",
  `/${"a/".repeat(300)}`,
  `/?${"a=b&".repeat(500)}`,
  "/healthz?a=%",
  "healthz",
  "?",
  "",
];
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"];
const ODD_METHODS = [
  "PRI",
  "TRACE",
  "CONNECT",
  "PROPFIND",
  "get",
  "G\tT",
  "",
  "X".repeat(40),
  "SOURCE",
  "QUERY",
];
const ODD_HEADERS = [
  "Host: other",
  "Host:",
  "Host: a b",
  "Host: [::1",
  "Host: evil\\@x",
  "Content-Length: 0",
  "Content-Length: -1",
  "Content-Length: 1, 1",
  "Content-Length: 99999999999999999999",
  "Content-Length : 3",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding: \x0bchunked",
  "transfer-encoding: chunked, chunked",
  "Connection: close",
  "Connection: upgrade",
  "Connection: keep-alive, host",
  "Upgrade: h2c",
  "Upgrade: websocket",
  "Sec-WebSocket-Key: x",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Version: 99",
  "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=99",
  "Expect: 100-continue",
  "Expect: nonsense",
  "Authorization: Bearer",
  `Authorization: Bearer ${ROOT_TOKEN}`,
  "Authorization: Basic ::",
  "Cookie: signalbox_session=%; a",
  "Cookie: ;;=;",
  "gw-aig-__proto__: x",
  'gw-aig-metadata: {"a":{}}',
  "gw-aig-metadata: [",
  "gw-aig-cache-ttl: -1",
  'gw-aig-custom-cost: {"total_cost":"x"}',
  "gw-aig-request-timeout: 1e99",
  "gw-aig-max-attempts: 9999",
  "cf-aig-step: x",
  "traceparent: 00-zz",
  "x-request-id: \xff",
  "content-encoding: gzip",
  "content-type: ;;",
  'content-type: application/json; charset="',
  "X-Signature: sha256=",
  "X-Hub-Signature-256: \xe9",
  'If-Match: "',
  "Accept: text/event-stream",
  "Last-Event-ID: 1e9",
  "Range: bytes=-1",
  " folded: x",
  "no-colon",
  ": empty",
  "a\0b: c",
  `long: ${"x".repeat(9000)}`,
  "Origin: null",
  "Sec-Fetch-Site: cross-site",
  "__proto__: x",
  "constructor: y",
  "Trailer: x",
  "TE: trailers",
  "Keep-Alive: timeout=-1",
];
const BODIES = [
  "",
  "{}",
  "[]",
  "null",
  "{",
  '"',
  '{"model":"echo","messages":[{"role":"user","content":"x"}]}',
  '{"model":"echo","stream":true,"messages":[]}',
  '[{"provider":"echo","endpoint":"x","query":{}}]',
  '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  "[".repeat(3000),
  '{"a":'.repeat(2000),
  "a=b&c=%zz",
  "\xff\xfe\0",
  '{"resource_type":"worker","resource_id":"w","tags":{"__proto__":"x"}}',
];

export const httpTarget = defineTarget<Input>({
  name: "http",
  summary: "raw requests on a connection of their own",
  shortRun: 480,
  width: 8,
  generate,
  open,
});

function generate(random: Random): Input {
  const right = repeat(random, 3, () => rightRequest(random));
  const wrong = chance(random, 0.1)
    ? ""
    : chance(random, 0.05)
      ? randomBytes(random, 200)
      : chance(random, 0.15)
        ? upgradeRequest(random)
        : wrongRequest(random);
  const length = wrong.length + right.reduce((sum, { bytes }) => sum + bytes.length, 0);
  return { right, wrong, splits: splits(random, length), isCut: chance(random, 0.1) };
}

function rightRequest(random: Random) {
  const method = pick(random, ["GET", "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"]);
  const id = `right-${upTo(random, 1e9)}`;
  const headers = ["Host: localhost", `x-request-id: ${id}`];
  if (chance(random, 0.3)) headers.push(`Authorization: Bearer ${ROOT_TOKEN}`);
  // A stream of server-sent events never ends, so none is requested.
  const body =
    method === "POST" || method === "PUT"
      ? pick(
          random,
          BODIES.filter((text) => !text.includes("stream")),
        )
      : null;
  return { method, id, bytes: request(random, method, pick(random, PATHS), headers, body) };
}

function wrongRequest(random: Random): string {
  const method = pick(random, [...METHODS, ...ODD_METHODS]);
  const target = chance(random, 0.4) ? pick(random, ODD_TARGETS) : pick(random, PATHS);
  const headers = ["Host: localhost", ...repeat(random, 5, () => pick(random, ODD_HEADERS))];
  if (chance(random, 0.2)) headers.push(`Authorization: Bearer ${ROOT_TOKEN}`);
  if (chance(random, 0.2))
    headers.push(
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    );
  const text = request(random, method, target, headers, chance(random, 0.6) ? pick(random, BODIES) : null);
  return chance(random, 0.5) ? mutate(random, text) : text;
}

/** A handshake, valid or nearly valid, on any path, perhaps with bytes sent directly after it. */
function upgradeRequest(random: Random): string {
  const headers = [
    "Host: localhost",
    `Connection: ${pick(random, ["Upgrade", "keep-alive, upgrade", "upgrade, close"])}`,
    `Upgrade: ${pick(random, ["websocket", "websocket", "WebSocket", "h2c", "websocket, h2c", ""])}`,
    `Sec-WebSocket-Version: ${pick(random, ["13", "13", "13", "8", "7", "13, 8", ""])}`,
    `Sec-WebSocket-Key: ${chance(random, 0.8) ? "dGhlIHNhbXBsZSBub25jZQ==" : randomBytes(random, 8).replaceAll(/[^!-~]/g, "")}`,
  ];
  if (chance(random, 0.3)) headers.push(`Authorization: Bearer ${ROOT_TOKEN}`);
  if (chance(random, 0.3))
    headers.push(`Sec-WebSocket-Protocol: ${pick(random, ["a", "a, b", ",", "a, a", "\xff", "cf_agent"])}`);
  if (chance(random, 0.2)) headers.push(pick(random, ODD_HEADERS));
  const method = chance(random, 0.9) ? "GET" : pick(random, [...METHODS, ...ODD_METHODS]);
  const target = pick(random, chance(random, 0.8) ? PATHS : ODD_TARGETS);
  return request(random, method, target, headers, null) + randomBytes(random, chance(random, 0.3) ? 50 : 0);
}

function request(
  random: Random,
  method: string,
  target: string,
  headers: readonly string[],
  body: string | null,
): string {
  const framing = body === null ? [] : ["content-type: application/json"];
  let content = "";
  if (body !== null && chance(random, 0.4)) {
    framing.push("transfer-encoding: chunked");
    const parts = cutAt(body, splits(random, body.length, 2)).map((part) => part.toString("latin1"));
    content = `${parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join("")}0\r\n\r\n`;
  } else if (body !== null) {
    framing.push(`content-length: ${body.length}`);
    content = body;
  }
  return `${[`${method} ${target} HTTP/1.1`, ...headers, ...framing].join("\r\n")}\r\n\r\n${content}`;
}

/** How long the server may take to close a finished connection; then the client closes it. */
const CLOSE_MS = 3000;
/** How long valid requests may take; generous, since time is not measured here. */
const ANSWER_MS = 600_000;

async function open(): Promise<Arena<Input>> {
  const server = await startAttackedServer(
    { agents: { modules: [TEST_AGENTS] } },
    { GITHUB_WEBHOOK_SECRET: "secret" },
  );
  return {
    check: server.check,
    close: server.close,
    attempt: (input) => exchange(server.port, input),
  };
}

async function exchange(port: number, input: Input): Promise<void> {
  const socket = connect(port, "127.0.0.1").setNoDelay();
  let text = "";
  let isClosed = false;
  let isReset = false;
  let wake = () => {};
  socket.setEncoding("latin1");
  socket.on("error", () => (isReset = true));
  socket.on("data", (chunk: string) => {
    text += chunk;
    wake();
  });
  const closed = new Promise<void>((resolve) =>
    socket.on("close", () => {
      isClosed = true;
      wake();
      resolve();
    }),
  );
  await once(socket, "connect");
  for (const part of cutAt(input.right.map(({ bytes }) => bytes).join("") + input.wrong, input.splits)) {
    if (socket.writable) socket.write(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (input.isCut) {
    socket.destroy();
    return;
  }
  const methods = input.right.map(({ method }) => method);
  const deadline = setTimeout(() => wake(), ANSWER_MS);
  const startedAt = performance.now();
  while (!isClosed && readResponses(text, methods).responses.length < methods.length) {
    if (performance.now() - startedAt >= ANSWER_MS) break;
    await new Promise<void>((resolve) => (wake = resolve));
  }
  clearTimeout(deadline);
  // Sent only now: the end of the client's stream would abort pending responses.
  socket.end();
  const cut = setTimeout(() => socket.destroy(), CLOSE_MS);
  await closed;
  clearTimeout(cut);
  judge(input, readResponses(text, methods).responses, isReset);
}

function judge(input: Input, responses: readonly ReadResponse[], isReset: boolean): void {
  for (const [i, { id, method }] of input.right.entries()) {
    const response = responses[i];
    if (response === undefined)
      throw new Error(
        `right request ${i + 1} (${method}) was not answered${isReset ? " before the reset" : ""}`,
      );
    const given = response.headers.get("x-request-id");
    if (given !== id) throw new Error(`answer ${i + 1} belongs to ${given}, not to ${id}`);
    // A request that is refused after its headers closes the connection: its body is not read.
    if (response.headers.get("connection") === "close") break;
  }
  for (const { status, headers, body } of responses) {
    if (status !== 101 && !headers.has("x-request-id")) throw new Error(`${status} without a request id`);
    if (status >= 400 && headers.get("x-content-type-options") !== "nosniff")
      throw new Error(`${status} that a browser may take for a page`);
    // The contract's own 500: reading a resource that was never tagged.
    if (status === 500 && !body.includes('"code":1004,'))
      throw new Error(`answered 500: ${body.slice(0, 500)}`);
  }
}
