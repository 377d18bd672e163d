/** Section 4.4 of the contract: webhooks sent by agents, directly or through the queue. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer, type TestServerOptions } from "../support/test-server.ts";
import { hexSignature, post, SECRET, sendGeneric } from "../support/webhook-sender.ts";

const OUT_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OPTIONS: TestServerOptions = {
  environment: { OBEY_WEBHOOK_SECRET: SECRET, OUT_SECRET },
  file: {
    agents: { modules: [join(import.meta.dirname, "../fixtures/webhook-agents.ts")] },
    outgoing: { allowPrivateHosts: true },
    webhooks: { sources: { obey: { scheme: "generic", agent: "obedient-agent" } } },
  },
};

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer(OPTIONS);
});

afterAll(() => server.stop());

async function receiver(statuses: number[]) {
  const received: { headers: Record<string, string>; body: string }[] = [];
  const http = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      received.push({ headers: request.headers as Record<string, string>, body });
      response.writeHead(statuses[Math.min(received.length, statuses.length) - 1] ?? 200).end();
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    received,
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`,
    close: () => http.close(),
  };
}
async function call<T>(name: string, method: string, at = server): Promise<T> {
  const { status, body } = await at.api("POST", `/agents/obedient-agent/${name}/rpc/${method}`, []);
  if (status !== 200) throw new Error(`${method} answered ${status}: ${JSON.stringify(body)}`);
  return body.result as T;
}

const runs = (name: string, at = server) => call<{ note: string }[]>(name, "runs", at);

describe("outgoing webhooks", () => {
  it("an outgoing webhook is verified by the standardwebhooks package and accepted by another source", async () => {
    const { received, url, close } = await receiver([200]);
    expect((await sendGeneric(server.url, "obey/sender", { id: "1", do: "send", url })).status).toBe(200);
    const [request] = received;
    expect(new Webhook(OUT_SECRET).verify(request?.body ?? "", request?.headers ?? {})).toEqual({
      from: "sender",
    });
    expect(request?.headers["x-signature"]).toBe(hexSignature(request?.body ?? "", OUT_SECRET));
    close();
    const other = await startTestServer({
      environment: { STANDARD_WEBHOOK_SECRET: OUT_SECRET, WEBHOOK_SECRET: OUT_SECRET },
    });
    try {
      const {
        "webhook-id": id = "",
        "webhook-timestamp": time = "",
        "webhook-signature": signature = "",
      } = request?.headers ?? {};
      const standard = { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": signature };
      expect((await post(`${other.url}/webhooks/standard/x`, request?.body ?? "", standard)).status).toBe(
        200,
      );
      const generic = { "x-signature": request?.headers["x-signature"] ?? "" };
      expect((await post(`${other.url}/webhooks/x`, request?.body ?? "", generic)).status).toBe(200);
    } finally {
      await other.stop();
    }
  });

  it("a refused webhook throws an error with the receiver's status", async () => {
    const { url, close } = await receiver([422]);
    await sendGeneric(server.url, "obey/refused", { id: "1", do: "send", url });
    expect((await runs("refused")).at(-1)?.note).toBe(
      "send failed: 422 the receiver responded with status 422",
    );
    close();
  });

  it("a queued webhook is retried under the same id until it succeeds", async () => {
    const { received, url, close } = await receiver([500, 503, 200]);
    expect((await sendGeneric(server.url, "obey/durable", { id: "1", do: "send-durably", url })).status).toBe(
      202,
    );
    await expect.poll(() => received.length).toBe(3);
    expect(new Set(received.map(({ headers }) => headers["webhook-id"]))).toEqual(new Set(["msg_durable"]));
    expect(new Webhook(OUT_SECRET).verify(received[2]?.body ?? "", received[2]?.headers ?? {})).toEqual({
      from: "durable",
    });
    close();
  });

  it("a queued webhook that never succeeds becomes a dead letter without the secret", async () => {
    const { url, close } = await receiver([500]);
    await sendGeneric(server.url, "obey/dead", { id: "1", do: "send-durably", url });
    await expect.poll(() => call<unknown[]>("dead", "deadLetters")).toHaveLength(1);
    expect(JSON.stringify(await call("dead", "deadLetters"))).not.toContain(OUT_SECRET);
    close();
  });

  it("webhooks to private addresses are refused unless the operator allows them", async () => {
    const { received, url, close } = await receiver([200]);
    const strict = await startTestServer({ ...OPTIONS, file: { ...OPTIONS.file, outgoing: {} } });
    try {
      await sendGeneric(strict.url, "obey/strict", { id: "1", do: "send", url });
      expect((await runs("strict", strict)).at(-1)?.note).toContain("private or loopback address");
      expect(received).toEqual([]);
    } finally {
      await strict.stop();
      close();
    }
  });
});
