/** The Next.js example as a project of its own: installed from the archives, built, and opened in Chromium on two pages. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launchBrowser, openPage } from "../browser/support/launch-browser.ts";
import { seriousViolations } from "../browser/support/serious-violations.ts";
import { withBuiltPackages } from "../support/built-packages.ts";

const ROOT = join(import.meta.dirname, "../..");
const EXAMPLE = join(ROOT, "examples/nextjs");
const ENVIRONMENT = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" };

let project: string;
let browser: Browser;
let signalboxUrl: string;
let pageUrl: string;
const started: ChildProcess[] = [];

function npm(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync("npm", args, {
    cwd: project,
    encoding: "utf8",
    env: ENVIRONMENT,
    // It blocks this process, so the runner's limit would not end it.
    timeout: 600_000,
  });
  expect(status, `npm ${args.join(" ")}: ${stdout}${stderr}`).toBe(0);
  return stdout;
}

/** Starts a script of the project; resolves with the first line that matches. */
async function start(
  script: string,
  args: readonly string[],
  pattern: RegExp,
  environment: object = {},
): Promise<string> {
  const child = spawn("npm", ["run", "--silent", script, "--", ...args], {
    cwd: project,
    stdio: ["ignore", "pipe", "inherit"],
    // npm forwards no signals: they go to all processes of the group.
    detached: true,
    env: { ...ENVIRONMENT, ...environment },
  });
  started.push(child);
  for await (const line of createInterface(child.stdout)) {
    const [, found] = pattern.exec(line) ?? [];
    if (found === undefined) continue;
    child.stdout.resume();
    return found;
  }
  throw new Error(`${script} ended`);
}

beforeAll(async () => {
  project = realpathSync(mkdtempSync(join(tmpdir(), "signalbox-nextjs-")));
  cpSync(EXAMPLE, project, {
    recursive: true,
    filter: (path) => !/\/(node_modules|\.next|\.signalbox)(\/|$)/.test(path.slice(EXAMPLE.length)),
  });
  const archives = join(project, ".archives");
  mkdirSync(archives);
  await withBuiltPackages((folders) => npm("pack", "--silent", "--pack-destination", archives, ...folders));
  const files = globSync("*.tgz", { cwd: archives }).map((file) => join(archives, file));
  npm("install", "--prefer-offline", "--no-audit", "--no-fund", ...files);
  npm("run", "build");
  const serve = ["--json", "--port", "0"];
  signalboxUrl = await start("signalbox", serve, /"url":"([^"]+)"/, { SIGNALBOX_LOG_LEVEL: "warn" });
  const listen = ["--port", "0", "--hostname", "127.0.0.1"];
  pageUrl = await start("start", listen, /Local:\s+(\S+)/, { SIGNALBOX_URL: signalboxUrl });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
  for (const child of started) {
    const exit = once(child, "exit");
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue;
    process.kill(-child.pid, "SIGTERM");
    await exit;
  }
  rmSync(project, { recursive: true, force: true });
});

const votes = (page: Page, option: string) => page.getByLabel(`Votes for ${option}`);

it("stands outside of the installation of this repository", () => {
  const lock = readFileSync(join(ROOT, "package-lock.json"), "utf8");
  expect(lock).toContain('"examples/chat"');
  expect(lock).not.toContain('"examples/nextjs"');
  expect(lock).not.toContain('"node_modules/next"');
});

it("renders the votes on the server, keeps them live on every page, and chats through the gateway", async () => {
  const [one, other] = [await openPage(browser), await openPage(browser)];
  for (const { page } of [one, other]) {
    await page.goto(pageUrl);
    await page.getByText("live", { exact: true }).waitFor();
  }
  await one.page.getByRole("button", { name: "Ramen" }).click();
  await other.page.getByRole("button", { name: "Ramen" }).click();
  for (const { page } of [one, other]) await expect.poll(() => votes(page, "Ramen").textContent()).toBe("2");
  // Without a script, the votes are those of the moment, too.
  const html = await (await fetch(pageUrl)).text();
  expect(html).toMatch(/aria-label="Votes for Ramen"[^>]*>2</);

  await one.page.getByLabel("Message").fill("Which one is ahead?");
  await one.page.getByRole("button", { name: "Send" }).click();
  await one.page.locator('[data-role="assistant"]').getByText("Which one is ahead?").waitFor();
  expect(await seriousViolations(one.page)).toEqual([]);
  for (const { problems, close } of [one, other]) {
    expect(problems).toEqual([]);
    await close();
  }
});

it("the call is in the log with the metadata of the page, and only the poll of the page is open to strangers", async () => {
  const { stdout } = spawnSync("npx", ["signalbox", "logs", "list", "--json", "--search", "lunch"], {
    cwd: project,
    encoding: "utf8",
    env: ENVIRONMENT,
  });
  expect(JSON.parse(stdout)).toMatchObject([{ provider: "echo", model: "echo", success: true }]);
  const results = ["lunch", "dinner", "lunch2"].map(async (name) => {
    const answer = await fetch(`${signalboxUrl}/agents/poll/${name}/rpc/result`, {
      method: "POST",
      body: "[]",
    });
    return answer.status;
  });
  expect(await Promise.all(results)).toEqual([200, 401, 401]);
});
