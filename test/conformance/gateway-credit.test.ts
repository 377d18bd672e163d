/** Credit and other changes of limits and prices that arrive at the same time: none undoes another one. */
import { SignalboxApiError, SignalboxClient } from "@signalbox/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let client: SignalboxClient;
beforeAll(async () => {
  server = await startTestServer({});
  client = new SignalboxClient({ url: server.url, token: ROOT_TOKEN });
});
afterAll(() => server.stop());

const GATEWAY = "/accounts/default/ai-gateway/gateways/default";
const PREPAID = { id: "pre", limitType: "cost", limit: 1, window: null } as const;
const account = () => client.account("default");
const TOP_UPS = Array.from({ length: 40 }, () => 0.25);

async function newToken(): Promise<string> {
  const { id } = await account().tokens.create({
    name: "prepaid",
    permissions: ["gateway.run"],
    budgets: [
      { limit: 1, window: null },
      { limit: 5, window: "day" },
    ],
  });
  return id;
}

describe("top-ups at the same time all count", () => {
  it("of the account", async () => {
    await account().budgets.setLimits([PREPAID]);
    await Promise.all(TOP_UPS.map((amount) => account().budgets.addCredit(amount)));
    expect(await account().budgets.limits()).toMatchObject([{ id: "pre", limit: 11 }]);
  });

  it("of a gateway", async () => {
    await account().gateways.update("default", { spend_limits: { rules: [PREPAID] } });
    await Promise.all(TOP_UPS.map((amount) => account().budgets.addCredit(amount, { gatewayId: "default" })));
    expect((await account().gateways.get("default")).spend_limits?.rules).toMatchObject([{ limit: 11 }]);
  });

  it("of a token, beside changes of its other budget", async () => {
    const tokenId = await newToken();
    const changes = Array.from({ length: 5 }, (_, i) =>
      account().tokens.change(tokenId, ({ budgets }) => ({
        budgets: budgets.map((one) => (one.window === "day" ? { ...one, limit: 6 + i } : one)),
      })),
    );
    await Promise.all([
      ...TOP_UPS.slice(0, 20).map((amount) => account().budgets.addCredit(amount, { tokenId })),
      ...changes,
    ]);
    const { budgets } = await account().tokens.get(tokenId);
    expect(budgets.find(({ window }) => window === null)?.limit).toBe(6);
    expect(budgets.find(({ window }) => window === "day")?.limit).toBeGreaterThan(5);
  });
});

describe("If-Match", () => {
  it.each([
    ["the limits of the account", "PUT", "/accounts/default/ai-gateway/limits", { rules: [PREPAID] }],
    [
      "the prices of the account",
      "PUT",
      "/accounts/default/ai-gateway/prices",
      { prices: { openai: { "*": { in: 1, out: 1 } } } },
    ],
    ["a gateway", "PUT", GATEWAY, { cache_ttl: 7 }],
  ])("of %s refuses a change of what is no longer there", async (_, method, path, body) => {
    await requireMatching(method, path, body);
  });

  it("of a token refuses a change of what is no longer there", async () => {
    const tokenId = await newToken();
    await requireMatching("PATCH", `/accounts/default/tokens/${tokenId}`, { budgets: [] });
  });

  async function requireMatching(method: string, path: string, body: object): Promise<void> {
    const send = (tag: string | null) =>
      fetch(server.url + path, {
        method,
        body: JSON.stringify(body),
        headers: {
          authorization: `Bearer ${ROOT_TOKEN}`,
          "content-type": "application/json",
          ...(tag === null ? {} : { "if-match": tag }),
        },
      });
    const read = await fetch(server.url + path, { headers: { authorization: `Bearer ${ROOT_TOKEN}` } });
    const before = read.headers.get("etag") ?? "";
    const refused = await send('"another"');
    expect([refused.status, await refused.json()]).toMatchObject([412, { errors: [{ code: 7016 }] }]);
    const accepted = await send(before);
    expect(accepted.status).toBe(200);
    expect((await send(before)).status).toBe(412);
    expect((await send(accepted.headers.get("etag"))).status).toBe(200);
    expect((await send(null)).status).toBe(200);
  }

  it("lets several clients change different prices at the same time", async () => {
    await account().budgets.setPrices({});
    await Promise.all(
      ["a", "b", "c", "d"].map((model) =>
        account().budgets.changePrices((prices) => ({
          ...prices,
          openai: { ...prices["openai"], [model]: { in: 1, out: 1 } },
        })),
      ),
    );
    expect(Object.keys((await account().budgets.prices())["openai"] ?? {}).toSorted()).toEqual([
      "a",
      "b",
      "c",
      "d",
    ]);
  });
});

it("refuses credit that cannot be counted, and changes nothing", async () => {
  const tokenId = await newToken();
  for (const amount of [0, -1, 1e-9, 1e10, 9_999_999.5]) {
    const error = await account()
      .budgets.addCredit(amount, { tokenId })
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(SignalboxApiError);
    expect((error as SignalboxApiError).status).toBe(400);
  }
  for (const text of ["1e400", "NaN", '"5"', "null"]) {
    const answer = await fetch(`${server.url}/accounts/default/tokens/${tokenId}/credit`, {
      method: "POST",
      body: `{"amount":${text}}`,
      headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
    });
    expect(answer.status).toBe(400);
  }
  expect((await account().tokens.get(tokenId)).budgets[0]?.limit).toBe(1);
  await account().budgets.setLimits([{ ...PREPAID, limit: 9_000_000_000 }]);
  await expect(account().budgets.addCredit(10_000_000)).rejects.toThrow(/more than/);
});
