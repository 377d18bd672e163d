/**
 * Sections of the contract and their test files. A section without a file fails, and so does a file without a
 * section.
 */
import { readdirSync } from "node:fs";
import { expect, it } from "vitest";

const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  "running it: flags, environment, configuration file, first start, stopping": [
    "running-it",
    "start-refusals",
    "command-line",
    "completion",
    "dev-reload",
    "doctor",
  ],
  "the listener: limits, request targets, malformed input, operations": ["listener"],
  "envelope, accounts, tokens, permissions": ["accounts-and-tokens", "audit-log", "management-texts"],
  "exposure: loopback or other addresses, a separate administration address": ["exposure"],
  "TLS by certificate files": ["tls"],
  "gateway: path, providers and forwarding": ["gateway-forwarding", "gateway-providers", "gateway-clients"],
  "gateway: unified doors, names of models, translation": [
    "gateway-doors",
    "gateway-door-clients",
    "gateway-door-frameworks",
    "gateway-door-errors",
    "gateway-door-tools",
    "gateway-ai-gateway-provider",
    "gateway-coding-agents",
    "gateway-open-responses",
    "gateway-translation",
    "gateway-models",
    "gateway-cloud-providers",
    "gateway-converse",
    "gateway-gemini-door",
    "gateway-passed-endpoints",
    "gateway-stored-responses",
    "gateway-jobs",
  ],
  "gateway: authentication and refusals": ["gateway-authentication"],
  "gateway: guardrails": ["gateway-guardrails"],
  "virtual keys: members, changes, rotation, usage": ["virtual-keys", "keys-command-line"],
  "provider keys: stored keys, pools": ["stored-provider-keys"],
  "gateway: imports of prices and of other gateways' files": ["import-command-line"],
  "gateway: streaming, back-pressure and aborts": ["gateway-streaming"],
  "gateway: retries, time-outs and fallback": [
    "gateway-retries",
    "gateway-failover",
    "gateway-cut-streams",
    "gateway-no-answer",
  ],
  "gateway: dynamic routes": ["gateway-dynamic-routes", "cli-routes"],
  "gateway: cache, rate and spend limits": [
    "gateway-cache-and-limits",
    "gateway-books",
    "gateway-bill",
    "gateway-price-list",
    "gateway-booked-usage",
    "gateway-figures",
    "gateway-credit",
    "gateway-most-used-limits",
  ],
  "gateway: errors of the data plane": ["gateway-bad-input"],
  "gateway: management and stored calls": [
    "gateway-management",
    "gateway-logs",
    "gateway-usage",
    "gateway-usage-by-whom",
    "gateway-log-work",
    "gateway-log-push",
    "gateway-on-postgres",
    "cli-logs",
  ],
  "gateway: realtime sessions": ["gateway-realtime", "gateway-realtime-clients", "gateway-realtime-end"],
  "observability: OpenTelemetry": ["otel", "otel-agents"],
  "observability: alerts": ["alerts", "alerts-command-line"],
  "webhooks: routes, order of work, statuses, signatures": ["webhook-intake", "webhook-overload"],
  "webhooks: entities, addresses, required fields": ["webhook-entities"],
  "webhooks: routes to several targets": [
    "webhook-routes",
    "webhook-routes-command-line",
    "webhook-listen",
    "webhook-listen-keys",
    "import-hookdeck",
  ],
  "webhooks: schemes of senders": ["webhook-schemes"],
  "webhooks: response times": ["webhook-late"],
  "webhooks: secrets": ["webhook-secret"],
  "webhooks: agents that verify deliveries themselves": ["webhook-verifying-agent"],
  "webhooks: event records, deduplication, retention, state": ["webhook-agent", "webhook-refusals"],
  "webhooks: outgoing": ["webhook-outgoing"],
  "webhooks: deliveries, replay, samples": ["webhook-inspector", "webhook-failures"],
  "agents: routing, requests, callable methods, names": ["agents-calls"],
  "agents: the class and its hooks": [
    "agents-hooks",
    "agents-modules",
    "agents-large-integers",
    "agents-ported",
    "agents-long-work",
  ],
  "agents: callers, identity and other origins": ["agents-identity"],
  "agents: one instance per entity, its states, hibernation": ["agents-instances", "agents-matrix"],
  "agents: live state and the wire protocol": [
    "agents-live",
    "agents-closed-connections",
    "agents-original-clients",
    "client-agents",
  ],
  "agents: queue and schedules": ["agents-work", "agents-waking"],
  "agents: management": ["agents-management", "agents-debugging"],
  "agents: on PostgreSQL": ["agents-on-postgres"],
  "agents: subscriptions to tag changes": ["agents-tag-changes"],
  "tags: reading, setting and deleting, error codes and limits": ["tags-writing", "tags-errors"],
  "tags: filters and lists": ["tags-listing", "tags-strictness"],
  "tags: the public SDK and the command line": ["tags-clients", "tags-command-line"],
  "tags: beyond the contract": ["tags-extensions"],
  "client and dashboard": ["client-sdk", "dashboard"],
};

it("every section has a test file, and every test file has a section", () => {
  const present = readdirSync(import.meta.dirname)
    .filter((file) => file.endsWith(".test.ts") && file !== "sections.test.ts")
    .map((file) => file.replace(/(\.long)?\.test\.ts$/, ""));
  const claimed = Object.values(SECTIONS).flat();
  expect(claimed.toSorted()).toEqual(present.toSorted());
});
