/**
 * Secrets are planted in every member of the body of every writing operation, in paths and in headers, and the audit log is searched for them.
 * Whoever writes, the entry names the caller and the address that the trusted proxy saw.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const GATEWAYS = "/accounts/default/ai-gateway/gateways";
/** Part of every planted secret. */
const MARK = "canary7f3a";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { audit: { trustedProxies: ["127.0.0.0/8"] } } });
});
afterAll(() => server.stop());

interface Entry {
  readonly actor: { ip: string; type: string };
  readonly action: { status: number; code: number | null; outcome: string };
  readonly metadata: { forwarded_for: string | null };
}

async function entriesOf(requestId: string, path = "/accounts/default/audit_logs"): Promise<Entry[]> {
  return (await server.api("GET", `${path}?request_id=${requestId}`)).body.result;
}

async function send(method: string, path: string, headers: Record<string, string>, body?: unknown) {
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  await response.arrayBuffer();
  return response;
}

/** Members that may hold a secret, with names of several services, and texts that show one by their form. */
function planted(): Record<string, unknown> {
  const names = [
    "secret",
    "secret_key",
    "secretKey",
    "client_secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "api_key",
    "apiKey",
    "api-key",
    "access_key",
    "authorization",
    "cookie",
    "private_key",
    "credential",
    "credentials",
    "signing_key",
    "session_token",
    "accessToken",
    "signature",
    "x-api-key",
    "Authorization",
  ];
  const byName = Object.fromEntries(names.map((name, i) => [name, `${MARK}-${i}-plain`]));
  return {
    ...byName,
    id: `x sk-${MARK}abcdefghij`,
    name: `Bearer ${MARK}abcdefghij`,
    slug: `sbx_${MARK}${"a".repeat(36)}`,
    alias: `repeats ${MARK}-0-plain`,
    base_url: `https://user:${MARK}pw@provider.example/v1?key=${MARK}`,
    headers: { "x-anything": `${MARK}-header`, nested: [`${MARK}-nested`] },
    otel: [
      {
        url: `https://c.example/?token=${MARK}`,
        headers: { a: `${MARK}-otel` },
        authorization: `${MARK}-auth`,
      },
    ],
    receivers: [
      { type: "slack", url: `https://chat.example/services/${MARK}` },
      { type: "webhook", url: "https://hook.example", secret: `whsec_${MARK}abcdefgh` },
    ],
    metadata: { deep: { deeper: { password: `${MARK}-deep` } }, jwt: `eyJhbGciOi${MARK}.eyJzdWIiOi.abc` },
    tags: { token: `${MARK}-tag` },
    pem: `-----BEGIN PRIVATE KEY-----\n${MARK}\n-----END PRIVATE KEY-----`,
  };
}

it("no planted secret is in the log, whatever the operation and the outcome", async () => {
  const { body } = await server.api("GET", "/openapi.json");
  const { paths } = body as unknown as { paths: Record<string, object> };
  const writes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((method) => method !== "get")
      .map((method) => ({ method: method.toUpperCase(), path })),
  );
  expect(writes.length).toBeGreaterThan(35);
  const fill = (path: string, other: string) =>
    path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      name === "account_id" || name === "gateway_id" ? "default" : other,
    );
  await Promise.all(
    writes
      .filter(({ method, path }) => !(method === "DELETE" && /\{(?:account|gateway)_id\}$/.test(path)))
      .flatMap(({ method, path }) => [
        send(method, fill(path, "absent"), {}, planted()),
        send(
          method,
          `${fill(path, `sk-${MARK}abcdefghij`)}?token=${MARK}`,
          { "user-agent": `sk-${MARK}abcdefghij` },
          planted(),
        ),
      ]),
  );
  // Accepted ones, too.
  for (const [path, accepted] of [
    [
      "/accounts/default/alerts",
      { name: "a", metric: "spend", threshold: 1, receivers: planted()["receivers"] },
    ],
    [
      `${GATEWAYS}/default/provider_configs`,
      { alias: "a", default_config: false, provider_slug: "openai", secret: `${MARK}-stored` },
    ],
    [
      "/accounts/default/ai-gateway/custom-providers",
      {
        name: "p",
        slug: "p",
        base_url: "https://p.example",
        headers: JSON.stringify({ "x-key": `${MARK}-h` }),
      },
    ],
  ] as const) {
    expect((await send("POST", path, {}, accepted)).status, path).toBe(200);
  }
  for (const log of ["/accounts/default/audit_logs", "/audit_logs"]) {
    for (const format of ["ndjson", "csv"]) {
      const response = await fetch(`${server.url}${log}/export?format=${format}`, {
        headers: { authorization: `Bearer ${ROOT_TOKEN}` },
      });
      const text = await response.text();
      expect(text.length).toBeGreaterThan(1000);
      const at = text.indexOf(MARK);
      expect(at === -1 ? null : text.slice(Math.max(0, at - 300), at + 100)).toBeNull();
    }
  }
});

it("refusals by input, conflict, condition and permission are recorded with status and code", async () => {
  const tag = { resource_type: "worker", resource_id: "w" };
  const reader = await server.token(["gateway.read"]);
  const cases = [
    {
      id: "r400",
      status: 400,
      run: (h: Record<string, string>) => send("PUT", `${GATEWAYS}/default`, h, { cache_ttl: "x" }),
    },
    {
      id: "r409",
      status: 409,
      run: (h: Record<string, string>) => send("POST", GATEWAYS, h, { id: "default" }),
    },
    {
      id: "r403",
      status: 403,
      run: (h: Record<string, string>) =>
        send("DELETE", `${GATEWAYS}/default`, { ...h, authorization: `Bearer ${reader}` }),
    },
    { id: "r404", status: 404, run: (h: Record<string, string>) => send("DELETE", `${GATEWAYS}/absent`, h) },
    {
      id: "r412",
      status: 412,
      run: (h: Record<string, string>) =>
        send("PUT", "/accounts/default/tags", { ...h, "if-match": '"old"' }, { ...tag, tags: { a: "b" } }),
    },
  ];
  for (const { id, status, run } of cases) {
    expect((await run({ "x-request-id": id })).status, id).toBe(status);
    const found = await entriesOf(id);
    expect(found, id).toHaveLength(1);
    expect(found[0]?.action, id).toMatchObject({
      status,
      outcome: "refused",
      code: expect.any(Number) as number,
    });
  }
});

it("the address is the one that the trusted proxy saw, not one that the client claims", async () => {
  await send(
    "POST",
    GATEWAYS,
    { "x-request-id": "by-proxy", "x-forwarded-for": "6.6.6.6, 203.0.113.7" },
    { id: "p1" },
  );
  expect((await entriesOf("by-proxy"))[0]).toMatchObject({
    actor: { ip: "203.0.113.7" },
    metadata: { forwarded_for: "6.6.6.6, 203.0.113.7" },
  });
  const long = `${"6.6.6.6, ".repeat(200)}203.0.113.8`;
  await send("POST", GATEWAYS, { "x-request-id": "by-long", "x-forwarded-for": long }, { id: "p2" });
  expect((await entriesOf("by-long"))[0]?.actor.ip).toBe("203.0.113.8");
});
