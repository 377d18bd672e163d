/** `useAgentChat` of the public package, unmodified, in a real browser: streams that are cut, tools with approval, and kill -9. */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ChatModel, startChatModel } from "../peers/chat-model.ts";
import { startWorker, type WorkerServer } from "../worker/support/worker-server.ts";
import { type BuiltPage, buildPage } from "./support/built-page.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";

let server: WorkerServer;
let model: ChatModel;
let built: BuiltPage;
let browser: Browser;
beforeAll(async () => {
  model = await startChatModel();
  server = await startWorker("chat/src/server.ts", {
    env: { OPENAI_API_KEY: "sk-test" },
    file: {
      agents: { access: "worker", idleTimeoutMs: 100, ai: { models: { "@cf/test/*": "openai/chat-1" } } },
      providers: { openai: { baseUrl: model.url } },
    },
  });
  built = await buildPage(join(import.meta.dirname, "original-chat-page"));
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await built.close();
  await server.remove();
  await model.close();
});

let tries = 0;
/** Another name for each try, so that a second one does not find the messages of the first. */
const fresh = (name: string) => `${name}-${++tries}`;

const ALL = "one two three four five six seven eight nine ten";

async function open(name: string): Promise<{ page: Page; close: () => Promise<void> }> {
  const { page, close } = await openPage(browser);
  const query = new URLSearchParams({ name, host: new URL(server.url).host });
  await page.goto(`${built.url}?${query.toString()}`);
  await page.waitForSelector("#send");
  return { page, close };
}

async function say(page: Page, text: string): Promise<void> {
  await page.fill("#text", text);
  await page.click("#send");
}

async function sees(page: Page, text: string): Promise<void> {
  await page.waitForSelector(`p.assistant:has-text(${JSON.stringify(text)})`);
}

/** The answer has ended: what is sent before may meet the rest of it. */
const ready = (page: Page) => page.waitForSelector("#status:text-is('ready')");

const answers = (page: Page) => page.locator("p.assistant").allInnerTexts();

it("streams an answer, and a page that was reloaded in the middle receives the rest", async () => {
  const name = fresh("resumed");
  const { page, close } = await open(name);
  const release = model.pause();
  await say(page, "count");
  await sees(page, "three");
  await page.reload();
  await sees(page, "three");
  release();
  await sees(page, ALL);
  expect((await answers(page)).map((text) => text.trim())).toEqual([ALL]);
  const second = await open(name);
  await sees(second.page, ALL);
  await Promise.all([close(), second.close()]);
});

it("stops the answer when the user says so, and the next message is answered", async () => {
  const { page, close } = await open(fresh("stopped"));
  const release = model.pause();
  await say(page, "count");
  await sees(page, "three");
  await page.click("#stop");
  await ready(page);
  release();
  await say(page, "count again");
  await sees(page, "ten");
  expect((await answers(page))[0]).not.toContain("four");
  await close();
});

it("runs a tool, asks before one that needs approval, and lets the browser run its own", async () => {
  const { page, close } = await open(fresh("tools"));
  await say(page, 'call weather {"city":"Ulm"}');
  await sees(page, "The tool said: rain in Ulm");
  await ready(page);
  await say(page, 'call pay {"amount":500}');
  await page.waitForSelector("#approve");
  await ready(page);
  await page.click("#approve");
  await sees(page, "The tool said: paid 500");
  await say(page, 'call pay {"amount":900}');
  await page.waitForSelector("#reject");
  await ready(page);
  await page.click("#reject");
  await page.waitForSelector("i:has-text('output-denied')");
  await say(page, "call place {}");
  await sees(page, "at the desk");
  expect((await answers(page)).join(" ")).not.toContain("paid 900");
  await close();
});

it("goes on with an answer after kill -9 in the middle", async () => {
  const name = fresh("killed");
  const { page, close } = await open(name);
  const release = model.pause();
  await say(page, "count");
  await sees(page, "three");
  server = await server.killAndRestart();
  release();
  await page.waitForSelector("p.assistant:has-text('ten'), p.assistant:has-text('so on')");
  await ready(page);
  await expect
    .poll(async () => {
      const stored = await fetch(`${server.url}/agents/chat/${name}/get-messages`);
      return ((await stored.json()) as { role: string }[]).map(({ role }) => role);
    })
    .toEqual(["user", "assistant"]);
  await close();
});

it("keeps an approval that waits across kill -9", async () => {
  const { page, close } = await open(fresh("waiting"));
  await say(page, 'call pay {"amount":700}');
  await page.waitForSelector("#approve");
  await ready(page);
  server = await server.killAndRestart();
  await page.reload();
  await page.click("#approve");
  await sees(page, "The tool said: paid 700");
  await close();
});
