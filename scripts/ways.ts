/**
 * `npm run ways -- --files`: a reading list. The source files of this repository that run for one warm request, by V8's coverage of the main thread:
 * what a maintainer has to read to follow a request. Without `--files` their number.
 */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { Session } from "node:inspector/promises";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";
import { ROOT_TOKEN, startTestServer } from "../test/support/test-server.ts";

const WARM_UP = 30;
/** Requests that are measured. A file counts only if it runs in all of them, which excludes timers. */
const RUNS = 5;
/** Time for the work that follows the response, such as log rows. */
const SETTLE_MS = 50;
const SECRET = "a-secret-for-this-run-only";

/** A kind of request. */
interface Way {
  readonly name: string;
  readonly request: () => Promise<unknown>;
}

const { values } = parseArgs({ options: { files: { type: "boolean", default: false } } });
const provider = createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion",
        model: "gpt-4o-mini",
        choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
      }),
    );
  });
});
await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
const providerPort = (provider.address() as AddressInfo).port;

const server = await startTestServer({
  environment: { GITHUB_WEBHOOK_SECRET: SECRET },
  file: { providers: { openai: { baseUrl: `http://127.0.0.1:${providerPort}/v1` } } },
});
let deliveries = 0;
let puts = 0;
const session = new Session();
session.connect();
try {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/agents/webhook-agent/octocat-ways`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  await once(socket, "open");
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { authentication: true });
  const gatewayToken = await server.token(["gateway.run"]);
  const tagToken = await server.token(["tags.edit"]);
  const ways: readonly Way[] = [
    { name: "gateway, JSON call to a provider", request: () => gatewayCall(gatewayToken) },
    { name: "webhook to a WebSocket client", request: () => webhook(socket) },
    { name: "tags, PUT on a resource", request: () => putTags(tagToken) },
  ];
  for (const way of ways) report(way, await measure(way));
  socket.close();
} finally {
  await server.stop();
  provider.close();
}

function report({ name }: Way, files: readonly string[]): void {
  console.log(`${name}: ${files.length} files`);
  if (values.files) for (const file of files) console.log(`  ${file}`);
}

/** Returns the files that run for every measured request. */
async function measure({ request }: Way): Promise<string[]> {
  for (let i = 0; i < WARM_UP; i++) await request();
  let files: Set<string> | undefined;
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  for (let run = 0; run < RUNS; run++) {
    await sleep(SETTLE_MS);
    await session.post("Profiler.takePreciseCoverage");
    await request();
    await sleep(SETTLE_MS);
    const ran = await readCoverage();
    files = new Set([...ran].filter((file) => files?.has(file) ?? true));
  }
  await session.post("Profiler.stopPreciseCoverage");
  return [...(files ?? [])].sort();
}

/** Returns the files that have run since the last call. */
async function readCoverage(): Promise<Set<string>> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const root = new URL("..", import.meta.url).href;
  const files = new Set<string>();
  for (const { url, functions } of result) {
    const file = url.startsWith(root) ? url.slice(root.length) : "";
    if (!/^packages\/[\w-]+\/src\//.test(file)) continue;
    if (functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0)) files.add(file);
  }
  return files;
}

async function gatewayCall(token: string): Promise<void> {
  const response = await fetch(`${server.url}/v1/default/default/openai/chat/completions`, {
    method: "POST",
    headers: {
      authorization: "Bearer provider-key",
      "gw-aig-authorization": `Bearer ${token}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ model: "gpt-4o-mini", messages: [{ role: "user", content: "Say hello" }] }),
  });
  await expectOk(response);
}

async function webhook(socket: WebSocket): Promise<void> {
  deliveries += 1;
  const body = JSON.stringify({ ref: "refs/heads/main", repository: { full_name: "octocat/ways" } });
  const pushed = once(socket, "message", { signal: AbortSignal.timeout(5000) });
  const response = await fetch(`${server.url}/webhooks/github`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
      "x-github-delivery": `delivery-${deliveries}`,
      "x-github-event": "push",
    },
    body,
  });
  await expectOk(response);
  await pushed;
}

async function putTags(token: string): Promise<void> {
  puts += 1;
  const response = await fetch(`${server.url}/accounts/default/tags`, {
    method: "PUT",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({
      resource_type: "worker",
      resource_id: "0123456789abcdef0123456789abcdef",
      tags: { environment: "production", run: String(puts) },
    }),
  });
  await expectOk(response);
}

async function expectOk(response: Response): Promise<void> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${text}`);
}
