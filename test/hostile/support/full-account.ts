/**
 * An account with one of every resource of the management API, so that refused callers are refused an existing
 * resource.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { vi } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../../support/test-server.ts";
import { SECRET, sendGeneric } from "../../support/webhook-sender.ts";

export const OWN = "own";
const FIXTURES = join(import.meta.dirname, "../../fixtures");

export interface FullAccount {
  readonly server: TestServer;
  /** Values of path parameters, keyed by the end of the path if one name has two meanings. */
  readonly existing: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

type Row = Readonly<Record<string, string>>;

export async function createFullAccount(): Promise<FullAccount> {
  // A receiver that never answers keeps a handler busy, so that its delivery stays late.
  const silence = createServer(() => undefined);
  await new Promise<void>((resolve) => silence.listen(0, "127.0.0.1", resolve));
  const server = await startTestServer({
    environment: { MINE_WEBHOOK_SECRET: SECRET, OUT_SECRET: SECRET, OPENAI_API_KEY_OWN: "sk-own" },
    file: {
      agents: { modules: [join(FIXTURES, "webhook-agents.ts"), join(FIXTURES, "work-agents.ts")] },
      outgoing: { allowPrivateHosts: true },
      gateway: { providerKeys: { OPENAI_API_KEY_OWN: [OWN] } },
      webhooks: {
        answerWithinMs: 500,
        sources: {
          mine: { scheme: "generic", agent: "obedient-agent", account: OWN },
          routed: { scheme: "generic", account: OWN, secretVariable: "MINE_WEBHOOK_SECRET" },
        },
      },
    },
  });
  const create = async (method: string, path: string, body: unknown): Promise<Row> => {
    const answer = await server.api(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
    return (answer.body as { result: Row }).result;
  };
  /** The first entry of a list, as soon as there is one. */
  const first = (path: string): Promise<Row> =>
    vi.waitFor(
      async () => {
        const [row] = (await server.api("GET", path)).body.result as Row[];
        if (row === undefined) throw new Error(`nothing at ${path}`);
        return row;
      },
      { timeout: 600_000 },
    );

  for (const id of [OWN, "other"]) await create("POST", "/accounts", { id });
  const account = `/accounts/${OWN}`;
  const gateways = `${account}/ai-gateway/gateways`;
  for (const id of ["mine", "theirs"]) await create("POST", gateways, { id });
  await create("PUT", `${account}/tags`, {
    resource_type: "worker",
    resource_id: "w",
    tags: { env: "x" },
  });
  await create("PUT", `/zones/zone/tags?account_id=${OWN}`, {
    resource_type: "zone",
    resource_id: "zone",
    tags: { env: "x" },
  });
  const job = await create("POST", `${account}/tags/jobs`, {
    operation: "patch",
    tag: ["env=nowhere"],
    tags: { env: "y" },
  });
  const token = await create("POST", `${account}/tokens`, { name: "spare", permissions: ["tags.read"] });
  const provider = await create("POST", `${account}/ai-gateway/custom-providers`, {
    name: "theirs",
    slug: "theirs",
    base_url: "https://provider.example",
  });
  const config = await create("POST", `${gateways}/mine/provider_configs`, {
    alias: "spare",
    default_config: false,
    provider_slug: "openai",
    secret_id: "OPENAI_API_KEY_OWN",
  });
  const route = await create("POST", `${gateways}/mine/routes`, {
    name: "theirs",
    elements: [
      { id: "start", type: "start", outputs: { next: { elementId: "model" } } },
      {
        id: "model",
        type: "model",
        properties: { provider: "echo", model: "echo" },
        outputs: { success: { elementId: "end" } },
      },
      { id: "end", type: "end" },
    ],
  });
  const accountConfig = await create("POST", `${account}/ai-gateway/provider_configs`, {
    provider_slug: "openai",
    secret: "sk-for-all-gateways-of-the-account",
  });
  const alert = await create("POST", `${account}/alerts`, {
    name: "theirs",
    metric: "spend",
    threshold: 1_000_000,
    receivers: [{ type: "slack", url: "https://chat.example/hook" }],
  });
  const call = await fetch(`${server.url}/v1/${OWN}/mine/echo/chat/completions`, {
    method: "POST",
    headers: { "gw-aig-authorization": `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
    body: '{"model":"echo","messages":[{"role":"user","content":"x"}]}',
  });
  if (!call.ok) throw new Error(await call.text());
  await call.arrayBuffer();
  const log = await first(`${gateways}/mine/logs`);
  await sendGeneric(server.url, "mine/existing", { id: "1", type: "t" });
  const delivery = await first(`${account}/webhooks/deliveries`);
  await sendGeneric(server.url, "mine/busy", {
    id: "2",
    type: "t",
    do: "send",
    url: `http://127.0.0.1:${(silence.address() as AddressInfo).port}/`,
  });
  const late = await first(`${account}/webhooks/late-deliveries`);
  const routes = `${account}/webhooks/sources/routed/routes`;
  await create("PUT", `${routes}/theirs`, { to: { agent: "obedient-agent" }, delay: 3_600_000 });
  await sendGeneric(server.url, "routed/existing", { id: "3", type: "t" });
  const event = await first(`${account}/webhooks/events`);
  const replay = await create("POST", `${account}/webhooks/replays`, {});
  await create("PUT", `${account}/webhooks/examples/theirs`, { delivery: event["delivery"] });
  await create("PUT", `${account}/webhooks/listeners/listener`, { sources: ["routed"] });
  // The agent fails, which opens an issue.
  await create("PUT", `${routes}/failing`, {
    to: { agent: "obedient-agent" },
    retry: { strategy: "linear", intervalMs: 1000, count: 0 },
  });
  await sendGeneric(server.url, "routed/failed", { id: "4", type: "t", do: "throw" });
  const issue = await first(`${account}/webhooks/issues`);
  const failing = await fetch(`${server.url}/agents/worker/existing/rpc/enqueue`, {
    method: "POST",
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, "signalbox-account": OWN },
    body: JSON.stringify([["fail"], { retry: { maxAttempts: 1 } }]),
  });
  if (!failing.ok) throw new Error(await failing.text());
  const deadLetter = await first(`${account}/agents/worker/instances/existing/dead-letters`);
  const waiting = await fetch(`${server.url}/agents/worker/existing/rpc/enqueue`, {
    method: "POST",
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, "signalbox-account": OWN },
    body: JSON.stringify([
      ["fail"],
      // The delay is a random part of the bound.
      { retry: { maxAttempts: 2, baseDelayMs: 1e13, maxDelayMs: 1e13 } },
    ]),
  });
  if (!waiting.ok) throw new Error(await waiting.text());
  const planned = await fetch(`${server.url}/agents/worker/existing/rpc/plan`, {
    method: "POST",
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, "signalbox-account": OWN },
    body: JSON.stringify(["0 0 1 1 *", "yearly"]),
  });
  if (!planned.ok) throw new Error(await planned.text());
  const item = await first(`${account}/agents/worker/instances/existing/queue`);
  const schedule = await first(`${account}/agents/worker/instances/existing/schedules`);
  const turn = await first(`${account}/agents/worker/instances/existing/timeline`);
  return {
    server,
    existing: {
      account_id: OWN,
      gateway_id: "mine",
      provider: "echo",
      agent_name: "worker",
      instance_name: "existing",
      source_name: "mine",
      zone_id: "zone",
      tag_key: "env",
      job_id: job["id"] ?? "",
      token_id: token["id"] ?? "",
      provider_id: provider["id"] ?? "",
      config_id: config["id"] ?? "",
      route_id: route["id"] ?? "",
      version_id: (route["version"] as unknown as { version_id?: string } | undefined)?.version_id ?? "",
      account_config_id: accountConfig["id"] ?? "",
      alert_id: alert["id"] ?? "",
      id: log["id"] ?? "",
      delivery: delivery["id"] ?? "",
      "late-deliveries": late["id"] ?? "",
      dead_letter_id: deadLetter["id"] ?? "",
      item_id: item["id"] ?? "",
      schedule_id: schedule["id"] ?? "",
      turn_id: turn["id"] ?? "",
      route_name: "theirs",
      "routes-source": "routed",
      event_id: event["id"] ?? "",
      replay_id: replay["id"] ?? "",
      example_name: "theirs",
      listener_name: "listener",
      issue_id: issue["id"] ?? "",
    },
    async close() {
      silence.closeAllConnections();
      silence.close();
      await server.stop();
    },
  };
}
