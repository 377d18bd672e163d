/** `useAgent` in a real browser, in React's Strict Mode, against a server that counts sockets. */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../packages/client/test/eventually.ts";
import { type FrameServer, greet, startFrameServer } from "../../packages/client/test/frame-server.ts";
import { freePort } from "../support/free-port.ts";
import { type BuiltPage, buildPage } from "./support/built-page.ts";
import { launchBrowser, openPage, type WatchedPage } from "./support/launch-browser.ts";

let browser: Browser;
let built: BuiltPage;
let server: FrameServer;
let watched: WatchedPage;

beforeAll(async () => {
  [browser, built] = await Promise.all([
    launchBrowser(),
    buildPage(join(import.meta.dirname, "use-agent-page")),
  ]);
});

afterAll(async () => {
  await browser?.close();
  await built?.close();
});

beforeEach(async () => {
  server = await startFrameServer();
  watched = await openPage(browser);
});

afterEach(async () => {
  await watched.close();
  await server.stop();
});

async function visit(query: Record<string, string> = {}): Promise<Page> {
  const { page } = watched;
  await page.goto(`${built.url}?${new URLSearchParams({ server: server.url, ...query }).toString()}`);
  await textOf("#status", "open");
  return page;
}

const textOf = (selector: string, text: string) =>
  watched.page.locator(selector, { hasText: text }).waitFor();
const logOf = (page: Page) => page.evaluate<string[]>("globalThis.log");
const openSockets = () => server.sockets.filter((socket) => socket.isOpen);

describe("useAgent in Strict Mode", () => {
  it("opens one socket, shows the state and logs nothing to the console", async () => {
    const page = await visit();
    await textOf("#count", "0");
    expect(server.sockets).toHaveLength(1);
    // A page that is slow shows the connection before the state arrives, a fast one after it.
    const [first, ...rest] = await logOf(page);
    expect([first, ...rest.sort()]).toEqual(["connecting", "open", "round 0: server 0"]);
    expect(watched.problems).toEqual([]);
  });

  it("keeps its socket across renders and calls the latest callbacks", async () => {
    const page = await visit();
    for (let round = 1; round <= 3; round++) {
      await page.click("#again");
      await textOf("#round", String(round));
    }
    server.sockets[0]?.send({ type: "cf_agent_state", state: { count: 7 } });
    await textOf("#count", "7");
    expect((await logOf(page)).at(-1)).toBe("round 3: server 7");
    expect(server.sockets).toHaveLength(1);
  });

  it("calls methods, changes the state, and reverts a rejected change", async () => {
    server.onFrame = (socket, frame) =>
      frame.type === "rpc"
        ? socket.send({ type: "rpc", id: frame.id, success: true, done: true, result: 42 })
        : socket.send({ type: "cf_agent_state_error", error: "Connection is readonly" });
    const page = await visit();
    await page.click("#add");
    await textOf("#result", "42");
    await page.click("#set");
    await eventually(async () => expect(await logOf(page)).toContain("rejected: Connection is readonly"));
    await textOf("#count", "0");
    expect(await logOf(page)).toContain("round 0: client 100");
  });

  it("switches to another instance with one new socket and closes the old one", async () => {
    const page = await visit();
    server.onConnect = (socket) => greet(socket, { count: 22 });
    await page.click("#other");
    await textOf("#count", "22");
    await eventually(() => expect(openSockets()).toHaveLength(1));
    expect(server.sockets.map(({ request }) => request.url?.split("?")[0])).toEqual([
      "/agents/counter/one",
      "/agents/counter/two",
    ]);
  });

  it("disconnects while disabled and reconnects when enabled", async () => {
    const page = await visit();
    await page.click("#enabled");
    await textOf("#status", "closed");
    await eventually(() => expect(openSockets()).toHaveLength(0));
    await page.click("#enabled");
    await textOf("#status", "open");
    expect(server.sockets).toHaveLength(2);
  });

  it("leaks no socket when it is mounted and unmounted repeatedly", async () => {
    const page = await visit();
    for (let round = 0; round < 3; round++) {
      await page.click("#mounted");
      await eventually(() => expect(openSockets()).toHaveLength(0));
      await page.click("#mounted");
      await textOf("#status", "open");
    }
    expect(openSockets()).toHaveLength(1);
    expect(server.sockets).toHaveLength(4);
  });

  it("reconnects after a restart of the server and shows the new state", async () => {
    await server.stop();
    const port = await freePort();
    server = await startFrameServer(port);
    await visit();
    await server.stop();
    await textOf("#status", "waiting");
    server = await startFrameServer(port);
    server.onConnect = (socket) => greet(socket, { count: 9 });
    await textOf("#count", "9");
    await textOf("#status", "open");
    expect(server.sockets).toHaveLength(1);
  });

  it("reconnects immediately when the machine is online again", async () => {
    const page = await visit({ delay: "3600000" });
    server.sockets[0]?.cut();
    await textOf("#status", "waiting");
    await page.evaluate("dispatchEvent(new Event('online'))");
    await textOf("#status", "open");
    expect(server.sockets).toHaveLength(2);
  });

  it("does not reconnect after a permanent close code", async () => {
    await visit();
    server.sockets[0]?.close(4401, "Authentication error");
    await textOf("#status", "closed");
    expect(server.sockets).toHaveLength(1);
  });

  it("sends the token in the query, because a browser cannot set headers on a WebSocket", async () => {
    await visit({ token: "sesame" });
    expect(new URL(server.sockets[0]?.request.url ?? "", server.url).searchParams.get("token")).toBe(
      "sesame",
    );
  });
});
