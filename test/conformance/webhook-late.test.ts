/** Section 7.1 of the contract: providers retry if a response is slow, so every sender is answered in time. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

let server: TestServer;
let gate: Server;
let gateUrl: string;
let open = () => {};
let isOpen = Promise.resolve();

beforeAll(async () => {
  // Handlers wait for a receiver that the test controls.
  gate = createServer((_request, response) => void isOpen.then(() => response.end()));
  await new Promise<void>((resolve) => gate.listen(0, "127.0.0.1", resolve));
  gateUrl = `http://127.0.0.1:${(gate.address() as AddressInfo).port}/`;
  server = await startTestServer({
    environment: { OBEY_WEBHOOK_SECRET: SECRET, OUT_SECRET: SECRET },
    file: {
      agents: { modules: [join(import.meta.dirname, "../fixtures/webhook-agents.ts")] },
      outgoing: { allowPrivateHosts: true },
      webhooks: {
        answerWithinMs: 4000,
        sources: { obey: { scheme: "generic", agent: "obedient-agent" } },
      },
    },
  });
});

afterAll(async () => {
  await server.stop();
  gate.close();
});

const LATE = "/accounts/default/webhooks/late-deliveries";
const lateOnes = async () => (await server.api("GET", LATE)).body.result as Record<string, string>[];
const close = () => {
  isOpen = new Promise((resolve) => (open = resolve));
};

async function events(instance: string): Promise<string[]> {
  const response = await fetch(`${server.url}/agents/obedient-agent/${instance}/rpc/getEvents`, {
    method: "POST",
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  return ((await response.json()) as { result: { id: string }[] }).result.map(({ id }) => id);
}

it("six deliveries behind a slow handler are answered 202 while it runs, and each is handled once", async () => {
  close();
  const ids = ["1", "2", "3", "4", "5", "6"];
  const answers = await Promise.all(
    ids.map((id) => sendGeneric(server.url, "obey/slow-one", { id, type: "t", do: "send", url: gateUrl })),
  );
  expect(answers.map(({ status, body }) => [status, body])).toEqual(
    ids.map(() => [202, { status: "queued" }]),
  );
  const listed = await lateOnes();
  expect(new Set(listed.map((one) => one["delivery_id"]))).toEqual(new Set(ids));
  expect(listed[0]).toMatchObject({ status: "waiting", instance: "slow-one", attempts: 0, source: "obey" });
  const { body: deliveries } = await server.api(
    "GET",
    "/accounts/default/webhooks/deliveries?instance=slow-one",
  );
  expect(deliveries.result.map(({ status, reason }: Record<string, string>) => [status, reason])).toEqual(
    ids.map(() => ["accepted", "stored"]),
  );
  // A retry waits for the first copy as well and does not run concurrently.
  expect((await sendGeneric(server.url, "obey/slow-one", { id: "1", type: "t" })).status).toBe(202);
  open();
  await expect.poll(() => lateOnes(), { timeout: 10_000 }).toEqual([]);
  expect((await events("slow-one")).sort()).toEqual(ids);
  const again = await sendGeneric(server.url, "obey/slow-one", { id: "1", type: "t" });
  expect(again.body).toEqual({ status: "duplicate" });
  expect(await fetch(`${server.url}/metrics`).then((metrics) => metrics.text())).toContain(
    "signalbox_webhook_late_deliveries 0",
  );
});

it("a slow handler does not delay other entities, which are answered 200", async () => {
  close();
  const slow = sendGeneric(server.url, "obey/slow-two", { id: "1", type: "t", do: "send", url: gateUrl });
  expect((await sendGeneric(server.url, "obey/quick", { id: "1", type: "t" })).body).toEqual({
    status: "processed",
  });
  expect((await slow).status).toBe(202);
  open();
  await expect.poll(() => lateOnes(), { timeout: 10_000 }).toEqual([]);
});

it("the list of accepted deliveries belongs to the account, and only failed ones can be replayed or discarded", async () => {
  close();
  await sendGeneric(server.url, "obey/slow-three", { id: "1", type: "t", do: "send", url: gateUrl });
  const [waiting] = await lateOnes();
  const reader = await server.token(["webhooks.read"]);
  expect((await server.api("GET", LATE, undefined, reader)).status).toBe(200);
  expect((await server.api("POST", `${LATE}/${waiting?.["id"]}/replay`, {}, reader)).status).toBe(403);
  expect((await server.api("POST", `${LATE}/${waiting?.["id"]}/replay`)).status).toBe(409);
  expect((await server.api("DELETE", `${LATE}/${waiting?.["id"]}`)).status).toBe(409);
  expect((await server.api("DELETE", `${LATE}/unknown`)).status).toBe(404);
  await server.api("POST", "/accounts", { id: "other" });
  expect((await server.api("GET", LATE.replace("default", "other"))).body.result).toEqual([]);
  expect((await server.api("DELETE", `${LATE.replace("default", "other")}/${waiting?.["id"]}`)).status).toBe(
    404,
  );
  open();
  await expect.poll(() => lateOnes(), { timeout: 10_000 }).toEqual([]);
});
