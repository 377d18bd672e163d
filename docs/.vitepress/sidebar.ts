/** The order of the pages on the site. A test fails if a page is missing here. Titles are the headings of the pages. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Group {
  readonly title: string;
  readonly pages: readonly string[];
}

export const GROUPS: readonly Group[] = [
  { title: "Start", pages: ["start", "guides/your-own-project", "comparison"] },
  {
    title: "Gateway",
    pages: [
      "guides/protect-and-meter-openai",
      "guides/coding-agents",
      "guides/doors",
      "guides/virtual-keys",
      "guides/limits-and-budgets",
      "guides/guardrails",
      "guides/provider-keys",
      "guides/reliability",
      "guides/dynamic-routes",
      "guides/realtime",
    ],
  },
  {
    title: "Webhooks and agents",
    pages: ["guides/stripe-to-a-live-page", "guides/agent-per-device", "guides/test-agents"],
  },
  {
    title: "Move to Signalbox",
    pages: [
      "guides/from-cloudflare-ai-gateway",
      "guides/run-cloudflare-agents",
      "guides/from-litellm",
      "guides/from-portkey",
    ],
  },
  {
    title: "Run it",
    pages: [
      "guides/deploy",
      "guides/deploy-docker",
      "guides/deploy-systemd",
      "guides/deploy-kubernetes",
      "guides/behind-a-proxy",
      "guides/tls",
      "guides/backup",
      "guides/upgrade",
      "guides/from-one-node-to-many",
      "guides/sizing",
      "guides/observability",
      "guides/working-with-logs",
      "guides/audit-log",
      "failure-modes",
      "benchmarks",
    ],
  },
  {
    title: "Reference",
    pages: [
      "reference/running",
      "reference/configuration",
      "reference/cli",
      "reference/accounts",
      "reference/gateway",
      "reference/gateway-logs",
      "reference/dynamic-routes",
      "reference/providers",
      "reference/webhooks",
      "reference/webhooks-sources",
      "reference/webhooks-routes",
      "reference/webhooks-inspector",
      "reference/agents",
      "reference/agents-write",
      "reference/agents-access",
      "reference/agents-differences",
      "reference/worker",
      "reference/tags",
      "reference/client",
      "reference/dashboard",
      "reference/errors",
      "reference/metrics",
    ],
  },
  {
    title: "API",
    pages: [
      "reference/api/index",
      "reference/api/gateway",
      "reference/api/webhooks",
      "reference/api/agents",
      "reference/api/tags",
      "reference/api/accounts",
    ],
  },
  {
    title: "For authors of Signalbox",
    pages: [
      "architecture",
      "glossary",
      "mechanisms/gateway-call",
      "mechanisms/delivery",
      "mechanisms/instance-move",
      "mechanisms/limit",
      "decisions/README",
      "chaos",
      "promises",
    ],
  },
];

export const sidebar = GROUPS.map(({ title, pages }) => ({
  text: title,
  items: pages.map((page) => ({ text: heading(page), link: `/${page.replace(/(README|index)$/, "")}` })),
}));

function heading(page: string): string {
  const text = readFileSync(join(import.meta.dirname, "..", `${page}.md`), "utf8");
  return /^# (.+)$/m.exec(text)?.[1]?.replaceAll("`", "") ?? page;
}
