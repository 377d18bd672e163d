/** Section 4.2 of the contract: the answer to a delivery when too many, or too large ones, are in progress. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { post, SECRET, sendGeneric } from "../support/webhook-sender.ts";

const start = (limits: object) =>
  startTestServer({
    environment: { WEBHOOK_SECRET: SECRET, OBEY_WEBHOOK_SECRET: SECRET, OUT_SECRET: SECRET },
    file: {
      agents: { modules: [join(import.meta.dirname, "../fixtures/webhook-agents.ts")] },
      outgoing: { allowPrivateHosts: true },
      webhooks: { ...limits, sources: { obey: { scheme: "generic", agent: "obedient-agent" } } },
    },
  });

/** A receiver that agents wait for; it answers after `open`. */
async function openGate(): Promise<{ url: string; open(): void; gate: Server }> {
  let open = () => {};
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  const gate = createServer((_request, response) => void isOpen.then(() => response.end()));
  await new Promise<void>((resolve) => gate.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(gate.address() as AddressInfo).port}/`, open, gate };
}

let server: TestServer;

beforeAll(async () => {
  server = await start({ maxInFlight: 60 });
});

afterAll(() => server.stop());

describe("overload", () => {
  it("answers 503 with Retry-After while too many deliveries are in progress, and accepts deliveries again afterwards", async () => {
    const { url, open, gate } = await openGate();
    const stuck = Array.from({ length: 60 }, (_, i) =>
      sendGeneric(server.url, `obey/stuck-${i}`, { id: "s", do: "send", url }),
    );
    const inFlight = async () =>
      /signalbox_webhook_in_flight (\d+)/.exec(await (await fetch(`${server.url}/metrics`)).text())?.[1];
    await expect.poll(inFlight).toBe("60");
    const refused = await sendGeneric(server.url, "overload", { id: "o-1" });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "2"]);
    expect((await sendGeneric(server.url, "never-let-in", { id: "o-1" })).status).toBe(503);
    // Forged deliveries are refused without counting.
    expect((await post(`${server.url}/webhooks/overload`, "{}", {})).status).toBe(401);
    open();
    expect((await Promise.all(stuck)).map(({ status }) => status)).toEqual(stuck.map(() => 200));
    gate.close();
    expect((await sendGeneric(server.url, "overload", { id: "o-1" })).status).toBe(200);
    const instances = "/accounts/default/agents/webhook-agent/instances";
    expect((await server.api("GET", `${instances}/overload`)).status).toBe(200);
    expect((await server.api("GET", `${instances}/never-let-in`)).status).toBe(404);
  });

  it("answers 503 with Retry-After while bodies of deliveries in progress use the memory, and accepts deliveries again afterwards", async () => {
    const small = await start({ maxBufferedBytes: 4096 });
    const { url, open, gate } = await openGate();
    try {
      const text = "x".repeat(2500);
      const stuck = sendGeneric(small.url, "obey/stuck", { id: "s", do: "send", url, text });
      const buffered = async () =>
        Number(
          /signalbox_webhook_buffered_bytes (\d+)/.exec(
            await (await fetch(`${small.url}/metrics`)).text(),
          )?.[1],
        );
      await expect.poll(buffered).toBeGreaterThan(2500);
      const refused = await sendGeneric(small.url, "large", { id: "1", text });
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "2"]);
      expect((await sendGeneric(small.url, "small", { id: "1" })).status).toBe(200);
      open();
      expect((await stuck).status).toBe(200);
      expect((await sendGeneric(small.url, "large", { id: "1", text })).status).toBe(200);
      expect(await buffered()).toBe(0);
    } finally {
      gate.close();
      await small.stop();
    }
  });
});
