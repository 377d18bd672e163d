/** Starts Chromium for tests and opens pages that record their errors. */
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { CHROMIUM_IS_MISSING, findChromium } from "./chromium-path.ts";

/** Test machines are offline, so Chromium's background requests would only fail and cost time. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** As long as other tests wait for what must happen; see `vitest.config.ts`. */
const PATIENCE_MS = 600_000;

/** Starts headless Chromium with an empty profile; the caller closes it. */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === null) throw new Error(CHROMIUM_IS_MISSING);
  return await chromium.launch({ executablePath, headless: true, args: FLAGS, timeout: PATIENCE_MS });
}

export interface WatchedPage {
  readonly page: Page;
  /** Uncaught errors and `console.error` lines so far, oldest first. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

/** Opens a page in a new context, with separate cookies and storage. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(`uncaught: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`console: ${message.text()} (${message.location().url})`);
  });
  return { page, problems, close: () => context.close() };
}
