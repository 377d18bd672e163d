/** Usage that was measured elsewhere: rows, charts and limits have it as if it were a call. */
import { SignalboxClient } from "@signalbox/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readLogs, setGateway } from "../support/gateway.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let client: SignalboxClient;
beforeAll(async () => {
  server = await startTestServer({});
  client = new SignalboxClient({ url: server.url, token: ROOT_TOKEN });
  const rules = [
    { id: "all", limitType: "cost", limit: 1, window: "day" },
    {
      id: "team",
      limitType: "cost",
      limit: 1,
      window: "day",
      metadata: { team: { mode: "filter", values: ["a"] } },
    },
  ];
  await setGateway(server, { spend_limits: { rules } }, "books");
});
afterAll(() => server.stop());

const account = () => client.account("default");
const BOOKS = "/accounts/default/ai-gateway/gateways/books/usage";
const usedOf = async (of: { gatewayId?: string; tokenId?: string }) =>
  Object.fromEntries((await account().budgets.state(of)).map(({ rule, used }) => [rule, used]));

it("has a row with its price, and is charged to the limits that apply, beyond them if need be", async () => {
  const usage = { provider: "openai", model: "gpt-5", tokens_in: 100_000, tokens_out: 40_000 };
  const booked = await account().budgets.bookUsage("books", {
    ...usage,
    metadata: { team: "a" },
    event_id: "e1",
  });
  expect(booked.cost).toBeCloseTo(0.525, 9);
  const more = await account().budgets.bookUsage("books", { ...usage, cost: 0.9 });
  await expect.poll(async () => (await readLogs(server, "books")).length).toBe(2);
  const [second, first] = await readLogs(server, "books");
  expect(first).toMatchObject({
    id: booked.id,
    provider: "openai",
    model: "gpt-5",
    tokens_in: 100_000,
    tokens_out: 40_000,
    usage: "reported",
    event_id: "e1",
    success: true,
  });
  expect([second?.["id"], second?.["cost"]]).toEqual([more.id, 0.9]);
  const used = await usedOf({ gatewayId: "books" });
  expect(used["all"]).toBeCloseTo(1.425, 5);
  expect(used["team"]).toBeCloseTo(0.525, 5);
});

it("is billed by the piece and by tier, as a call is", async () => {
  const book = async (usage: object) =>
    (await account().budgets.bookUsage("books", { provider: "openai", model: "gpt-5", ...usage })).cost;
  expect(await book({ model: "tts-1", characters: 1000 })).toBeCloseTo(0.015, 9);
  expect(await book({ model: "whisper-1", seconds: 3600 })).toBeCloseTo(0.36, 9);
  expect(await book({ tokens_out: 1000, tier: "batch" })).toBeCloseTo(0.005, 9);
});

it("is refused without a known price, and for what is not there", async () => {
  const refused = async (body: object, path = BOOKS) => (await server.api("POST", path, body)).status;
  expect(await refused({ provider: "openai", model: "nobody-knows-it", tokens_in: 1 })).toBe(400);
  expect(await refused({ provider: "openai", model: "gpt-5", tokens_in: -1 })).toBe(400);
  expect(await refused({ provider: "openai", model: "gpt-5", metadata: { a: { b: 1 } } })).toBe(400);
  expect(await refused({ provider: "openai", model: "gpt-5", token_id: "nobody" })).toBe(400);
  expect(await refused({ provider: "openai", model: "gpt-5" }, BOOKS.replace("books", "nothing"))).toBe(404);
});

it("is charged to the token that books, and to another one only by who may change its budgets", async () => {
  const budgets = [{ limit: 1, window: "day" as const }];
  const create = (name: string) =>
    account().tokens.create({ name, permissions: ["gateway.run", "gateway.price"], budgets });
  const [own, other] = [await create("own"), await create("other")];
  const body = { provider: "openai", model: "gpt-5", cost: 0.25 };
  expect((await server.api("POST", BOOKS, body, own.token)).status).toBe(201);
  expect((await server.api("POST", BOOKS, { ...body, token_id: other.id }, own.token)).status).toBe(400);
  expect((await server.api("POST", BOOKS, { ...body, token_id: other.id })).status).toBe(201);
  const used = async (tokenId: string) => Object.values(await usedOf({ tokenId }));
  expect(await used(own.id)).toEqual([0.25]);
  expect(await used(other.id)).toEqual([0.25]);
  const reader = await server.token(["gateway.run", "gateway.edit"]);
  expect((await server.api("POST", BOOKS, body, reader)).status).toBe(403);
});
