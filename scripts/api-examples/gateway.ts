/** Gateways, stored calls, provider keys, prices, limits, dynamic routes and guardrails. */
import { step } from "./step.ts";

export const GATEWAYS = [
  step(({ account }) => account.gateways.create({ id: "shop", authentication: true, cache_ttl: 300 })),
  step(({ account }) => account.gateways.list({ search: "sh" }).all()),
  step(({ account }) => account.gateways.get("shop")),
  step(({ account }) =>
    account.gateways.update("shop", {
      retry_max_attempts: 3,
      spend_limits: { rules: [{ id: "day", limitType: "cost", limit: 20, window: "day" }] },
    }),
  ),
  step(({ account }) => account.gateways.createToken("shop", { name: "checkout" })),
  step(({ account }) => account.gateways.providerUrl("shop", "openai")),
  step(({ account }) => account.routes("shop").circuits()),
  step(({ account }) => account.routes("shop").closeCircuits()),
];

/** After a call of the gateway `shop`. */
export const CALLS = [
  step(
    ({ account }) =>
      account
        .logs("shop")
        .list({ filters: [{ key: "provider", operator: "eq", value: ["echo"] }] })
        .page(),
    ({ items: [call] }: { items: readonly { id: string }[] }) => ({ callId: call?.id ?? "" }),
  ),
  step(({ account, callId }) => account.logs("shop").get(callId)),
  step(({ account, callId }) => account.logs("shop").edit(callId, { feedback: 1, score: 90 })),
  step(({ account, callId }) => account.logs("shop").request(callId)),
  step(({ account, callId }) => account.logs("shop").response(callId)),
  step(({ account, callId }) => account.logs("shop").neighbours(callId)),
  step(({ account, callId }) => account.logs("shop").curl(callId)),
  step(({ account, callId }) => account.logs("shop").replay(callId, { model: "echo/echo" })),
  step(({ account }) => account.allLogs.list({ q: "hello", limit: 20 }).page()),
  step(({ account }) => account.allLogs.export({ format: "ndjson", bodies: true })),
  step(({ account }) => account.guardrails.findings({ limit: 1000 })),
  step(({ account }) =>
    account.guardrails.tryCalls([{ id: "greeting", type: "words", words: ["hello"], action: "flag" }]),
  ),
  step(({ account }) => account.usage({ group_by: ["day", "model"] })),
  step(({ account }) =>
    account.budgets.bookUsage("shop", {
      provider: "openai",
      model: "gpt-5",
      tokens_in: 1200,
      tokens_out: 300,
      cost: 0.0045,
    }),
  ),
  step(({ account }) => account.logs("shop").delete({ limit: 1 })),
];

export const PROVIDERS = [
  step(
    ({ account }) =>
      account
        .providerKeys("shop")
        .create({ provider_slug: "openai", alias: "first", secret: "sk-the-key-of-openai" }),
    ({ id }: { id: string }) => ({ keyId: id }),
  ),
  step(({ account }) => account.providerKeys("shop").list().all()),
  step(({ account, keyId }) => account.providerKeys("shop").get(keyId)),
  step(({ account, keyId }) => account.providerKeys("shop").update(keyId, { weight: 2, rate_limit: 600 })),
  step(({ account, keyId }) => account.providerKeys("shop").delete(keyId)),
  step(
    ({ account }) =>
      account.providerKeys().create({ provider_slug: "anthropic", secret: "sk-ant-the-key-of-anthropic" }),
    ({ id }: { id: string }) => ({ accountKeyId: id }),
  ),
  step(({ account }) => account.providerKeys().list().all()),
  step(({ account, accountKeyId }) => account.providerKeys().get(accountKeyId)),
  step(({ account, accountKeyId }) => account.providerKeys().update(accountKeyId, { disabled: true })),
  step(({ account, accountKeyId }) => account.providerKeys().delete(accountKeyId)),
  step(
    ({ client }) =>
      client.request("POST", "/accounts/default/ai-gateway/custom-providers", {
        body: { name: "Own models", slug: "own", base_url: "https://models.example/v1" },
      }),
    ({ result }: { result: { id: string } }) => ({ providerId: result.id }),
  ),
  step(({ client }) => client.request("GET", "/accounts/default/ai-gateway/custom-providers")),
  step(({ client, providerId }) =>
    client.request("GET", `/accounts/default/ai-gateway/custom-providers/${providerId}`),
  ),
  step(({ client, providerId }) =>
    client.request("PATCH", `/accounts/default/ai-gateway/custom-providers/${providerId}`, {
      body: { description: "vLLM in our own rack" },
    }),
  ),
  step(({ client, providerId }) =>
    client.request("DELETE", `/accounts/default/ai-gateway/custom-providers/${providerId}`),
  ),
];

