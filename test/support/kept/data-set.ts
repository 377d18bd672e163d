/** A small account with everything that a version must find again: written over the interfaces that users have. */
import { type Answer, sendRequest } from "../send-request.ts";
import { waitUntil } from "../wait-until.ts";
import { sendGeneric } from "../webhook-sender.ts";
import { PROVIDER_KEY, WEBHOOK_SECRET } from "./kept-node.ts";
import type { Read } from "./reads.ts";

const ACCOUNT = "/accounts/default";
export const GATEWAY = `${ACCOUNT}/ai-gateway/gateways/kept`;
const INSTANCE = `${ACCOUNT}/agents/kept-agent/instances/acme`;
const TAGGED = { resource_type: "worker", resource_id: "kept" };

/** What the data do not show again. */
export interface DataSet {
  /** The text of the token with a budget. */
  readonly token: string;
  readonly reads: readonly Read[];
}

export async function writeDataSet(url: string): Promise<DataSet> {
  const api = async (method: string, path: string, body?: unknown) =>
    resultOf(await sendRequest({ url }, method, path, body), path);
  await api("POST", `${ACCOUNT}/ai-gateway/gateways`, { id: "kept", authentication: true, cache_ttl: 0 });
  await api("PUT", GATEWAY, {
    retry_max_attempts: 2,
    retry_delay: 50,
    spend_limits: { rules: [{ id: "total", limitType: "cost", limit: 1000, window: null }] },
  });
  await api("PUT", `${GATEWAY}/guardrails`, {
    rules: [{ id: "mail", type: "pii", kinds: ["email"], on: ["prompt"], action: "mask" }],
  });
  await api("POST", `${GATEWAY}/provider_configs`, {
    provider_slug: "openai",
    alias: "kept",
    secret: PROVIDER_KEY,
    default_config: true,
  });
  const { id: tokenId, token } = await api("POST", `${ACCOUNT}/tokens`, {
    name: "kept",
    permissions: ["gateway.run"],
    gateway_id: "kept",
    budgets: [{ limit: 500, window: null }],
    rate_limits: [{ type: "parallel", limit: 5 }],
    models: ["openai/*"],
    routes: ["chat"],
    owner: "ada",
    metadata: { team: "platform" },
  });
  const route = await api("POST", `${GATEWAY}/routes`, { name: "kept-route", elements: ROUTE });
  await api("PUT", `${ACCOUNT}/tags`, { ...TAGGED, tags: { env: "dev" } });
  await api("PUT", `${ACCOUNT}/tags`, { ...TAGGED, tags: { env: "prod", team: "platform" } });
  await api("POST", `${ACCOUNT}/alerts`, {
    name: "kept",
    metric: "spend",
    threshold: 1_000_000,
    window: 3600,
    receivers: [
      { type: "webhook", url: "https://alerts.example.com/hook", secret: "a-secret-of-the-kept-alert" },
    ],
  });
  await api("PUT", `${ACCOUNT}/webhooks/sources/routed/routes/now`, { to: { agent: "kept-agent" } });
  await api("PUT", `${ACCOUNT}/webhooks/sources/routed/routes/later`, {
    to: { agent: "kept-agent" },
    delay: 86_400_000,
    when: { body: { type: "routed" } },
  });

  await call(url, token, "openai/chat/completions", "kept");
  await call(url, token, "compat/chat/completions", "dynamic/kept-route");
  await deliver(url, "kept/acme", { type: "work", n: 1 });
  await deliver(url, "kept/acme", { type: "note", text: "größer als ASCII" });
  await deliver(url, "routed/acme", { type: "routed", n: 3 });

  const logs = await waitUntil<{ id: string }[]>(
    () => api("GET", `${GATEWAY}/logs?per_page=50`),
    (found) => found.length === 2,
    20,
  );
  // Of both calls, which cost 5 each.
  await waitUntil<{ budgets: { used: number }[] }>(
    () => api("GET", `${ACCOUNT}/tokens/${tokenId}/budgets`),
    ({ budgets: [budget] }) => budget?.used === 10,
    20,
  );
  await waitUntil<{ state: string }[]>(
    () => api("GET", `${ACCOUNT}/webhooks/events?route=now`),
    ([event]) => event?.state === "delivered",
    20,
  );
  await waitUntil<{ attempts: number }[]>(
    () => api("GET", `${INSTANCE}/queue`),
    ([item]) => item?.attempts === 1,
    20,
  );
  const deliveries = await api("GET", `${ACCOUNT}/webhooks/deliveries`);
  const events: { id: string }[] = await api("GET", `${ACCOUNT}/webhooks/events`);
  const reads = [
    GATEWAY,
    `${GATEWAY}/guardrails`,
    `${GATEWAY}/provider_configs`,
    `${GATEWAY}/budgets`,
    `${GATEWAY}/routes`,
    `${GATEWAY}/routes/${route.id}`,
    `${GATEWAY}/routes/${route.id}/versions`,
    `${GATEWAY}/logs?per_page=50`,
    ...logs.flatMap(({ id }) => ["", "/request", "/response"].map((part) => `${GATEWAY}/logs/${id}${part}`)),
    `${ACCOUNT}/ai-gateway/usage?group_by=model`,
    `${ACCOUNT}/tokens`,
    `${ACCOUNT}/tokens/${tokenId}/budgets`,
    `${ACCOUNT}/tags?resource_type=worker&resource_id=kept`,
    `${ACCOUNT}/tags/history?resource_type=worker&resource_id=kept`,
    `${ACCOUNT}/tags/resources?tag=team=platform`,
    `${ACCOUNT}/alerts`,
    `${ACCOUNT}/audit_logs`,
    `${ACCOUNT}/webhooks/sources/routed/routes`,
    `${ACCOUNT}/webhooks/deliveries`,
    ...deliveries.map(({ id }: { id: string }) => `${ACCOUNT}/webhooks/deliveries/${id}`),
    `${ACCOUNT}/webhooks/events`,
    ...events.map(({ id }) => `${ACCOUNT}/webhooks/events/${id}`),
    INSTANCE,
    `${INSTANCE}/queue`,
    `${INSTANCE}/schedules`,
  ].map((path): Read => ({ method: "GET", path }));
  const called = ["notes", "getEvents"].map((method): Read => ({
    method: "POST",
    path: `/agents/kept-agent/acme/rpc/${method}`,
    body: [],
  }));
  return { token, reads: [...reads, ...called] };
}

