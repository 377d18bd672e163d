import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { afterEach, describe, expect, it } from "vitest";
import { OutgoingWebhookError, OutgoingWebhooks } from "./index.ts";

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const servers: Server[] = [];
const senders: OutgoingWebhooks[] = [];

afterEach(async () => {
  for (const sender of senders.splice(0)) sender.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function receiver(status: number, headers: Record<string, string> = {}, answer = "") {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      received.push({ headers: request.headers, body });
      if (status !== 0) response.writeHead(status, headers).end(answer);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { received, port: (server.address() as AddressInfo).port };
}

function sender(options: Partial<ConstructorParameters<typeof OutgoingWebhooks>[0]> = {}) {
  const created = new OutgoingWebhooks({
    allowPrivateHosts: true,
    clock: { now: () => Date.now() },
    ...options,
  });
  senders.push(created);
  return created;
}

const failure = (promise: Promise<unknown>): Promise<OutgoingWebhookError> =>
  promise.then(
    () => expect.unreachable("it succeeded"),
    (error: unknown) => error as OutgoingWebhookError,
  );

describe("an outgoing webhook", () => {
  it("is verified by the standardwebhooks package and has the generic X-Signature", async () => {
    const { received, port } = await receiver(200);
    const body = JSON.stringify({ type: "door.opened", data: { id: "é" } });
    const { id } = await sender().send({ url: `http://127.0.0.1:${port}/hook`, body, secret: SECRET });
    const [request] = received;
    expect(request?.body).toBe(body);
    expect(request?.headers["content-type"]).toBe("application/json");
    expect(request?.headers["webhook-id"]).toBe(id);
    expect(new Webhook(SECRET).verify(body, request?.headers as Record<string, string>)).toEqual(
      JSON.parse(body),
    );
    expect(request?.headers["x-signature"]).toBe(
      `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
    );
  });

  it("without a secret has an id and a time but no signature", async () => {
    const { received, port } = await receiver(204);
    await sender().send({ url: `http://127.0.0.1:${port}/`, body: "{}", id: "msg_1" });
    expect(received[0]?.headers).toMatchObject({
      "webhook-id": "msg_1",
      "webhook-timestamp": expect.any(String),
    });
    expect(received[0]?.headers["webhook-signature"]).toBeUndefined();
    expect(received[0]?.headers["x-signature"]).toBeUndefined();
  });

  it.each([
    [400, false],
    [404, false],
    [429, true],
    [500, true],
    [503, true],
  ])(
    "with response status %i rejects with an error of that status, retryable: %s",
    async (status, retryable) => {
      const { port } = await receiver(status);
      const error = await failure(sender().send({ url: `http://127.0.0.1:${port}/`, body: "{}" }));
      expect(error).toBeInstanceOf(OutgoingWebhookError);
      expect(error).toMatchObject({ status, retryable });
    },
  );

  it("never follows a redirect", async () => {
    const inside = await receiver(200);
    const outside = await receiver(307, { location: `http://127.0.0.1:${inside.port}/` });
    const error = await failure(sender().send({ url: `http://127.0.0.1:${outside.port}/`, body: "{}" }));
    expect(error.status).toBe(307);
    expect(inside.received).toEqual([]);
  });

  it("ends with a retryable error when the receiver never responds", async () => {
    const { port } = await receiver(0);
    const error = await failure(
      sender().send({ url: `http://127.0.0.1:${port}/`, body: "{}", timeoutMs: 50 }),
    );
    expect(error).toMatchObject({ status: null, retryable: true });
  });

  it("succeeds when the response body is longer than the limit", async () => {
    const { port } = await receiver(200, {}, "x".repeat(1_000_000));
    await expect(sender().send({ url: `http://127.0.0.1:${port}/`, body: "{}" })).resolves.toMatchObject({
      status: 200,
    });
  });
});

describe("private addresses", () => {
  it.each([
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://169.254.169.254/latest/meta-data",
    "http://[::127.0.0.1]/",
    "http://localhost/",
  ])("%s is refused before anything is sent", async (url) => {
    const error = await failure(sender({ allowPrivateHosts: false }).send({ url, body: "{}" }));
    expect(error).toMatchObject({ status: null, retryable: false });
    expect(error.message).toContain("outgoing.allowPrivateHosts");
  });

  it.each([["127.0.0.1"], ["93.184.215.14", "127.0.0.1"]])(
    "a name that resolves to %s is refused",
    async (...addresses) => {
      const { received, port } = await receiver(200);
      const lookup = ((_host: string, _options: object, callback: (...args: unknown[]) => void) =>
        callback(
          null,
          addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
        )) as never;
      const error = await failure(
        sender({ allowPrivateHosts: false, lookup }).send({
          url: `http://hooks.example:${port}/`,
          body: "{}",
        }),
      );
      expect(error.message).toContain("private or loopback");
      expect(received).toEqual([]);
    },
  );

  it.each(["ftp://example.com/", "file:///etc/passwd", "not a url", "http://user:pass@example.com/"])(
    "%s is refused as the URL of a webhook",
    async (url) => {
      expect((await failure(sender().send({ url, body: "{}" }))).retryable).toBe(false);
    },
  );
});
