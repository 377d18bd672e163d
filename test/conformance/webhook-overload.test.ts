/** Section 4.2 of the contract: deliveries during overload. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openHeldReceiver } from "../support/held-receiver.ts";
import { readMetric } from "../support/read-metric.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { post, SECRET, sendGeneric } from "../support/webhook-sender.ts";

const start = (limits: object) =>
  startTestServer({
    environment: { WEBHOOK_SECRET: SECRET, OBEY_WEBHOOK_SECRET: SECRET, OUT_SECRET: SECRET },
    file: {
      agents: { modules: [join(import.meta.dirname, "../fixtures/webhook-agents.ts")] },
      outgoing: { allowPrivateHosts: true },
      webhooks: {
        ...limits,
        sources: {
          obey: { scheme: "generic", agent: "obedient-agent" },
          elsewhere: {
            scheme: "generic",
            agent: "webhook-agent",
            account: "elsewhere",
            secretVariable: "OBEY_WEBHOOK_SECRET",
          },
        },
      },
    },
  });

let server: TestServer;

beforeAll(async () => {
  // One account gets two thirds.
  server = await start({ maxInFlight: 90 });
});

afterAll(() => server.stop());

describe("overload", () => {
  it("deliveries over the limit are answered 503 with Retry-After until others finish", async () => {
    // The agents wait for a receiver that the test controls.
    const receiver = await openHeldReceiver();
    const stuck = Array.from({ length: 60 }, (_, i) =>
      sendGeneric(server.url, `obey/stuck-${i}`, { id: "s", do: "send", url: receiver.url }),
    );
    await expect.poll(() => readMetric(server, "signalbox_webhook_in_flight")).toBe(60);
    const refused = await sendGeneric(server.url, "overload", { id: "o-1" });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "2"]);
    expect((await sendGeneric(server.url, "never-let-in", { id: "o-1" })).status).toBe(503);
    expect((await sendGeneric(server.url, "elsewhere/let-in", { id: "o-1" })).status).toBe(200);
    // Forged deliveries are refused without occupying a place.
    expect((await post(`${server.url}/webhooks/overload`, "{}", {})).status).toBe(401);
    receiver.release();
    expect((await Promise.all(stuck)).map(({ status }) => status)).toEqual(stuck.map(() => 200));
    receiver.close();
    expect((await sendGeneric(server.url, "overload", { id: "o-1" })).status).toBe(200);
    const instances = "/accounts/default/agents/webhook-agent/instances";
    expect((await server.api("GET", `${instances}/overload`)).status).toBe(200);
    expect((await server.api("GET", `${instances}/never-let-in`)).status).toBe(404);
  });

  it("answers 503 with Retry-After while bodies of deliveries in progress use the memory, and accepts deliveries again afterwards", async () => {
    const small = await start({ maxBufferedBytes: 4096 });
    const receiver = await openHeldReceiver();
    try {
      const text = "x".repeat(2500);
      const stuck = sendGeneric(small.url, "obey/stuck", { id: "s", do: "send", url: receiver.url, text });
      await expect.poll(() => readMetric(small, "signalbox_webhook_buffered_bytes")).toBeGreaterThan(2500);
      const refused = await sendGeneric(small.url, "large", { id: "1", text });
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "2"]);
      expect((await sendGeneric(small.url, "small", { id: "1" })).status).toBe(200);
      receiver.release();
      expect((await stuck).status).toBe(200);
      expect((await sendGeneric(small.url, "large", { id: "1", text })).status).toBe(200);
      await expect.poll(() => readMetric(small, "signalbox_webhook_buffered_bytes")).toBe(0);
    } finally {
      receiver.close();
      await small.stop();
    }
  });
});
