/** Creates sample data: gateways with tags, calls over 24 hours, tokens, limits, an alert, and webhook deliveries, some of which fail. */
export interface SeedTarget {
  readonly url: string;
  readonly rootToken: string;
  /** Sets the clock of the service. */
  readonly setTime: (time: number) => void;
}

const HOUR_MS = 3_600_000;
/** Number of calls in each hour of the day. */
const CALLS_BY_HOUR = [2, 1, 1, 1, 2, 3, 5, 8, 12, 15, 14, 12, 11, 14, 16, 15, 13, 10, 8, 6, 5, 4, 3, 2];

const GATEWAYS = [
  { id: "default", tags: { team: "platform", env: "dev" }, model: "gpt-4o-mini" },
  { id: "support-bot", tags: { team: "support", env: "prod" }, model: "gpt-4o" },
  { id: "code-review", tags: { team: "platform", env: "prod" }, model: "gpt-4.1-mini" },
];

const QUESTIONS = [
  "Why did the last build fail?",
  "Summarise the open tickets of today.",
  "Is there anything unusual in the latency of the night?",
];

export async function seed(target: SeedTarget): Promise<void> {
  const api = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(target.url + path, {
      method,
      headers: { authorization: `Bearer ${target.rootToken}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? null : ((await response.json()) as { result: unknown }).result;
  };
  const now = Date.now();
  target.setTime(now - 24 * HOUR_MS);
  for (const { id, tags } of GATEWAYS) {
    if (id !== "default") await api("POST", "/accounts/default/ai-gateway/gateways", { id });
    await api("PUT", "/accounts/default/tags", { resource_type: "ai_gateway", resource_id: id, tags });
  }
  await seedTokens(api);
  await seedLimits(api);
  for (let hour = 0; hour < 24; hour++) {
    const start = now - (24 - hour) * HOUR_MS;
    const calls = CALLS_BY_HOUR[new Date(start).getHours()] ?? 1;
    await Promise.all(
      Array.from({ length: calls }, (_, i) => {
        target.setTime(start + ((i + 0.5) * HOUR_MS) / calls);
        return call(target.url, hour * 31 + i);
      }),
    );
  }
  target.setTime(now);
  await seedWebhooks(target.url, api);
}

async function seedTokens(api: (method: string, path: string, body?: unknown) => Promise<unknown>) {
  const tokens = [
    { name: "support-bot in production", permissions: ["gateway.run"], gateway_id: "support-bot" },
    { name: "ci", permissions: ["gateway.read", "tags.read"] },
    { name: "on-call dashboard", permissions: ["agents.read", "webhooks.read", "gateway.read"] },
  ];
  for (const token of tokens) await api("POST", "/accounts/default/tokens", token);
}

/** A limit that is nearly used up at the end of the day, and an alert that fires. */
async function seedLimits(api: (method: string, path: string, body?: unknown) => Promise<unknown>) {
  await api("PUT", "/accounts/default/ai-gateway/limits", {
    rules: [{ id: "monthly-budget", limitType: "requests", limit: 220, window: 30 * 86_400 }],
  });
  await api("PUT", "/accounts/default/ai-gateway/gateways/support-bot/guardrails", {
    rules: [
      { id: "people", on: ["prompt"], type: "pii", kinds: ["email", "phone", "card"], action: "mask" },
      { id: "keys", type: "secrets", action: "block", logs: "masked" },
      { id: "tickets", on: ["prompt"], type: "words", words: ["open tickets"], action: "flag" },
    ],
  });
  await api("POST", "/accounts/default/alerts", {
    name: "Deliveries fail",
    metric: "failed_deliveries",
    threshold: 1,
    window: 3600,
    receivers: [{ type: "webhook", url: "http://127.0.0.1:9/hooks/alerts" }],
  });
}

async function call(url: string, n: number): Promise<void> {
  const gateway = GATEWAYS[n % GATEWAYS.length] ?? { id: "default", model: "gpt-4o-mini" };
  const provider = n % 7 === 0 ? "mistral" : "openai";
  const model = provider === "mistral" ? "mistral-small-latest" : gateway.model;
  const response = await fetch(`${url}/v1/default/${gateway.id}/${provider}/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: "Bearer provider-key",
      "gw-aig-metadata": JSON.stringify({ user: ["ada", "grace", "edsger"][n % 3], feature: "chat" }),
    },
    body: JSON.stringify({
      model,
      stream: n % 2 === 0,
      messages: [
        { role: "system", content: "You help the operations team. Be brief." },
        { role: "user", content: QUESTIONS[n % QUESTIONS.length] },
      ],
    }),
  });
  await response.text();
}

async function seedWebhooks(
  url: string,
  api: (method: string, path: string, body?: unknown) => Promise<unknown>,
): Promise<void> {
  const send = (source: string, entity: string, type?: string) =>
    api("POST", `/accounts/default/webhooks/sources/${source}/test`, { entity, type });
  for (const entity of [
    "acme/widgets",
    "acme/website",
    "acme/widgets",
    "acme/api",
    "acme/billing",
    "acme/widgets",
  ])
    await send("github", entity);
  for (const entity of ["acme/api", "acme/mobile-app-with-a-very-long-name-of-its-own"])
    await send("github", entity, "issues");
  await send("stripe", "cus_ada");
  // Its turn is still running when the pictures are taken.
  void send("github", "acme/release-train", "release").catch(() => undefined);
  // A delivery with a forged signature, which is rejected.
  await fetch(`${url}/webhooks/github`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${"0".repeat(64)}` },
    body: '{"repository":{"full_name":"acme/widgets"}}',
  });
}