export const MONEY = [
  step(({ account }) => account.budgets.setPrices({ openai: { "gpt-5": { in: 1.25, out: 10 } } })),
  step(({ account }) => account.budgets.findPrice("openai", "gpt-5")),
  step(({ account }) => account.budgets.priceList("mistral")),
  step(({ account }) => account.budgets.deletePrices()),
  step(({ account }) =>
    account.budgets.setLimits([
      { id: "month", limitType: "cost", limit: 500, window: "month" },
      { id: "prepaid", limitType: "cost", limit: 100, window: null },
    ]),
  ),
  step(({ account }) => account.budgets.limits()),
  step(({ account }) => account.budgets.state()),
  step(({ account }) => account.budgets.state({ gatewayId: "shop" })),
  step(({ account }) => account.budgets.mostUsed({ limit: 5 })),
  step(({ account }) => account.budgets.addCredit(25, { rule: "prepaid" })),
];

/** After the gateway `shop` and the token have a limit without a window. */
export const CREDIT = [
  step(({ account }) => account.budgets.addCredit(25, { gatewayId: "shop", rule: "prepaid" })),
  step(({ account, tokenId }) => account.budgets.addCredit(10, { tokenId })),
  step(({ client }) => client.request("DELETE", "/accounts/default/ai-gateway/limits")),
];

export const ROUTES = [
  step(
    ({ account }) =>
      account.routes("shop").create({
        name: "support",
        elements: [
          { id: "start", type: "start", outputs: { next: { elementId: "model" } } },
          {
            id: "model",
            type: "model",
            properties: { provider: "openai", model: "gpt-5" },
            outputs: { success: { elementId: "end" } },
          },
          { id: "end", type: "end" },
        ],
      }),
    ({ id }: { id: string }) => ({ routeId: id }),
  ),
  step(({ account }) => account.routes("shop").list().all()),
  step(({ account, routeId }) => account.routes("shop").get(routeId)),
  step(({ account, routeId }) => account.routes("shop").rename(routeId, "help-desk")),
  step(
    ({ account, routeId }) =>
      account.routes("shop").createVersion(routeId, [
        { id: "start", type: "start", outputs: { next: { elementId: "model" } } },
        {
          id: "model",
          type: "model",
          properties: { provider: "anthropic", model: "claude-sonnet-4-5" },
          outputs: { success: { elementId: "end" } },
        },
        { id: "end", type: "end" },
      ]),
    (version: { version_id: string }) => ({ versionId: version.version_id }),
  ),
  step(({ account, routeId }) => account.routes("shop").versions(routeId)),
  step(({ client, routeId, versionId }) =>
    client.request(
      "GET",
      `/accounts/default/ai-gateway/gateways/shop/routes/${routeId}/versions/${versionId}`,
    ),
  ),
  step(({ account, routeId, versionId }) =>
    account.routes("shop").try(routeId, { version_id: versionId, metadata: { plan: "free" } }),
  ),
  step(({ account, routeId, versionId }) => account.routes("shop").deploy(routeId, versionId)),
  step(({ account, routeId }) => account.routes("shop").deployments(routeId)),
  step(({ account, routeId }) => account.routes("shop").delete(routeId)),
];

export const GUARDRAILS = [
  step(({ account }) =>
    account.guardrails.setRules(
      [{ id: "cards", type: "pii", kinds: ["card", "iban"], action: "mask" }],
      "shop",
    ),
  ),
  step(({ account }) => account.guardrails.rules("shop")),
  step(({ account }) =>
    account.guardrails.setRules([{ id: "keys", type: "secrets", on: ["prompt"], action: "block" }]),
  ),
  step(({ account }) => account.guardrails.rules()),
  step(({ account }) =>
    account.guardrails.tryText(
      [{ id: "mail", type: "pii", kinds: ["email"], action: "mask" }],
      "Write to ada@example.com",
    ),
  ),
  step(({ client }) => client.request("GET", "/accounts/default/ai-gateway/guardrails/secret")),
];

export const LAST = [
  step(({ account, tokenId }) => account.tokens.revoke(tokenId)),
  step(({ account }) => account.gateways.delete("shop")),
];
