/** Section 4.2 of the contract: deliveries during overload. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { post, SECRET, sendGeneric } from "../support/webhook-sender.ts";

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({
    environment: { WEBHOOK_SECRET: SECRET, OBEY_WEBHOOK_SECRET: SECRET, OUT_SECRET: SECRET },
    file: {
      agents: { modules: [join(import.meta.dirname, "../fixtures/webhook-agents.ts")] },
      outgoing: { allowPrivateHosts: true },
      webhooks: {
        maxInFlight: 60,
        sources: { obey: { scheme: "generic", agent: "obedient-agent" } },
      },
    },
  });
});

afterAll(() => server.stop());

describe("overload", () => {
  it("deliveries over the limit are answered 503 with Retry-After until others finish", async () => {
    // The agents wait for a receiver that the test controls.
    let open = () => {};
    const isOpen = new Promise<void>((resolve) => (open = resolve));
    const gate = createServer((_request, response) => void isOpen.then(() => response.end()));
    await new Promise<void>((resolve) => gate.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(gate.address() as AddressInfo).port}/`;
    const stuck = Array.from({ length: 60 }, (_, i) =>
      sendGeneric(server.url, `obey/stuck-${i}`, { id: "s", do: "send", url }),
    );
    const inFlight = async () =>
      /signalbox_webhook_in_flight (\d+)/.exec(await (await fetch(`${server.url}/metrics`)).text())?.[1];
    await expect.poll(inFlight).toBe("60");
    const refused = await sendGeneric(server.url, "overload", { id: "o-1" });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "2"]);
    expect((await sendGeneric(server.url, "never-let-in", { id: "o-1" })).status).toBe(503);
    // Forged deliveries are refused without occupying a place.
    expect((await post(`${server.url}/webhooks/overload`, "{}", {})).status).toBe(401);
    open();
    expect((await Promise.all(stuck)).map(({ status }) => status)).toEqual(stuck.map(() => 200));
    gate.close();
    expect((await sendGeneric(server.url, "overload", { id: "o-1" })).status).toBe(200);
    const instances = "/accounts/default/agents/webhook-agent/instances";
    expect((await server.api("GET", `${instances}/overload`)).status).toBe(200);
    expect((await server.api("GET", `${instances}/never-let-in`)).status).toBe(404);
  });
});
