/**
 * Every operation in `/openapi.json` with invalid paths, queries and bodies: broken encodings, control characters,
 * names of prototypes, duplicate members, deep nesting. Each is answered in the envelope and never with an internal
 * error.
 */
import { Agent, request } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { checkLog } from "./support/check-log.ts";

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly query: readonly string[];
  readonly hasBody: boolean;
}

let server: TestServer;
let operations: readonly Operation[];
const agent = new Agent({ keepAlive: true, maxSockets: 64 });

beforeAll(async () => {
  server = await startTestServer({ environment: { WEBHOOK_SECRET: "s", GITHUB_WEBHOOK_SECRET: "s" } });
  const { body } = await server.api("GET", "/openapi.json");
  const paths = body.paths as Record<string, Record<string, Described>>;
  const listed = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters, requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      query: parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name),
      hasBody: requestBody !== undefined,
    })),
  );
  // Deletions come last: the other operations need the resources.
  operations = listed.sort((a, b) => Number(a.method === "DELETE") - Number(b.method === "DELETE"));
  expect(operations.length).toBeGreaterThan(60);
});
afterAll(async () => {
  agent.destroy();
  await server.stop();
});

interface Described {
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: unknown;
}

/** Valid values, so that the invalid part beside them is reached. */
const USUAL: Readonly<Record<string, string>> = {
  account_id: "default",
  gateway_id: "default",
  provider: "echo",
  agent_name: "webhook-agent",
  source_name: "github",
};

const SEGMENTS = [
  "%00",
  "%0a",
  "%0d%0aset-cookie:%20a=b",
  "%ff",
  "%c0%af",
  "%ed%a0%80",
  "%f4%90%80%80",
  "%",
  "%zz",
  "%2f",
  "%2e%2e",
  "..",
  "%252e",
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "%e2%80%ae",
  "%f0%9f%92%a9",
  "%EF%BF%BF",
  "%27%20OR%201=1--",
  "%7b%7d",
  "*",
  "-1",
  "1e999",
  "NaN",
  "x".repeat(5000),
  "%20",
  "~",
];

/** A recursion that costs nothing else ends after 12,500 steps. */
const DEEP = 20_000;
const BODIES = [
  "",
  "null",
  "0",
  '"x"',
  "[]",
  "{}",
  "{",
  "\xff",
  "\xef\xbb\xbf{}",
  '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  '{"id":"a","id":"b","name":1,"name":null,"permissions":{},"permissions":["root"]}',
  '{"id":"__proto__","name":"__proto__","permissions":["__proto__"],"tags":{"__proto__":"x"},"resource_type":"__proto__","resource_id":"constructor"}',
  '{"resource_type":"worker","resource_id":"w","tags":{"__proto__":"x","constructor":"y"}}',
  '{"resource_type":"worker","resource_id":"\\u0000","tags":{"\\ud800":"\\udfff"}}',
  '{"sql":"SELECT \\u0000"}',
  '{"payload":{"__proto__":{"polluted":1}},"entity":"\\u0000","event_type":"\\ud800"}',
  '{"slug":"__proto__","base_url":"http://[::1","headers":"{\\"__proto__\\":1}"}',
  '{"expires_at":"+275760-09-13T00:00:00.001Z","name":"x","permissions":[]}',
  '{"score":1e999,"feedback":1e308,"metadata":{"__proto__":1}}',
  "[".repeat(DEEP),
  `${"[".repeat(DEEP)}${"]".repeat(DEEP)}`,
  `${'{"a":'.repeat(DEEP)}1${"}".repeat(DEEP)}`,
  ...["tags", "payload", "metadata", "headers", "operations", "name", "id", "sql", "ids"].map(
    (name) => `{"${name}":${'{"a":['.repeat(DEEP / 2)}${"]}".repeat(DEEP / 2)}}`,
  ),
  `{${Array.from({ length: 5000 }, (_, i) => `"k${i}":${i}`).join(",")}}`,
];

