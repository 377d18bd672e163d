/**
 * `npm run docs -- screenshots [folder]`: takes the screenshots for the README from a real service with a day of sample traffic and
 * writes them to `folder` (default: docs/images). With `--all`, it takes every page below `folder`: light, dark and as on a phone, for a
 * look at all of them. Requires Chromium, like the browser tests.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../packages/signalbox/src/config/index.ts";
import { checkConfigFile } from "../packages/signalbox/src/config/read-config-file.ts";
import { startService } from "../packages/signalbox/src/service.ts";
import { createLogger } from "../packages/signalbox/src/telemetry/logger.ts";
import { launchBrowser } from "../test/browser/support/launch-browser.ts";
import { seed } from "./screenshots/seed.ts";
import { startUpstream } from "./screenshots/upstream.ts";

interface Shot {
  readonly name: string;
  readonly path: string;
  readonly theme?: "light" | "dark";
  readonly isPhone?: boolean;
}

const SHOTS: readonly Shot[] = [
  { name: "overview", path: "" },
  { name: "gateway-settings", path: "/gateways/support-bot/settings" },
  { name: "analytics", path: "/usage", theme: "dark" },
  { name: "logs", path: "/gateways/support-bot/logs" },
  { name: "agent", path: "/agents/ticket-agent/acme-widgets" },
  { name: "webhooks", path: "/webhooks/deliveries" },
  { name: "tags", path: "/tags", theme: "dark" },
  { name: "guardrails", path: "/guardrails?gateway=support-bot" },
];

const TICKET = "/agents/ticket-agent/acme-billing";
/** Every page with data, for `--all`. */
const PAGES: Readonly<Record<string, string>> = {
  overview: "",
  agents: "/agents",
  problems: "/problems",
  instances: "/agents/ticket-agent",
  instance: TICKET,
  "instance-busy": "/agents/ticket-agent/acme-release-train",
  "instance-state": `${TICKET}/state`,
  "instance-queue": "/agents/ticket-agent/acme-api/queue",
  "instance-dead-letters": `${TICKET}/dead-letters`,
  "instance-schedules": `${TICKET}/schedules`,
  "instance-connections": `${TICKET}/connections`,
  "instance-console": `${TICKET}/console`,
  "instance-sql": `${TICKET}/sql`,
  "instance-missing": "/agents/ticket-agent/no-such",
  sources: "/webhooks",
  source: "/webhooks/sources/github",
  deliveries: "/webhooks/deliveries",
  cluster: "/cluster",
  gateways: "/gateways",
  "gateway-settings": "/gateways/support-bot/settings",
  "gateway-analytics": "/gateways/support-bot/analytics",
  "gateway-logs": "/gateways/support-bot/logs",
  logs: "/logs",
  usage: "/usage",
  users: "/users",
  user: "/users/grace",
  sessions: "/sessions",
  "provider-keys": "/provider-keys",
  providers: "/providers",
  prices: "/prices",
  limits: "/limits",
  guardrails: "/guardrails?gateway=support-bot",
  alerts: "/alerts",
  tags: "/tags",
  tokens: "/tokens",
  audit: "/audit",
};

const isAll = process.argv.includes("--all");
const only = process.argv
  .find((argument) => argument.startsWith("--only="))
  ?.slice(7)
  .split(",");
const folder =
  process.argv.slice(2).find((argument) => !argument.startsWith("--")) ??
  join(import.meta.dirname, "../docs/images");
const dataDir = await mkdtemp(join(tmpdir(), "signalbox-screenshots-"));
const upstream = await startUpstream();
let time: number | null = null;

const environment = {
  GITHUB_WEBHOOK_SECRET: "screenshots",
  STRIPE_WEBHOOK_SECRET: "whsec_screenshots",
  // With this variable, the commands on the overview contain its name instead of a local file path.
  SIGNALBOX_ROOT_TOKEN: "root-token-of-the-screenshots",
};
const config = await loadConfig({ port: process.env["PORT"] ?? "8787", dataDir }, environment, dataDir);
const agents = { modules: [join(import.meta.dirname, "screenshots/agents.ts")] };
const webhooks = { sources: { github: { agent: "ticket-agent" } } };
const providers = { openai: { baseUrl: upstream.url }, mistral: { baseUrl: upstream.url } };
const service = await startService({
  config: {
    ...config,
    file: checkConfigFile(
      { providers, agents, webhooks, outgoing: { allowPrivateHosts: true } },
      "screenshots",
    ),
  },
  logger: createLogger({ level: "error", isPretty: true }),
  clock: { now: () => time ?? Date.now() },
  onFatal: (error) => {
    throw error;
  },
});
const browser = await launchBrowser();
try {
  await seed({
    url: service.url,
    rootToken: service.rootToken.secret.reveal(),
    setTime: (next) => {
      time = next;
    },
  });
  time = null;
  await mkdir(folder, { recursive: true });
  for (const shot of isAll ? await allShots() : SHOTS) await take(shot);
} finally {
  await browser.close();
  await service.stop();
  await upstream.close();
  await rm(dataDir, { recursive: true, force: true });
}

async function allShots(): Promise<Shot[]> {
  const response = await fetch(`${service.url}/accounts/default/webhooks/deliveries`, {
    headers: { authorization: `Bearer ${environment.SIGNALBOX_ROOT_TOKEN}` },
  });
  const { result } = (await response.json()) as { result: { id: string; status: string }[] };
  const ofStatus = (status: string) =>
    `/webhooks/deliveries/${result.find((one) => one.status === status)?.id ?? ""}`;
  const pages = {
    ...PAGES,
    "delivery-accepted": ofStatus("accepted"),
    "delivery-failed": ofStatus("failed"),
    "delivery-rejected": ofStatus("rejected"),
  };
  return Object.entries(pages)
    .filter(([name]) => only === undefined || only.includes(name))
    .flatMap(([name, path]) => [
      { name: `light/${name}`, path },
      { name: `dark/${name}`, path, theme: "dark" as const },
      { name: `phone/${name}`, path, isPhone: true },
    ]);
}

async function take({ name, path, theme = "light", isPhone = false }: Shot): Promise<void> {
  const context = await browser.newContext({
    viewport: isPhone ? { width: 390, height: 844 } : { width: 1200, height: 760 },
    colorScheme: theme,
  });
  const page = await context.newPage();
  await page.goto(await service.createLoginLink());
  await page.goto(`${service.url}/dashboard/accounts/default${path}`);
  await page.locator("h1").waitFor();
  await page.locator(".loading").first().waitFor({ state: "detached" });
  await page.waitForLoadState("networkidle");
  // Charts are drawn after their width has been measured.
  await page.evaluate("new Promise((resolve) => requestAnimationFrame(resolve))");
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: isAll });
  await context.close();
  console.log(`${name}.png`);
}
