/**
 * `node scripts/screenshots.ts [folder]`: takes the screenshots for the README from a real service with a day of sample traffic and
 * writes them to `folder` (default: docs/images). Requires Chromium, like the browser tests.
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
  { name: "gateway-settings", path: "/gateways/support-bot" },
  { name: "analytics", path: "/usage", theme: "dark" },
  { name: "logs", path: "/gateways/support-bot/logs" },
  { name: "agent", path: "/agents/webhook-agent/acme-widgets" },
  { name: "webhooks", path: "/webhooks/deliveries" },
  { name: "tags", path: "/tags", theme: "dark" },
];

const folder = process.argv[2] ?? join(import.meta.dirname, "../docs/images");
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
const providers = { openai: { baseUrl: upstream.url }, mistral: { baseUrl: upstream.url } };
const service = await startService({
  config: { ...config, file: checkConfigFile({ providers }, "screenshots") },
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
  for (const shot of SHOTS) await take(shot);
} finally {
  await browser.close();
  await service.stop();
  await upstream.close();
  await rm(dataDir, { recursive: true, force: true });
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
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await context.close();
  console.log(`${name}.png`);
}
