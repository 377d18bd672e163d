/** Section 7.1 of the contract: providers retry if a response is slow, so every sender is answered in time. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type HeldReceiver, openHeldReceiver } from "../support/held-receiver.ts";
import { readMetric } from "../support/read-metric.ts";
import { eventIds } from "../support/send-request.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

let server: TestServer;
let receiver: HeldReceiver;

beforeAll(async () => {
  receiver = await openHeldReceiver();
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
  receiver.close();
});

const LATE = "/accounts/default/webhooks/late-deliveries";
const lateOnes = async () => (await server.api("GET", LATE)).body.result as Record<string, string>[];

it("six deliveries behind a slow handler are answered 202 while it runs, and each is handled once", async () => {
  receiver.hold();
  const ids = ["1", "2", "3", "4", "5", "6"];
  const answers = await Promise.all(
    ids.map((id) =>
      sendGeneric(server.url, "obey/slow-one", { id, type: "t", do: "send", url: receiver.url }),
    ),
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
  receiver.release();
  await expect.poll(() => lateOnes()).toEqual([]);
  expect((await eventIds(server, "slow-one", "obedient-agent")).sort()).toEqual(ids);
  const again = await sendGeneric(server.url, "obey/slow-one", { id: "1", type: "t" });
  expect(again.body).toEqual({ status: "duplicate" });
  // The number is lowered after the row is gone.
  await expect.poll(() => readMetric(server, "signalbox_webhook_late_deliveries")).toBe(0);
});

it("a slow handler does not delay other entities, which are answered 200", async () => {
  receiver.hold();
  const slow = sendGeneric(server.url, "obey/slow-two", {
    id: "1",
    type: "t",
    do: "send",
    url: receiver.url,
  });
  expect((await sendGeneric(server.url, "obey/quick", { id: "1", type: "t" })).body).toEqual({
    status: "processed",
  });
  expect((await slow).status).toBe(202);
  receiver.release();
  await expect.poll(() => lateOnes()).toEqual([]);
});

it("the list of accepted deliveries belongs to the account, and only failed ones can be replayed or discarded", async () => {
  receiver.hold();
  await sendGeneric(server.url, "obey/slow-three", { id: "1", type: "t", do: "send", url: receiver.url });
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
  receiver.release();
  await expect.poll(() => lateOnes()).toEqual([]);
});
