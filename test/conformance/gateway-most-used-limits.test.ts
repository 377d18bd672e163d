/** The limits of which most is used: of an account, its gateways and its tokens in one answer, and who may see which. */
import { SignalboxClient } from "@signalbox/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let tokenId: string;
const as = (token: string) => new SignalboxClient({ url: server.url, token }).account("shop");
const root = () => as(ROOT_TOKEN);

beforeAll(async () => {
  server = await startTestServer({ file: {} });
  await server.api("POST", "/accounts", { id: "shop", name: "shop" });
  await server.api("POST", "/accounts", { id: "other", name: "other" });
  const cost = (limit: number, more: object = {}) => ({
    limitType: "cost" as const,
    limit,
    window: null,
    ...more,
  });
  await root().budgets.setLimits([
    { id: "all", ...cost(100) },
    { id: "at-once", limitType: "parallel", limit: 1 },
  ]);
  for (const id of ["calm", "busy", "off"])
    await root().gateways.create({
      id,
      spend_limits: {
        enabled: id !== "off",
        rules: [
          { id: "total", ...cost(id === "busy" ? 5 : 50) },
          { id: "by-user", ...cost(20, { metadata: { user: { mode: "partition" } } }) },
        ],
      },
    });
  const token = await root().tokens.create({
    name: "ci",
    permissions: ["gateway.run", "gateway.price"],
    budgets: [{ limit: 8, window: null }],
  });
  tokenId = token.id;
  const book = (gateway: string, dollars: number, user: string, more: object = {}) =>
    root().budgets.bookUsage(gateway, {
      provider: "openai",
      model: "gpt-5",
      cost: dollars,
      metadata: { user },
      ...more,
    });
  await book("calm", 3, "ada");
  await book("busy", 4, "eve");
  await book("off", 1, "eve");
  await book("calm", 2, "bob", { token_id: tokenId });
});
afterAll(async () => {
  await server.stop();
});

type Wanted = Parameters<ReturnType<typeof root>["budgets"]["mostUsed"]>[0];

async function names(token = ROOT_TOKEN, wanted: Wanted = {}): Promise<string[]> {
  return (await as(token).budgets.mostUsed(wanted)).map(
    ({ rule, gateway_id: gateway, token_name: name, partition, used, limit }) =>
      `${gateway ?? name ?? "account"} ${rule}${partition === null ? "" : ` ${partition}`}: ${used} of ${limit}`,
  );
}

const OF_ACCOUNT = ["account all: 10 of 100"];
const OF_GATEWAYS = [
  "busy total: 4 of 5",
  'busy by-user [["user","eve"]]: 4 of 20',
  'calm by-user [["user","ada"]]: 3 of 20',
  'calm by-user [["user","bob"]]: 2 of 20',
  "calm total: 5 of 50",
];
const OF_TOKENS = ["ci budget-total: 2 of 8"];

it("limits of all owners come in the order of the share that is used", async () => {
  const all = await names();
  expect(all.slice(0, 2)).toEqual(["busy total: 4 of 5", "ci budget-total: 2 of 8"]);
  expect(all.toSorted()).toEqual([...OF_ACCOUNT, ...OF_GATEWAYS, ...OF_TOKENS].toSorted());
  expect(await names(ROOT_TOKEN, { limit: 2 })).toEqual(all.slice(0, 2));
  expect(await root().budgets.mostUsed({ limit: 1 })).toMatchObject([
    { gateway_id: "busy", token_id: null, token_name: null, type: "cost", remaining: 1 },
  ]);
});

it("can be those of one kind of owner", async () => {
  expect(await names(ROOT_TOKEN, { of: "account" })).toEqual(OF_ACCOUNT);
  expect((await names(ROOT_TOKEN, { of: "gateway" })).toSorted()).toEqual(OF_GATEWAYS.toSorted());
  expect(await names(ROOT_TOKEN, { of: "token" })).toEqual(OF_TOKENS);
  expect(await root().budgets.mostUsed({ of: "token" })).toMatchObject([
    { gateway_id: null, token_id: tokenId },
  ]);
});

it("a caller sees limits of tokens with tokens.edit, and one of a gateway those of its gateway", async () => {
  const token = (permissions: string[], more: object = {}) =>
    server.token(permissions, { account: "shop", ...more });
  expect(await names(await token(["gateway.read"]), { of: "token" })).toEqual([]);
  expect((await names(await token(["gateway.read"]))).toSorted()).toEqual(
    [...OF_ACCOUNT, ...OF_GATEWAYS].toSorted(),
  );
  expect(await names(await token(["gateway.read", "tokens.edit"]), { of: "token" })).toEqual(OF_TOKENS);
  const bound = await token(["gateway.read", "tokens.edit"], { gateway_id: "busy" });
  expect(await names(bound)).toEqual(OF_GATEWAYS.filter((name) => name.startsWith("busy")));
  expect(await names(bound, { of: "account" })).toEqual([]);
  expect(await names(bound, { of: "token" })).toEqual([]);
  const other = await server.token(["gateway.read"], { account: "other" });
  await expect(names(other)).rejects.toMatchObject({ status: 403 });
});

it("misspelt and unbounded questions are refused", async () => {
  const path = "/accounts/shop/ai-gateway/budgets/most-used";
  for (const query of ["limit=0", "limit=101", "limit=all", "of=user", "of=token&of=account", "off=token"])
    expect((await server.api("GET", `${path}?${query}`)).status, query).toBe(400);
  expect((await server.api("GET", `${path}?limit=100`)).status).toBe(200);
});
