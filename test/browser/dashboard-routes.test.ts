/** Dynamic routes, prices and custom providers in the dashboard. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { post } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { openDashboard } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";

let provider: ProviderPeer;
let server: TestServer;
let browser: Browser;

beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 200, { choices: [] }));
  server = await startTestServer({ file: { gateway: { allowPrivateCustomProviders: true } } });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await server.stop();
  await provider.close();
});

let tries = 0;
/** Another name for each try, so that a second one does not find what the first has made. */
const fresh = (name: string) => `${name}${++tries}`;

const ROUTES = "/accounts/default/ai-gateway/gateways/default/routes";
const editor = (page: Page) => page.getByRole("region", { name: "Editor" });
const element = (page: Page, id: string) => editor(page).getByRole("button", { name: new RegExp(`^${id} `) });

/** Calls the route as a client does; resolves to the step that answered. */
const modelOf = async (metadata: object) => {
  const body = {
    provider: "compat",
    endpoint: "chat/completions",
    query: { model: "dynamic/support", messages: [{ role: "user", content: "Hello" }] },
  };
  const answer = await post(server, "", {
    body: JSON.stringify(body),
    headers: { "gw-aig-metadata": JSON.stringify(metadata) },
  });
  return [answer.status, answer.headers["gw-aig-model"]];
};

