/** The list of prices with their sources, models in use without a price, and a list that is read from an address. */
import { createHash } from "node:crypto";
import { SignalboxClient } from "@signalbox/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { post, setGateway } from "../support/gateway.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const model = (id: string, price: number) => ({
  id,
  match: { equals: id },
  prices: {
    input_mtok: price,
    output_mtok: price,
    cache_read_mtok: price / 2,
    web_searches_kcount: 10,
    storage_searches_kcount: 2.5,
  },
});
/** One new model, one that moves a little, and one that moves far. */
const LIST = JSON.stringify([
  {
    id: "openai",
    name: "OpenAI",
    api_pattern: "openai",
    models: [model("model-of-tomorrow", 2), model("gpt-4o-mini", 0.3), model("gpt-4o", 0)],
  },
]);

let peer: ProviderPeer;
let server: TestServer;
let client: SignalboxClient;
beforeAll(async () => {
  peer = await startProvider(({ url }, response) => {
    if (url === "/prices.json") response.end(LIST);
    else
      sendJson(response, 200, { choices: [{}], usage: { prompt_tokens: 1_000_000, completion_tokens: 0 } });
  });
  server = await startTestServer({
    file: {
      providers: { openai: { baseUrl: peer.url } },
      gateway: {
        priceList: { url: `${peer.url}/prices.json` },
        prices: { openai: { configured: { in: 1, out: 1 } } },
      },
    },
  });
  client = new SignalboxClient({ url: server.url, token: ROOT_TOKEN });
});
afterAll(async () => {
  await server.stop();
  await peer.close();
});

const budgets = () => client.account("default").budgets;
const call = (name: string, gateway = "default") =>
  post(server, "openai/chat/completions", {
    gateway,
    body: JSON.stringify({ model: name, messages: [], max_tokens: 1 }),
    headers: { authorization: "Bearer key" },
  });

it("takes prices of a list that is read from an address, and holds those that move far", async () => {
  await expect.poll(async () => (await budgets().priceList()).list.source).toBe("address");
  const { list, prices } = await budgets().priceList("openai");
  expect(list.sha256).toBe(createHash("sha256").update(LIST).digest("hex"));
  expect(list.held).toMatchObject([{ provider: "openai", model: "gpt-4o" }]);
  const found = (name: string) => prices.find((row) => row.model === name);
  expect(found("model-of-tomorrow")).toMatchObject({ source: "list", price: { input_mtok: 2 } });
  expect(found("gpt-4o-mini")).toMatchObject({ price: { input_mtok: 0.3 } });
  expect(found("gpt-4o")?.price["input_mtok"]).toBeGreaterThan(0);
  await setGateway(
    server,
    { spend_limits: { rules: [{ id: "r", limitType: "cost", limit: 10, window: "day" }] } },
    "limited",
  );
  expect((await call("model-of-tomorrow", "limited")).status).toBe(200);
  const refused = await call("nobody-knows-it", "limited");
  expect([refused.status, refused.headers["x-should-retry"]]).toEqual([429, "false"]);
});

it("lists prices of the account and the configuration with their source", async () => {
  await budgets().setPrices({ groq: { own: { in: 3, out: 3 } } });
  const { prices } = await budgets().priceList();
  expect(prices.filter(({ source }) => source !== "list")).toEqual([
    { provider: "groq", model: "own", source: "account", price: { in: 3, out: 3 } },
    { provider: "openai", model: "configured", source: "configuration", price: { in: 1, out: 1 } },
  ]);
  expect(prices.every(({ price }) => Object.keys(price).length > 0)).toBe(true);
});

it("lists models that are called and have no price, until they have one", async () => {
  await call("model-without-price");
  const missing = async () => (await budgets().priceList()).missing.map((row) => [row.model, row.calls]);
  await expect.poll(missing).toContainEqual(["model-without-price", 1]);
  await budgets().setPrices({ openai: { "model-without-price": { in: 1, out: 1 } } });
  expect(await missing()).not.toContainEqual(["model-without-price", 1]);
  expect((await missing()).map(([name]) => name)).not.toContain("model-of-tomorrow");
});
