/**
 * Writes of the management interface and how another node shows them: each `look` reads what that node has in memory. `ELSEWHERE` has the
 * operations that write nothing that nodes keep in memory.
 */
import { expect } from "vitest";
import type { SettingsKind } from "../../packages/signalbox/src/database/shared-settings.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import type { ClusterNodeProcess } from "../support/cluster.ts";

/** Ids and texts that earlier cases received. */
export type Known = Record<string, string>;

export interface SettingsCase {
  readonly kind: SettingsKind;
  /** Method and path as the description names them; absent for the dashboard's own paths, which it does not list. */
  readonly operation?: string;
  readonly title?: string;
  readonly write: (node: ClusterNodeProcess, known: Known) => Promise<void>;
  readonly look: (node: ClusterNodeProcess, known: Known) => Promise<unknown>;
}

export const ACCOUNT = "/accounts/own";
const GATEWAYS = `${ACCOUNT}/ai-gateway/gateways`;
const GATEWAY = `${GATEWAYS}/mine`;

/** Calls the management interface, and keeps members of the result. */
function call(
  method: string,
  path: string | ((known: Known) => string),
  body?: unknown,
  keep: Readonly<Record<string, string>> = {},
): SettingsCase["write"] {
  return async (node, known) => {
    const answer = await node.api(method, typeof path === "string" ? path : path(known), body);
    expect([answer.status, answer.body]).toEqual([200, expect.objectContaining({ success: true })]);
    const result = (answer.body as { result: Record<string, string> }).result;
    for (const [name, member] of Object.entries(keep)) known[name] = result[member] ?? "";
  };
}

const read =
  (path: string): SettingsCase["look"] =>
  async (node) =>
    (await node.api("GET", path)).body.result;

/** The status of a request with a token that was kept under this name. */
const use =
  (name: string): SettingsCase["look"] =>
  async (node, known) =>
    (await node.api("GET", GATEWAYS, undefined, known[name] ?? "sbx_unknown")).status;

const run =
  (token: string): SettingsCase["look"] =>
  async (node, known) => {
    const response = await fetch(`${node.url}/v1/own/mine/echo/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${known[token] ?? ROOT_TOKEN}`, "content-type": "application/json" },
      body: '{"model":"echo","messages":[{"role":"user","content":"x"}]}',
    });
    await response.arrayBuffer();
    return response.status;
  };

const withCookie: SettingsCase["look"] = async (node, known) => {
  const { status } = await fetch(node.url + GATEWAYS, { headers: { cookie: known["cookie"] ?? "" } });
  return status;
};

const element = (model: string) => [
  { id: "start", type: "start", outputs: { next: { elementId: "model" } } },
  {
    id: "model",
    type: "model",
    properties: { provider: "echo", model },
    outputs: { success: { elementId: "end" } },
  },
  { id: "end", type: "end" },
];

const ROUTES = `${GATEWAY}/routes`;
const ALERTS = `${ACCOUNT}/alerts`;
const alert = (threshold: number) => ({
  name: "Errors",
  metric: "error_rate",
  threshold,
  receivers: [{ type: "webhook", url: "https://receiver.example/hook" }],
});
const routePath = (known: Known) => `${ROUTES}/${known["route"]}`;
const tokenPath = (known: Known) => `${ACCOUNT}/tokens/${known["tokenId"]}`;
const CUSTOM = `${ACCOUNT}/ai-gateway/custom-providers`;
const customPath = (known: Known) => `${CUSTOM}/${known["custom"]}`;
const KEYS = `${GATEWAY}/provider_configs`;
const SHARED_KEYS = `${ACCOUNT}/ai-gateway/provider_configs`;
const PRICES = `${ACCOUNT}/ai-gateway/prices`;
const LIMITS = `${ACCOUNT}/ai-gateway/limits`;
const GUARDRAILS = `${ACCOUNT}/ai-gateway/guardrails`;
const WEBHOOK_ROUTES = "/accounts/default/webhooks/sources/generic/routes";