it("creates a route, edits its graph with forms, tries it, and deploys it", async () => {
  // That of a first try.
  const { body } = await server.api("GET", ROUTES);
  for (const { id } of body.result as { id: string }[]) await server.api("DELETE", `${ROUTES}/${id}`);
  const { page, open, close } = await openDashboard(browser, server);
  await open("/gateways/default/routes");
  await page.getByText("No target has failed recently.").waitFor();
  await page.getByRole("button", { name: "Create route" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("support");
  await dialog.getByLabel("Provider").fill("echo");
  await dialog.getByLabel("Model").fill("small");
  await dialog.getByRole("button", { name: "Create route" }).click();
  await page.getByRole("heading", { level: 1, name: "support" }).waitFor();
  expect(await modelOf({ plan: "pro" })).toEqual([200, "small"]);

  // A condition in front of the model, with a second model for one plan.
  await editor(page).getByLabel("New element").selectOption("conditional");
  await editor(page).getByRole("button", { name: "Add element" }).click();
  await editor(page).getByLabel("Output true").waitFor();
  await editor(page).getByLabel("New element").selectOption("model");
  await editor(page).getByRole("button", { name: "Add element" }).click();
  await editor(page).getByLabel("Id", { exact: true }).fill("large");
  await editor(page).getByLabel("Id", { exact: true }).press("Enter");
  await editor(page).getByLabel("Model", { exact: true }).fill("large");
  await editor(page).getByLabel("Output fallback").selectOption("model");
  await element(page, "conditional").click();
  await editor(page).getByLabel("Value").fill("pro");
  await editor(page).getByLabel("Output true").selectOption("large");
  await editor(page).getByLabel("Output false").selectOption("model");
  await element(page, "start").press("Enter");
  await editor(page).getByLabel("Output next").selectOption("conditional");

  // The trial takes the graph of the editor, which is not saved yet.
  await page.getByLabel("Metadata (JSON)").fill('{"plan":"pro"}');
  await page.getByRole("button", { name: "Try" }).click();
  const way = page.getByTestId("way");
  await way.getByText("Calls echo/large").waitFor();
  const taken = () => editor(page).locator(".route-node-taken").count();
  expect(await taken()).toBe(3);
  await page.getByRole("checkbox", { name: "large" }).check();
  await page.getByRole("button", { name: "Try" }).click();
  await way.getByText("Calls echo/small").waitFor();
  expect(await taken()).toBe(4);
  await page.getByLabel("Metadata (JSON)").fill("{");
  await page.getByText("Metadata is not valid JSON.").waitFor();
  expect(await modelOf({ plan: "pro" })).toEqual([200, "small"]);

  await page.getByRole("button", { name: "Save and deploy" }).click();
  await expect.poll(() => modelOf({ plan: "pro" })).toEqual([200, "large"]);
  expect(await modelOf({ plan: "free" })).toEqual([200, "small"]);

  // Back to the first version.
  const versions = page.getByRole("region", { name: "Versions", exact: true });
  await expect.poll(() => versions.locator("tbody tr").count()).toBe(2);
  await versions.locator("tbody tr").nth(1).getByRole("button", { name: "Deploy" }).click();
  await versions.locator("tbody tr").nth(1).getByText("deployed").waitFor();
  expect(await modelOf({ plan: "pro" })).toEqual([200, "small"]);
  await close();
});

it("refuses a graph that cannot work, names the element, and keeps what was typed", async () => {
  const { body } = await server.api("GET", ROUTES);
  const [route] = body.result as { id: string }[];
  const { page, open, close } = await openDashboard(browser, server, { expectedProblems: /status of 400/ });
  await open(`/gateways/default/routes/${route?.id ?? ""}`);
  await element(page, "model").click();
  await editor(page).getByLabel("Provider", { exact: true }).fill("no-such-provider");
  await page.getByRole("button", { name: "Save version" }).click();
  await page
    .getByRole("alert")
    .filter({ hasText: /model.*no-such-provider/ })
    .waitFor();
  expect(await editor(page).getByLabel("Provider", { exact: true }).inputValue()).toBe("no-such-provider");

  await page.getByRole("tab", { name: "JSON" }).click();
  await page.getByLabel("Elements").fill("[{");
  await page.getByRole("alert").filter({ hasText: "not valid JSON" }).waitFor();
  expect(await page.getByRole("button", { name: "Save version" }).isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Discard changes" }).click();
  await element(page, "model").click();
  expect(await editor(page).getByLabel("Provider", { exact: true }).inputValue()).toBe("echo");
  const { body: after } = await server.api("GET", `${ROUTES}/${route?.id ?? ""}/versions`);
  expect(after.result).toHaveLength(2);
  await close();
});

it("adds a custom provider, sets a price for it, and calls it", async () => {
  const slug = fresh("inhouse");
  const { page, open, close } = await openDashboard(browser, server);
  await open("/providers");
  await page.getByRole("button", { name: "Add provider" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Slug").fill(slug);
  await dialog.getByLabel("Name").fill("In-house models");
  await dialog.getByLabel("Address").fill(provider.url);
  await dialog.getByLabel("Headers (optional)").fill('{"x-team":"a-secret-value"}');
  await dialog.getByRole("button", { name: "Add provider" }).click();
  await page.getByText(`custom-${slug}`).waitFor();
  expect((await post(server, `custom-${slug}/v1/chat/completions`)).status).toBe(200);
  expect(provider.requests.at(-1)?.headers["x-team"]).toBe("a-secret-value");
  expect(await page.content()).not.toContain("a-secret-value");

  await open("/prices");
  await page.getByRole("button", { name: "Set price" }).click();
  await dialog.getByLabel("Provider").fill(`custom-${slug}`);
  await dialog.getByLabel("Model").fill("*");
  await dialog.getByLabel("Input", { exact: true }).fill("1.5");
  await dialog.getByLabel("Output", { exact: true }).fill("6");
  await dialog.getByLabel("Factor of flex").fill("0.5");
  await dialog.getByRole("button", { name: "Save price" }).click();
  const row = page.getByRole("row", { name: `custom-${slug}` });
  await row.getByText("in 1.5, out 6, flex × 0.5").waitFor();
  await row.getByRole("button", { name: "Edit" }).click();
  expect(await dialog.getByLabel("Factor of flex").inputValue()).toBe("0.5");
  await dialog.getByLabel("Factor of flex").fill("");
  await dialog.getByLabel("Factor of priority").fill("2");
  await dialog.getByRole("button", { name: "Save price" }).click();
  await row.getByText("in 1.5, out 6, priority × 2").waitFor();
  await page.getByLabel("Provider").fill(`custom-${slug}`);
  await page.getByLabel("Model").fill("any");
  await page.getByRole("button", { name: "Find price" }).click();
  await page.getByText("price of the account").waitFor();
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("No prices of your own").waitFor();

  await page.getByText("List prices are those of this release.").waitFor();
  await page.getByText(/^[\d,]+ known prices$/).click();
  await page.getByLabel("Filter prices").fill("openai gpt-4o-mini-tts");
  const known = page.getByRole("region", { name: "Known prices" });
  await known.getByRole("row", { name: /openai gpt-4o-mini-tts .*list of the release/ }).waitFor();
  await post(server, `custom-${slug}/v1/chat/completions`, {
    body: JSON.stringify({ model: "home-made", messages: [] }),
  });
  await expect
    .poll(async () => {
      await page.reload();
      await page.getByText(/^[\d,]+ known prices$/).waitFor();
      return page.getByRole("region", { name: "Models without a price" }).getByText("home-made").count();
    })
    .toBe(1);
  await close();
});

it("shows a circuit that has opened, and closes it", async () => {
  const slug = fresh("failing");
  const { body } = await server.api("POST", "/accounts/default/ai-gateway/custom-providers", {
    slug,
    name: "Failing",
    base_url: provider.url,
  });
  expect(body.success).toBe(true);
  // Now, because a circuit is open for 30 s only.
  const { page, open, close } = await openDashboard(browser, server);
  provider.answer = (_, response) => sendJson(response, 500, {});
  for (let i = 0; i < 5; i++) await post(server, `custom-${slug}/v1/chat/completions`);
  await open("/gateways/default/routes");
  const row = page.getByRole("row", { name: `custom-${slug}/gpt-4o-mini` });
  await row.getByText("open", { exact: true }).waitFor();
  await row.getByText("5 of 5, 5 in a row").waitFor();
  await page.getByRole("button", { name: "Close all" }).click();
  await page.getByText("No target has failed recently.").waitFor();
  await close();
});
