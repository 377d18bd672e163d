/** `signalbox import hookdeck`: connections, in the forms that its interface answers, become routes. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { SECRET } from "../support/webhook-sender.ts";

const CONNECTIONS = {
  pagination: { limit: 250 },
  count: 5,
  models: [
    {
      id: "web_1",
      name: "large-invoices",
      source: { name: "stripe", type: "STRIPE" },
      destination: {
        name: "erp",
        type: "HTTP",
        config: {
          url: "https://erp.example.com/hooks",
          http_method: "PUT",
          auth_type: "BEARER_TOKEN",
          auth: { token: "a-token-of-the-erp" },
          rate_limit: 10,
          rate_limit_period: "minute",
        },
      },
      rules: [
        {
          type: "filter",
          body: { type: { $startsWith: "invoice." } },
          headers: null,
          query: null,
          path: null,
        },
        {
          type: "retry",
          strategy: "exponential",
          interval: 500,
          count: 7,
          response_status_codes: ["500-599", "!501"],
        },
        { type: "delay", delay: 5000 },
        { type: "deduplicate", window: 60_000, include_fields: ["body.id"] },
      ],
      paused_at: null,
      disabled_at: null,
    },
    {
      name: "laptop",
      source: { name: "stripe", type: "STRIPE" },
      destination: { name: "cli", type: "CLI", config: { path: "/" } },
      rules: [],
    },
    {
      // The form before 2025.
      name: "older",
      source: { name: "stripe", type: "STRIPE" },
      destination: {
        name: "old",
        url: "https://old.example.com/",
        rate_limit: 3,
        rate_limit_period: "concurrent",
        auth_method: { type: "HOOKDECK_SIGNATURE", config: {} },
      },
      rules: [{ type: "transform", transformation_id: "trs_1" }],
    },
    {
      name: "gone",
      disabled_at: "2026-01-01T00:00:00Z",
      source: { name: "stripe", type: "STRIPE" },
      destination: { name: "gone", type: "HTTP", config: { url: "https://gone.example.com/" } },
      rules: [],
    },
    {
      name: null,
      source: { name: "My Shop", type: "SHOPIFY" },
      destination: { name: "Orders API", type: "HTTP", config: { url: "https://orders.example.com/" } },
      rules: [],
    },
  ],
};

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ environment: { STRIPE_WEBHOOK_SECRET: SECRET } });
  writeFileSync(join(server.dataDir, "connections.json"), JSON.stringify(CONNECTIONS));
});
afterAll(() => server.stop());

const routes = async () =>
  (await server.api("GET", "/accounts/default/webhooks/sources/stripe/routes")).body.result as Record<
    string,
    unknown
  >[];
const run = (...args: string[]) => runCommand(server, ["import", "hookdeck", "connections.json", ...args]);

it("a dry run changes nothing and names what it would create", async () => {
  const { code, out } = await run("--dry-run");
  expect([code, await routes()]).toEqual([0, []]);
  expect(out).toContain("would be created:\n  route large-invoices of stripe\n  route laptop of stripe\n");
});

it("connections are routes with their rules; what has no equivalent is told and paused, and sources that are missing are a configuration", async () => {
  const { code, out } = await run();
  expect(code).toBe(0);
  const found = Object.fromEntries((await routes()).map((route) => [String(route["name"]), route]));
  expect(Object.keys(found).toSorted((a, b) => a.localeCompare(b))).toEqual([
    "laptop",
    "large-invoices",
    "older",
  ]);
  expect(found["large-invoices"]).toMatchObject({
    to: {
      url: "https://erp.example.com/hooks",
      method: "PUT",
      auth: { type: "bearer", secret: "[secret]" },
    },
    when: { body: { type: { $startsWith: "invoice." } } },
    retry: { strategy: "exponential", intervalMs: 1000, count: 7, statuses: ["500-599", "!501"] },
    rate: { limit: 10, per: "minute" },
    delay: 5000,
    dedupe: { windowMs: 60_000, fields: ["id"] },
    paused: false,
  });
  expect(found["laptop"]).toMatchObject({ to: { listen: true } });
  expect(found["older"]).toMatchObject({ paused: true, rate: { concurrent: 3 } });
  for (const text of [
    "transformations have no equivalent",
    "HOOKDECK_SIGNATURE",
    "is disabled",
    '"my-shop"',
    '"shopify"',
  ])
    expect(out).toContain(text);
  expect(out).not.toContain("a-token-of-the-erp");
});

it("a second run keeps what is there", async () => {
  const { code, out } = await run();
  expect(code).toBe(0);
  expect(out).toContain("already there:\n  route large-invoices of stripe");
  expect(out).not.toContain("created:");
});