/** A call of the provider with the stored key. Resolves to what the provider has answered. */
export async function call(url: string, token: string, path: string, model: string): Promise<unknown> {
  const body = { model, messages: [{ role: "user", content: "Write to ada@example.com" }] };
  const headers = { "cf-aig-authorization": `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(`${url}/v1/default/kept/${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

export async function deliver(url: string, path: string, payload: object): Promise<void> {
  const answer = await sendGeneric(url, path, payload, {}, WEBHOOK_SECRET);
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`);
}

export async function tag(url: string, id: string, tags: Record<string, string>): Promise<void> {
  const body = { resource_type: "worker", resource_id: id, tags };
  resultOf(await sendRequest({ url }, "PUT", `${ACCOUNT}/tags`, body), "tags");
}

// oxlint-disable-next-line typescript/no-explicit-any -- the same as in `Answer`
function resultOf({ status, body, text }: Answer, path: string): any {
  if (status >= 300) throw new Error(`${path}: ${status} ${text}`);
  return body.result;
}

const ROUTE = [
  { id: "start", type: "start", outputs: { next: { elementId: "first" } } },
  {
    id: "first",
    type: "model",
    properties: { provider: "openai", model: "kept", retries: 1, timeout: 60_000 },
    outputs: { success: { elementId: "end" }, fallback: { elementId: "second" } },
  },
  {
    id: "second",
    type: "model",
    properties: { provider: "openai", model: "kept-2" },
    outputs: { success: { elementId: "end" } },
  },
  { id: "end", type: "end" },
];