function send(method: string, path: string, body?: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const bytes = body === undefined ? undefined : Buffer.from(body, "latin1");
    const { port } = new URL(server.url);
    const call = request(
      {
        host: "127.0.0.1",
        port,
        path,
        method,
        agent,
        headers: {
          authorization: `Bearer ${ROOT_TOKEN}`,
          ...(bytes === undefined
            ? {}
            : { "content-type": "application/json", "content-length": bytes.length }),
        },
      },
      (response) => {
        let text = "";
        const status = response.statusCode ?? 0;
        if (
          /^(?:text\/event-stream|text\/csv|application\/x-ndjson|application\/x-tar)/.test(
            response.headers["content-type"] ?? "",
          )
        ) {
          // A stream that never ends, or a download, which has no envelope.
          response.destroy();
          resolve({ status, text: '{"success":true,"errors":[]}' });
          return;
        }
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("error", reject);
        response.on("end", () => resolve({ status, text }));
      },
    );
    call.on("error", reject);
    call.end(bytes);
  });
}

/** The error in a response; null if it is correct. */
function flawOf({ status, text }: { status: number; text: string }): string | null {
  // The contract's own 500: reading a resource that was never tagged. And two backups at once are enough.
  const isExpected = text.includes('"code":1004,') || text.includes("backups are being made");
  if (status >= 500 && !isExpected) return `${status} ${text.slice(0, 300)}`;
  if (text === "") return status === 204 ? null : `${status} without a body`;
  try {
    const { success, errors } = JSON.parse(text) as { success: boolean; errors: { code: number }[] };
    const isRight = success ? errors.length === 0 : typeof errors[0]?.code === "number";
    return isRight && success === status < 400 ? null : `${status} in another shape: ${text.slice(0, 300)}`;
  } catch {
    return `${status} is no JSON: ${text.slice(0, 300)}`;
  }
}

async function flaws(cases: readonly { method: string; path: string; body?: string }[]): Promise<string[]> {
  const found: string[] = [];
  const queue = [...cases];
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const flaw = flawOf(await send(next.method, next.path, next.body));
      if (flaw !== null)
        found.push(`${next.method} ${next.path.slice(0, 200)} ${next.body?.slice(0, 60) ?? ""}: ${flaw}`);
    }
  };
  await Promise.all(Array.from({ length: 64 }, work));
  checkLog(server.logs);
  return found;
}

const fill = (path: string, odd?: string, at?: string) =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    name === at && odd !== undefined ? odd : (USUAL[name] ?? "x"),
  );
const bodyFor = (operation: Operation) => (operation.hasBody ? { body: "{}" } : {});

it("invalid text in any path parameter is answered in the envelope", async () => {
  const cases = operations.flatMap((operation) =>
    [...operation.path.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) =>
      SEGMENTS.map((odd) => ({
        method: operation.method,
        path: fill(operation.path, odd, name),
        ...bodyFor(operation),
      })),
    ),
  );
  expect(await flaws(cases)).toEqual([]);
});

it("invalid text in any query parameter is answered in the envelope", async () => {
  const cases = operations.flatMap((operation) =>
    [...operation.query, "__proto__", "%00"].flatMap((name) =>
      SEGMENTS.filter((_, i) => i % 3 === name.length % 3 || name === "tag").map((odd) => ({
        method: operation.method,
        path: `${fill(operation.path)}?${name}=${odd}&${name}=${odd}`,
        ...bodyFor(operation),
      })),
    ),
  );
  expect(await flaws(cases)).toEqual([]);
});

it("invalid, duplicate, deep and endless bodies are answered in the envelope", async () => {
  const cases = operations
    .filter(({ hasBody, method }) => hasBody || method !== "GET")
    .flatMap((operation) =>
      BODIES.map((body) => ({ method: operation.method, path: fill(operation.path), body })),
    );
  expect(await flaws(cases)).toEqual([]);
});
