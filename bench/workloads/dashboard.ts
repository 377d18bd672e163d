/**
 * The dashboard in Chromium against a server with a million calls and 10,000 instances: how long a person looks at a page without data, and how long
 * a click or key takes until the page has changed. Chromium shares the machine with the server and may use all cores; each page is opened in a new
 * window, as at the first visit. `--quick` builds a fiftieth of the data.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { launchBrowser } from "../../test/browser/support/launch-browser.ts";
import { DAYS, sendDeliveries, storeCallsIn } from "../support/growth-data.ts";
import { createGateways } from "../support/growth-requests.ts";
import { unpinLoadGenerator } from "../support/server-on-core.ts";
import { isQuick } from "../support/quick.ts";
import { type RunningSignalbox, startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { ROOT_TOKEN } from "../support/tag-server.ts";
import { type Contender, ownFigure, type Sample, type Workload } from "../support/workload.ts";

const SHARE = isQuick ? 1 / 50 : 1;
const CALLS = 1_000_000 * SHARE;
/** One delivery each. */
const INSTANCES = 10_000 * SHARE;
const SECRET = "secret-of-the-dashboard-benchmark";
const HEADERS = { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" };
const WINDOW = { width: 1440, height: 900 };

interface PageUnderTest {
  readonly path: string;
  /** What shows that the data have arrived. */
  readonly content: string;
  /** What people do there; each waits for its effect. */
  use(page: Page): Promise<void>;
}

const row = "tbody tr";

const PAGES: Readonly<Record<string, PageUnderTest>> = {
  overview: {
    path: "",
    content: ".usage-panel svg",
    async use(page) {
      for (const tile of ["Cost", "Tokens", "Error rate"]) {
        const button = page.getByRole("button", { name: tile });
        await button.click();
        await page.locator("[aria-pressed=true]", { hasText: tile }).waitFor();
      }
    },
  },
  logs: {
    path: "/logs",
    content: row,
    async use(page) {
      for (let i = 0; i < 5; i++) await page.keyboard.press("j");
      await page.keyboard.press("k");
      await page.locator("aside, [role=complementary]").first().waitFor();
    },
  },
  "usage of 30 days": {
    path: "/usage?range=30d",
    content: "svg",
    async use(page) {
      await page.mouse.move(600, 400);
      await page.mouse.move(800, 400, { steps: 20 });
      await page.keyboard.press("ArrowRight");
    },
  },
  users: {
    path: "/users?range=30d",
    content: row,
    async use(page) {
      await page.locator(`${row} a`).first().click();
      await page.waitForURL(/\/users\/./);
    },
  },
  "instances of an agent": {
    path: "/agents/webhook-agent",
    content: row,
    async use(page) {
      await page.getByPlaceholder("Instance name").pressSequentially("device-99");
      await page.locator(row).first().waitFor();
    },
  },
  deliveries: {
    path: "/webhooks/deliveries",
    content: row,
    async use(page) {
      await page.locator(`${row} a`).first().click();
      await page.waitForURL(/\/deliveries\/./);
    },
  },
};

/** Longer than any animation or request of a page. */
const AFTER_USE_MS = 500;

const signalbox: Contender = {
  name: "signalbox",
  async start() {
    const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-dashboard-"));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    const dataDir = join(folder, "data");
    mkdirSync(dataDir, { mode: 0o700 });
    await storeCallsIn(dataDir, CALLS);
    const server = await startSignalbox({
      checkout: THIS_CHECKOUT,
      dataDir,
      config: {
        webhooks: { keepDeliveries: 100_000 },
        gateway: { logs: { maxAgeDays: Math.ceil(DAYS) + 1 } },
      },
      env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, WEBHOOK_SECRET: SECRET, SIGNALBOX_LOG_LEVEL: "error" },
    });
    await createGateways(server.port);
    await sendDeliveries(server.port, SECRET, INSTANCES);
    unpinLoadGenerator();
    const browser = await launchBrowser();
    return {
      measure: (scenario) => measurePage(browser, server, PAGES[scenario]),
      cpuTimes: () => server.cpuTimes(),
      async stop() {
        await browser.close();
        await server.stop();
      },
    };
  },
};

