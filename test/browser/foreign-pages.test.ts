/** A page that a provider or an agent serves cannot run scripts, even if the user is logged in to the dashboard. */
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { OWNING_PAGE } from "../fixtures/page-agents.ts";
import { type ProviderPeer, startProvider } from "../peers/provider.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";

let provider: ProviderPeer;
let server: TestServer;
let browser: Browser;
beforeAll(async () => {
  provider = await startProvider((request, response) => {
    const isPage = request.url.startsWith("/page");
    response.writeHead(200, {
      "content-type": isPage ? "text/html" : "image/svg+xml",
      "set-cookie": "signalbox_session_1=evil; Path=/",
      "content-security-policy": "script-src * 'unsafe-inline'",
    });
    response.end(
      isPage
        ? OWNING_PAGE
        : "<svg xmlns='http://www.w3.org/2000/svg'><script>document.documentElement.setAttribute('id','ran')</script></svg>",
    );
  });
  server = await startTestServer({
    file: {
      providers: { pages: { baseUrl: provider.url } },
      agents: { modules: [join(import.meta.dirname, "../fixtures/page-agents.ts")] },
    },
  });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await server.stop();
  await provider.close();
});

async function tokenNames(): Promise<string[]> {
  const { body } = await server.api("GET", "/accounts/default/tokens");
  return (body as { result: { name: string }[] }).result.map(({ name }) => name);
}

it.each([
  ["a provider", "/v1/default/default/pages/page"],
  ["an agent", "/agents/page-agent/a"],
])("a page of %s runs no script in the origin of a logged-in dashboard", async (_, path) => {
  const { page, problems, close } = await openPage(browser);
  await page.goto(await server.service.createLoginLink());
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  const cookies = await page.context().cookies();
  const response = await page.goto(server.url + path);
  expect(response?.status()).toBe(200);
  await page.getByText("hello").waitFor();
  await expect.poll(() => problems.join("\n")).toContain("Blocked script execution");
  expect(await page.title()).toBe("quiet");
  expect(await tokenNames()).not.toContain("stolen");
  expect(await page.context().cookies()).toEqual(cookies);
  await close();
});

it("an SVG image from a provider runs no script", async () => {
  const { page, problems, close } = await openPage(browser);
  await page.goto(`${server.url}/v1/default/default/pages/picture`);
  await expect.poll(() => problems.join("\n")).toContain("Blocked script execution");
  expect(await page.locator("#ran").count()).toBe(0);
  await close();
});