/** In order: later cases use what earlier ones have created. */
export const SETTINGS_CASES: readonly SettingsCase[] = [
  {
    kind: "account",
    operation: "POST /accounts",
    write: call("POST", "/accounts", { id: "own" }),
    look: read("/accounts"),
  },
  {
    kind: "gateway",
    operation: "POST /accounts/{account_id}/ai-gateway/gateways",
    write: call("POST", GATEWAYS, { id: "mine" }),
    look: read(GATEWAYS),
  },
  {
    kind: "gateway",
    operation: "PUT /accounts/{account_id}/ai-gateway/gateways/{gateway_id}",
    write: call("PUT", GATEWAY, { authentication: true, cache_ttl: 60 }),
    look: read(GATEWAYS),
  },
  {
    kind: "token",
    operation: "POST /accounts/{account_id}/tokens",
    write: call(
      "POST",
      `${ACCOUNT}/tokens`,
      { name: "t", permissions: ["gateway.read", "gateway.run"] },
      { token: "token", tokenBefore: "token", tokenId: "id" },
    ),
    look: use("token"),
  },
  {
    kind: "token",
    operation: "PATCH /accounts/{account_id}/tokens/{token_id}",
    title: "a policy",
    write: call("PATCH", tokenPath, { models: ["another-model"] }),
    look: run("token"),
  },
  {
    kind: "token",
    operation: "PATCH /accounts/{account_id}/tokens/{token_id}",
    title: "disabled",
    write: call("PATCH", tokenPath, { disabled: true }),
    look: use("token"),
  },
  {
    kind: "token",
    operation: "PATCH /accounts/{account_id}/tokens/{token_id}",
    title: "enabled again",
    write: call("PATCH", tokenPath, { disabled: false }),
    look: use("token"),
  },
  {
    kind: "token",
    operation: "POST /accounts/{account_id}/tokens/{token_id}/rotate",
    write: call("POST", (known) => `${tokenPath(known)}/rotate`, {}, { token: "token" }),
    look: async (node, known) => [await use("token")(node, known), await use("tokenBefore")(node, known)],
  },
  {
    kind: "session",
    title: "a login",
    write: async (node, known) => {
      const response = await fetch(`${node.url}/dashboard/session`, {
        method: "POST",
        headers: { origin: node.url },
        body: JSON.stringify({ token: known["token"] }),
      });
      known["cookie"] = response.headers.get("set-cookie")?.split(";")[0] ?? "";
    },
    look: withCookie,
  },
  {
    kind: "session",
    title: "a logout",
    write: async (node, known) => {
      const response = await fetch(`${node.url}/dashboard/session`, {
        method: "DELETE",
        headers: { origin: node.url, cookie: known["cookie"] ?? "" },
      });
      expect(response.ok).toBe(true);
    },
    look: withCookie,
  },
  {
    kind: "token",
    operation: "DELETE /accounts/{account_id}/tokens/{token_id}",
    write: call("DELETE", tokenPath),
    look: use("token"),
  },
  {
    kind: "token",
    operation: "POST /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/tokens",
    write: call("POST", `${GATEWAY}/tokens`, { name: "bound" }, { bound: "token" }),
    look: run("bound"),
  },
  {
    kind: "custom_provider",
    operation: "POST /accounts/{account_id}/ai-gateway/custom-providers",
    write: call("POST", CUSTOM, { name: "c", slug: "c", base_url: "https://one.example" }, { custom: "id" }),
    look: read(CUSTOM),
  },
  {
    kind: "custom_provider",
    operation: "PATCH /accounts/{account_id}/ai-gateway/custom-providers/{provider_id}",
    write: call("PATCH", customPath, { base_url: "https://two.example", headers: '{"x-a":"b"}' }),
    look: read(CUSTOM),
  },
  {
    kind: "custom_provider",
    operation: "DELETE /accounts/{account_id}/ai-gateway/custom-providers/{provider_id}",
    write: call("DELETE", customPath),
    look: read(CUSTOM),
  },
  {
    kind: "provider_key",
    operation: "POST /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/provider_configs",
    write: call("POST", KEYS, { provider_slug: "openai", secret: "sk-of-the-gateway-1234" }, { key: "id" }),
    look: read(KEYS),
  },
  {
    kind: "provider_key",
    operation: "PATCH /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/provider_configs/{config_id}",
    write: call("PATCH", (known) => `${KEYS}/${known["key"]}`, {
      secret: "sk-of-the-gateway-5678",
      weight: 3,
    }),
    look: read(KEYS),
  },
  {
    kind: "provider_key",
    operation: "DELETE /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/provider_configs/{config_id}",
    write: call("DELETE", (known) => `${KEYS}/${known["key"]}`),
    look: read(KEYS),
  },
  {
    kind: "provider_key",
    operation: "POST /accounts/{account_id}/ai-gateway/provider_configs",
    write: call(
      "POST",
      SHARED_KEYS,
      { provider_slug: "openai", secret: "sk-of-the-account-12" },
      { key: "id" },
    ),
    look: read(SHARED_KEYS),
  },
  {
    kind: "provider_key",
    operation: "PATCH /accounts/{account_id}/ai-gateway/provider_configs/{account_config_id}",
    write: call("PATCH", (known) => `${SHARED_KEYS}/${known["key"]}`, { weight: 7 }),
    look: read(SHARED_KEYS),
  },
  {
    kind: "provider_key",
    operation: "DELETE /accounts/{account_id}/ai-gateway/provider_configs/{account_config_id}",
    write: call("DELETE", (known) => `${SHARED_KEYS}/${known["key"]}`),
    look: read(SHARED_KEYS),
  },
  {
    kind: "prices",
    operation: "PUT /accounts/{account_id}/ai-gateway/prices",
    write: call("PUT", PRICES, { prices: { openai: { x: { in: 1, out: 2 } } } }),
    look: read(PRICES),
  },
  {
    kind: "prices",
    operation: "DELETE /accounts/{account_id}/ai-gateway/prices",
    write: call("DELETE", PRICES),
    look: read(PRICES),
  },
  {
    kind: "limits",
    operation: "PUT /accounts/{account_id}/ai-gateway/limits",
    write: call("PUT", LIMITS, { rules: [{ limitType: "cost", limit: 5, window: "day" }] }),
    look: read(LIMITS),
  },
  {
    kind: "limits",
    operation: "DELETE /accounts/{account_id}/ai-gateway/limits",
    write: call("DELETE", LIMITS),
    look: read(LIMITS),
  },
  {
    kind: "guardrails",
    operation: "PUT /accounts/{account_id}/ai-gateway/guardrails",
    write: call("PUT", GUARDRAILS, { rules: [{ id: "a", type: "words", words: ["x"], action: "flag" }] }),
    look: read(GUARDRAILS),
  },
  {
    kind: "gateway",
    operation: "PUT /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/guardrails",
    write: call("PUT", `${GATEWAY}/guardrails`, {
      rules: [{ id: "b", type: "words", words: ["y"], action: "flag" }],
    }),
    look: read(`${GATEWAY}/guardrails`),
  },
  {
    kind: "route",
    operation: "POST /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/routes",
    write: call("POST", ROUTES, { name: "r", elements: element("one") }, { route: "id" }),
    look: read(ROUTES),
  },
  {
    kind: "route",
    operation: "PATCH /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/routes/{route_id}",
    write: call("PATCH", routePath, { name: "renamed" }),
    look: read(ROUTES),
  },
  {
    kind: "route",
    operation: "POST /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/routes/{route_id}/versions",
    write: call(
      "POST",
      (known) => `${routePath(known)}/versions`,
      { elements: element("two") },
      { version: "version_id" },
    ),
    look: async (node, known) => (await node.api("GET", `${routePath(known)}/versions`)).body.result,
  },
  {
    kind: "route",
    operation: "POST /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/routes/{route_id}/deployments",
    write: async (node, known) => {
      const body = { version_id: known["version"] };
      await call("POST", (names) => `${routePath(names)}/deployments`, body)(node, known);
    },
    look: async (node, known) => (await node.api("GET", routePath(known))).body.result,
  },
  {
    kind: "route",
    operation: "DELETE /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/routes/{route_id}",
    write: call("DELETE", routePath),
    look: read(ROUTES),
  },
  {
    kind: "alert",
    operation: "POST /accounts/{account_id}/alerts",
    write: call("POST", ALERTS, alert(0.5), { alert: "id" }),
    look: read(ALERTS),
  },
  {
    kind: "alert",
    operation: "PUT /accounts/{account_id}/alerts/{alert_id}",
    write: call("PUT", ({ alert: id }) => `${ALERTS}/${id}`, alert(0.2)),
    look: read(ALERTS),
  },
  {
    kind: "alert",
    operation: "DELETE /accounts/{account_id}/alerts/{alert_id}",
    write: call("DELETE", ({ alert: id }) => `${ALERTS}/${id}`),
    look: read(ALERTS),
  },
  {
    kind: "webhook_route",
    operation: "PUT /accounts/{account_id}/webhooks/sources/{source_name}/routes/{route_name}",
    write: call("PUT", `${WEBHOOK_ROUTES}/mine`, { to: { agent: "webhook-agent" } }),
    look: read(WEBHOOK_ROUTES),
  },
  {
    kind: "webhook_route",
    operation: "DELETE /accounts/{account_id}/webhooks/sources/{source_name}/routes/{route_name}",
    write: call("DELETE", `${WEBHOOK_ROUTES}/mine`),
    look: read(WEBHOOK_ROUTES),
  },
  {
    kind: "gateway",
    operation: "DELETE /accounts/{account_id}/ai-gateway/gateways/{gateway_id}",
    write: call("DELETE", GATEWAY),
    look: async (node, known) => [await read(GATEWAYS)(node, known), await use("bound")(node, known)],
  },
];

/** Operations that have tests of their own, or that write nothing that a node keeps in memory. */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  "POST /login-links": "has a test of its own in settings.test.ts",
  "POST /provider_keys/rotate_master": "has a test of its own in settings.test.ts",
  "DELETE /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/circuits":
    "has a test of its own in settings.test.ts",
  "POST /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/routes/{route_id}/try": "writes nothing",
  "POST /accounts/{account_id}/ai-gateway/gateways/{gateway_id}/usage":
    "writes a row and a charge; amounts over nodes have tests of their own",
  "POST /accounts/{account_id}/ai-gateway/guardrails/try": "writes nothing",
  "POST /accounts/{account_id}/ai-gateway/guardrails/try/calls": "writes nothing",
  "POST /backup": "writes nothing",
  "POST /log_push/run": "writes files and rows that nodes do not keep in memory",
  "POST /accounts/{account_id}/alerts/{alert_id}/test": "sends a notice; nodes keep no notices in memory",
};

/** Areas whose writes are rows that nodes read for each request, or that have tests of their own: logs, limits, agents, webhooks and tags. */
export const OTHER_AREAS = /\/(logs|credit|agents|webhooks|tags)(\/|$)/;