async function measurePage(
  browser: Browser,
  server: RunningSignalbox,
  under: PageUnderTest | undefined,
): Promise<Sample> {
  if (under === undefined) return null;
  const context = await browser.newContext({ viewport: WINDOW });
  try {
    await logIn(context, server);
    // A page of its own: nothing of the dashboard is in its memory.
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    // CPU time, which other programs of the machine do not lengthen as they do the rest.
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    await page.addInitScript(OBSERVE_EVENTS);
    await page.goto(`${server.url}/dashboard/accounts/default${under.path}`, { waitUntil: "commit" });
    const content = await page.evaluate<number>(untilShown(under.content));
    const { metrics } = await session.send("Performance.getMetrics");
    const cpu = 1000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0);
    const [paint = 0] = await page.evaluate<number[]>(
      'performance.getEntriesByName("first-contentful-paint").map(({ startTime }) => startTime)',
    );
    await page.waitForLoadState("networkidle");
    await under.use(page);
    await page.waitForTimeout(AFTER_USE_MS);
    const interaction = await page.evaluate<number>("Math.max(0, ...window.interactions)");
    return { cpu, paint, content, interaction };
  } finally {
    await context.close();
  }
}

async function logIn(context: BrowserContext, server: RunningSignalbox): Promise<void> {
  const answer = await fetch(`${server.url}/login-links`, { method: "POST", headers: HEADERS });
  const { result } = (await answer.json()) as { result: { path: string } };
  const page = await context.newPage();
  await page.goto(server.url + result.path);
  await page.locator("h1").waitFor();
  await page.close();
  // What was loaded for the login would spare the page its first requests.
  const session = await context.newCDPSession(await context.newPage());
  await session.send("Network.clearBrowserCache");
}

/** Durations from the input to the next frame, by Event Timing; shorter ones than 16 ms are not reported. */
const OBSERVE_EVENTS = `
  window.interactions = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.interactionId > 0) window.interactions.push(entry.duration);
  }).observe({ type: "event", durationThreshold: 16, buffered: true });
`;

/** Milliseconds since the start of the navigation, in the first frame in which nothing loads and the data are there. */
function untilShown(content: string): string {
  return `new Promise((resolve) => {
    const look = () => {
      const isShown = document.querySelector(".loading") === null && document.querySelector(${JSON.stringify(content)}) !== null;
      if (isShown) resolve(performance.now());
      else requestAnimationFrame(look);
    };
    look();
  })`;
}

const names = Object.keys(PAGES);
const below = (text: string, metric: string, ms: number) => ({
  text: `${text} ${ms} ms on every page`,
  isMet: (median: (contender: string, scenario: string, metric: string) => number | null) =>
    names.every((name) => (median(signalbox.name, name, metric) ?? Infinity) < ms),
});

export const workload: Workload = {
  name: "dashboard",
  summary: `the dashboard in Chromium: ${CALLS.toLocaleString("en")} calls of ${DAYS} days, ${INSTANCES.toLocaleString("en")} instances and deliveries`,
  rounds: isQuick ? 1 : 3,
  contenders: [signalbox],
  scenarios: names.map((name) => ({
    name,
    metrics: [
      { name: "cpu", unit: "ms of CPU time of the page, until the data are shown", better: "lower" },
      { name: "paint", unit: "ms until the first text", better: "lower" },
      { name: "content", unit: "ms until the data are shown", better: "lower" },
      { name: "interaction", unit: "ms of the longest click or key", better: "lower" },
    ],
  })),
  headlines: [
    ownFigure("of CPU time of the page until the overview shows a million calls", "overview", "cpu", "ms"),
  ],
  goals: [
    below("data are shown within", "content", 1000),
    below("a click or key takes less than", "interaction", 100),
  ],
};
