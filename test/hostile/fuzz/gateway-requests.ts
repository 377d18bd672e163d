/**
 * Calls through the gateway: paths, `gw-aig-…` headers and bodies of the universal endpoint, valid and invalid. No
 * call is answered with an internal error, refusals of the gateway have one shape, and no credential of a caller
 * appears in the log.
 */
import { type IncomingHttpHeaders, request } from "node:http";
import { pick, type Random } from "../../support/ledger/random.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../../support/test-server.ts";
import { checkLog } from "../support/check-log.ts";
import { chance, mutate, randomBytes, repeat, upTo } from "./bytes.ts";
import { type Arena, defineTarget } from "./fuzz-target.ts";

interface Input {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

/** Placed wherever a credential may be, and nowhere else. */
const CREDENTIAL = "sk-credential-of-the-caller";
const ECHO = "/v1/default/default/echo/chat/completions";
const PATHS = [
  ECHO,
  ECHO,
  "/v1/default/default/echo/models",
  "/v1/default/default/echo/embeddings",
  "/v1/default/default/echo/v1/responses",
  "/v1/default/default/compat/chat/completions",
  "/v1/default/default/closed/chat/completions",
  `${ECHO}?key=${CREDENTIAL}`,
  `/v1/default/default/google-ai-studio/v1beta/models/x:generateContent?key=${CREDENTIAL}`,
  "/v1/default/default/echo",
  "/v1/default/default/echo/",
  "/v1/default/default/echo//x",
  "/v1/default/default/echo/%2e%2e/x",
  "/v1/default/default/echo/%00",
  "/v1/default/default/echo/%zz",
  "/v1/default/default/__proto__/x",
  "/v1/default/default/constructor/x",
  "/v1/default/nope/echo/x",
  "/v1/__proto__/default/echo/x",
  "/v1/default/default/custom-nope/x",
  "/v1/default/default/echo/x?a=%",
  "/v1/default",
  "/v1//default/echo/x",
];
const UNIVERSAL = ["/v1/default/default", "/v1/default/default/"];
/** Short timeouts only, to keep the fuzzer fast. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  "skip-cache": ["true", "false", "maybe", ""],
  "cache-ttl": ["60", "0", "-1", "1e9", "1.5", "x", "99999999999999999999", "0x10"],
  "cache-key": ["k", "", "x".repeat(513), "\xff", "__proto__"],
  "collect-log": ["true", "false", "1"],
  "collect-log-payload": ["true", "false", "null"],
  metadata: [
    '{"a":1}',
    '{"a":{}}',
    "[",
    "[]",
    "null",
    '{"__proto__":1}',
    '{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}',
    `{"a":"${"x".repeat(5000)}"}`,
    '{"a":1,"a":2}',
    '{"":1}',
    "[".repeat(3000),
    '{"a":1e999}',
  ],
  "custom-cost": [
    '{"total_cost":0.1}',
    '{"total_cost":-1}',
    '{"total_cost":1e999}',
    '{"per_token_in":1}',
    '{"per_token_in":1,"per_token_out":2}',
    "null",
    "[]",
    '{"total_cost":"1"}',
    '{"__proto__":{"total_cost":0}}',
  ],
  "event-id": ["e", "", "x".repeat(600)],
  "request-timeout": ["500", "1", "0", "-1", "1e3", "x", "9999999999"],
  "max-attempts": ["1", "2", "5", "6", "0", "x"],
  "retry-delay": ["0", "1", "x", "-1", "99999999"],
  backoff: ["constant", "linear", "exponential", "EXPONENTIAL", "__proto__", ""],
  "max-retry-wait": ["0", "1", "600001", "x"],
  "first-token-timeout": ["500", "1", "0", "x"],
  "stall-timeout": ["500", "1", "0", "x"],
  "hold-response": ["true", "false", "maybe"],
  "fallback-on": ["429,5xx", "timeout, connection", "__proto__", "", "399", ",,"],
  "hedge-after": ["1", "20", "0", "x"],
  strategy: ["weighted", "sticky", "least-latency", "least-cost", "fallback", "constructor", ""],
  weight: ["1", "0.5", "0", "1e9", "-1"],
  "session-id": ["s", "", "x".repeat(600)],
  "byok-alias": ["nope", "default", "__proto__", ""],
  authorization: [`Bearer ${CREDENTIAL}`, "Bearer", CREDENTIAL, "Basic ::"],
  step: ["1", "x"],
  ["__proto__"]: ["x"],
  constructor: ["x"],
  ["x".repeat(200)]: ["x"],
};
const CREDENTIAL_HEADERS = [
  "authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "cookie",
  "proxy-authorization",
  "xi-api-key",
];
const OTHER_HEADERS: readonly (readonly [string, string])[] = [
  ["content-encoding", "gzip"],
  ["content-encoding", "identity"],
  ["content-type", "text/plain"],
  ["content-type", "application/json; charset=utf-16"],
  ["content-type", ";"],
  ["accept", "text/event-stream"],
  ["accept-encoding", "br;q=x"],
  ["traceparent", "00-zz"],
  ["idempotency-key", "\xff"],
  ["openai-organization", "o"],
  ["x-forwarded-for", "1.2.3.4"],
  ["te", "trailers"],
  ["range", "bytes=-1"],
  ["if-none-match", "*"],
];
const BODIES = [
  '{"model":"echo","messages":[{"role":"user","content":"x"}]}',
  "",
  "{}",
  "[]",
  "null",
  "{",
  "0",
  '{"model":"echo","model":"other","messages":[]}',
  '{"model":"echo","stream":true,"messages":[{"role":"user","content":"x y z"}]}',
  '{"model":{},"messages":{}}',
  '{"model":"\\ud800","messages":[{"role":"user","content":"\\u0000"}]}',
  `{"model":"${"m".repeat(5000)}"}`,
  '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  '{"model":"echo","max_tokens":1e999,"n":-1}',
  `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
  `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`,
  "\xff\xfe\0",
  "\xef\xbb\xbf{}",
  "\x1f\x8b\x08\0\0\0\0\0\0\x03",
];

export const gatewayRequestsTarget = defineTarget<Input>({
  name: "gateway-requests",
  summary: "calls through the gateway: paths, its headers, bodies of the universal endpoint",
  shortRun: 800,
  width: 8,
  generate(random) {
    const isUniversal = chance(random, 0.45);
    const path = mostly(random, isUniversal ? UNIVERSAL : PATHS);
    const body = isUniversal && chance(random, 0.85) ? universalBody(random) : mostly(random, BODIES);
    return {
      method: chance(random, 0.85)
        ? "POST"
        : pick(random, ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"]),
      path: chance(random, 0.05) ? path + encodeURI(randomBytes(random, 6)) : path,
      headers: headers(random),
      body: chance(random, 0.1) ? mutate(random, body) : body,
    };
  },
  open,
});

/** The first element, which is valid, or any. */
function mostly<T>(random: Random, values: readonly T[]): T {
  return chance(random, 0.7) ? (values[0] as T) : pick(random, values);
}

function headers(random: Random): [string, string][] {
  const given: [string, string][] = chance(random, 0.9) ? [["content-type", "application/json"]] : [];
  given.push(...repeat(random, 3, () => option(random)));
  if (chance(random, 0.5)) given.push(credential(random));
  if (chance(random, 0.3)) given.push([...pick(random, OTHER_HEADERS)]);
  return given;
}

function option(random: Random): [string, string] {
  const name = pick(random, Object.keys(OPTIONS));
  const value = mostly(random, OPTIONS[name] ?? [""]);
  return [`${pick(random, ["gw", "cf"])}-aig-${name}`, value];
}

function credential(random: Random): [string, string] {
  const name = pick(random, CREDENTIAL_HEADERS);
  return [name, name === "authorization" ? `Bearer ${CREDENTIAL}` : CREDENTIAL];
}

function universalBody(random: Random): string {
  const steps = repeat(random, 3, () => step(random));
  if (steps.length === 0 || chance(random, 0.03)) return `[${'{"provider":"echo"},'.repeat(25)}{}]`;
  // JSON text is joined by hand, so that `__proto__` and duplicate members are kept.
  return chance(random, 0.1) ? (steps[0] ?? "") : `[${steps.join(",")}]`;
}

function step(random: Random): string {
  const members = [
    `"provider":${mostly(random, ['"echo"', '"echo"', '"echo"', '"closed"', '"__proto__"', "1", "null", '"ECHO"'])}`,
    `"endpoint":${mostly(random, ['"chat/completions"', '"chat/completions"', '"/x"', '"../x"', '"%2e%2e/x"', '"x#y"', '"é"', "[]", '"x y"', `"x?key=${CREDENTIAL}"`])}`,
  ];
  if (chance(random, 0.8))
    members.push(
      `"query":${mostly(random, ['{"model":"echo","messages":[{"role":"user","content":"x"}]}', '{"model":"echo","stream":true,"messages":[]}', "[]", "null", '"x"', '{"__proto__":{"polluted":1}}', `${"[".repeat(9000)}${"]".repeat(9000)}`])}`,
    );
  if (chance(random, 0.6)) {
    const given = [
      credential(random),
      ...repeat(random, 2, () => option(random)),
      ...(chance(random, 0.1)
        ? [
            pick(random, [
              ["a b", "x"],
              ["", "x"],
              ["host", "evil"],
              ["content-length", "9"],
              ["x", "a\r\nb: c"],
            ] as const),
          ]
        : []),
    ].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
    if (chance(random, 0.1)) given.push(pick(random, ['"x":1', '"x":null', '"x":{}', '"__proto__":"x"']));
    members.push(
      `"headers":${chance(random, 0.05) ? pick(random, ["[]", "1", "null", '"x"']) : `{${given.join(",")}}`}`,
    );
  }
  if (chance(random, 0.3))
    members.push(
      `"config":${mostly(random, ['{"maxAttempts":2,"retryDelay":1}', '{"fallbackOn":[429,"5xx"],"weight":2}', '{"fallbackOn":[{}]}', '{"requestTimeout":"x"}', "[]", '{"maxAttempts":{}}', '{"backoff":"__proto__"}', '{"__proto__":{"maxAttempts":5}}', "1"])}`,
    );
  if (chance(random, 0.05)) members.push(members[upTo(random, members.length)] ?? "");
  return `{${members.join(",")}}`;
}

async function open(): Promise<Arena<Input>> {
  const server = await startTestServer({
    file: {
      // Nothing listens on this port, so that steps fail to connect.
      providers: {
        closed: { baseUrl: "http://127.0.0.1:9" },
        "google-ai-studio": { baseUrl: "http://127.0.0.1:9" },
      },
    },
  });
  return {
    attempt: (input) => call(server, input),
    async check() {
      checkLog(server.logs);
      await checkRows(server);
    },
    close: () => server.stop(),
  };
}

function call(server: TestServer, { method, path, headers: given, body }: Input): Promise<void> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(server.url);
    const outgoing = request({ host: "127.0.0.1", port, method, path }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("error", reject);
      response.on("end", () => {
        try {
          judge(method, response.statusCode ?? 0, response.headers, text);
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
    outgoing.on("error", reject);
    for (const [name, value] of given) outgoing.appendHeader(name, value);
    const bytes = Buffer.from(body, "latin1");
    outgoing.setHeader("content-length", bytes.length);
    outgoing.end(bytes);
  });
}

function judge(method: string, status: number, headers: IncomingHttpHeaders, text: string): void {
  if (status === 500) throw new Error(`answered 500: ${text.slice(0, 500)}`);
  if (headers["content-security-policy"] !== "sandbox; default-src 'none'")
    throw new Error(`${status} without the policy that makes it inert`);
  if (status < 400 || headers["gw-aig-error-origin"] !== "gateway" || method === "HEAD") return;
  const body = JSON.parse(text) as Record<string, unknown>;
  const [error] = body["error"] as { code: unknown; message: unknown }[];
  const isRight =
    body["success"] === false &&
    body["name"] === "AiGatewayError" &&
    body["httpCode"] === status &&
    typeof error?.code === "number" &&
    error.code === body["internalCode"] &&
    typeof error.message === "string" &&
    error.message === body["message"];
  if (!isRight) throw new Error(`${status} in another shape: ${text.slice(0, 500)}`);
  if (text.includes(CREDENTIAL)) throw new Error(`a refusal repeats the credential: ${text.slice(0, 500)}`);
}

const LOGS = "/accounts/default/ai-gateway/gateways/default/logs";
/** Number of new rows whose bodies are checked. */
const BODIES_READ = 2;

async function checkRows(server: TestServer): Promise<void> {
  const { body } = await server.api("GET", `${LOGS}?per_page=20`);
  const rows = (body as { result: { id: string }[] }).result;
  const texts = [JSON.stringify(rows)];
  for (const { id } of rows.slice(0, BODIES_READ)) {
    texts.push(JSON.stringify((await server.api("GET", `${LOGS}/${id}`)).body));
    for (const part of ["request", "response"]) {
      const stored = await fetch(`${server.url}${LOGS}/${id}/${part}`, {
        headers: { authorization: `Bearer ${ROOT_TOKEN}` },
      });
      texts.push(await stored.text());
    }
  }
  const leak = texts.find((text) => text.includes(CREDENTIAL));
  if (leak === undefined) return;
  const at = leak.indexOf(CREDENTIAL);
  throw new Error(`the log has the caller's credential: ${leak.slice(Math.max(0, at - 200), at + 100)}`);
}
