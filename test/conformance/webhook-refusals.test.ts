/** Responses of an agent to an event; a refused event leaves no trace; deliveries posted to an instance. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { hexSignature, post, SECRET, sendGeneric } from "../support/webhook-sender.ts";

let server: TestServer;
beforeAll(async () => {
  const agents = ["judge", "quick-judge", "interleaver", "careless"];
  const sources = Object.fromEntries(
    agents.map((agent) => [agent, { scheme: "generic" as const, agent, secretVariable: "WEBHOOK_SECRET" }]),
  );
  server = await startTestServer({
    environment: { WEBHOOK_SECRET: SECRET },
    file: {
      agents: { modules: [join(import.meta.dirname, "../fixtures/admission-agents.ts")] },
      webhooks: { sources },
    },
  });
});
afterAll(() => server.stop());

/** Through the intake, or to the instance. */
const ROUTES = {
  "the intake": (agent: string, name: string, payload: object) =>
    sendGeneric(server.url, `${agent}/${name}`, payload),
  "the instance's own route": (agent: string, name: string, payload: object) => {
    const body = JSON.stringify(payload);
    return post(`${server.url}/agents/${agent}/${name}`, body, {
      authorization: `Bearer ${ROOT_TOKEN}`,
      "x-signature": hexSignature(body),
    });
  },
};

const call = async (agent: string, name: string, method: string) =>
  (await server.api("POST", `/agents/${agent}/${name}/rpc/${method}`, [])).body.result as unknown[];

describe.each([
  ["a handler that waits", "judge", "the intake"],
  ["a handler that does not wait", "quick-judge", "the intake"],
  ["a handler that waits", "judge", "the instance's own route"],
  ["an interleaving handler", "interleaver", "the instance's own route"],
] as const)("%s (%s), through %s,", (_title, agent, route) => {
  const send = ROUTES[route];
  const name = `${agent}-${route.length}`;
  const seen = () => call(agent, name, "seen");

  it("RejectEvent is answered 400 with the message, nothing is written, and the event can be sent again", async () => {
    const refused = await send(agent, name, { id: "r1", reject: "amount is missing" });
    expect(refused.status).toBe(400);
    expect(refused.body.errors).toEqual([{ code: 4010, message: "amount is missing" }]);
    expect(await seen()).toEqual([]);
    expect((await send(agent, name, { id: "r1" })).body).toEqual({ status: "processed" });
    expect((await send(agent, name, { id: "r1" })).body).toEqual({ status: "duplicate" });
    expect(await seen()).toEqual(["r1"]);
  });

  it("an error response of the agent refuses the event and is sent to the sender", async () => {
    const refused = await send(agent, name, { id: "a1", answer: 422 });
    expect(refused.status).toBe(422);
    expect(refused.body).toEqual(agent === "quick-judge" ? "own 422" : { own: 422 });
    expect(await seen()).toEqual(["r1"]);
    expect((await send(agent, name, { id: "a1" })).body).toEqual({ status: "processed" });
  });

  it("a success response of the agent accepts the event once", async () => {
    const taken = await send(agent, name, { id: "a2", answer: 201 });
    expect(taken.status).toBe(201);
    expect((await send(agent, name, { id: "a2", answer: 201 })).body).toEqual({ status: "duplicate" });
    expect(await seen()).toEqual(["r1", "a1", "a2"]);
  });
});

it("a refused event is in the inspector as refused and not among the agent's events", async () => {
  await sendGeneric(server.url, "judge/inspected", { id: "i1", reject: "no" });
  await sendGeneric(server.url, "judge/inspected", { id: "i2", answer: 409 });
  await sendGeneric(server.url, "judge/inspected", { id: "i3" });
  const { body } = await server.api("GET", "/accounts/default/webhooks/deliveries?instance=inspected");
  expect(
    body.result.map((record: { status: string; reason: string; http_status: number }) => [
      record.status,
      record.reason,
      record.http_status,
    ]),
  ).toEqual([
    ["accepted", "processed", 200],
    ["failed", "refused_by_agent", 409],
    ["failed", "refused_by_agent", 400],
  ]);
  expect(await call("judge", "inspected", "getEvents")).toHaveLength(1);
});

it("concurrent copies of one delivery to an interleaving agent run once", async () => {
  const payload = { id: "c1", wait: true };
  // The ledger identifies a delivery by its source, so the copies use the scheme that both routes share.
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => ROUTES["the instance's own route"]("interleaver", "copies", payload)),
  );
  expect(answers.map(({ body }) => body.status as string).sort()).toEqual([
    ...Array<string>(5).fill("duplicate"),
    "processed",
  ]);
  expect(await call("interleaver", "copies", "seen")).toEqual(["c1"]);
});

it.each(Object.entries(ROUTES))(
  "a delivery whose body names another entity is refused by %s",
  async (_route, send) => {
    const refused = await send("careless", "own", { id: "e1", type: "t", entity_id: "another" });
    expect([refused.status, refused.body.errors[0].code]).toEqual([400, 4004]);
    const { body } = await server.api("GET", "/accounts/default/agents/careless/instances");
    expect(body.result.map(({ name }: { name: string }) => name)).not.toContain("own");
    expect((await send("careless", "its-own", { id: "e2", type: "t", entity_id: "Its/Own" })).status).toBe(
      200,
    );
  },
);

describe("the state of a webhook agent", () => {
  const connect = async (path: string) => {
    const client = await new RawClient(`${server.url}/agents/${path}`).opened();
    await client.greeted();
    return client;
  };
  const stateOf = async (agent: string, name: string) =>
    (await server.api("GET", `/accounts/default/agents/${agent}/instances/${name}`)).body.result
      .state as unknown;

  it.each([null, "text", 7, [1], {}, { lastEvent: null, eventCount: 99 }])(
    "a client cannot set the state to %j",
    async (state) => {
      await sendGeneric(server.url, "guarded", { id: "g1" });
      const client = await connect("webhook-agent/guarded");
      client.send({ type: "cf_agent_state", state });
      expect(await client.next()).toEqual({
        type: "cf_agent_state_error",
        error: "The state is written by events alone",
      });
      expect(await client.next()).toMatchObject({ type: "cf_agent_state", state: { eventCount: 1 } });
      client.close();
    },
  );

  it.each([null, "text", 7, [1], { eventCount: "many" }, { eventCount: -1, mine: "kept" }])(
    "a state of %j, set by a client, is repaired by the next event",
    async (state) => {
      const name = `broken-${JSON.stringify(state).replaceAll(/\W/g, "").toLowerCase()}`;
      await sendGeneric(server.url, `careless/${name}`, { id: "1" });
      await sendGeneric(server.url, `careless/${name}`, { id: "2" });
      const client = await connect(`careless/${name}`);
      client.send({ type: "cf_agent_state", state });
      await expect.poll(() => stateOf("careless", name)).toEqual(state);
      expect((await sendGeneric(server.url, `careless/${name}`, { id: "3" })).body).toEqual({
        status: "processed",
      });
      expect(await stateOf("careless", name)).toMatchObject({
        eventCount: 3,
        lastEvent: { id: "3" },
        ...(JSON.stringify(state).includes("mine") ? { mine: "kept" } : {}),
      });
      client.close();
    },
  );
});

it.each([[[]], [[null]], [[5, 10]], [[{}]]])("getEventsByType%j names the invalid argument", async (args) => {
  const { status, body } = await server.api(
    "POST",
    "/agents/webhook-agent/typeless/rpc/getEventsByType",
    args,
  );
  expect(status).toBe(400);
  expect(body.errors[0].message).toContain("type must be text");
});
